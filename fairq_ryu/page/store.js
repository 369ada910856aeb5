// The data received from the controller: the latest state, a minute of history of every port, and events.

export const HISTORY_SECONDS = 60;
const MAX_EVENTS = 500;
// "1:3" in a message: port 3 of switch 1; but not the end of an address, or digits after a name.
const PORT = /(?:port )?(?<![\w.:([])([0-9a-f]{1,16}):(\d+)(?![\w.:\]])/g;

export function portKey(dpid, port) {
  return `${dpid}:${port}`;
}

// "0000000000000011" is shown as switch 11.
export function shortDpid(dpid) {
  return dpid.replace(/^0+(?=.)/, "");
}

export class Store {
  constructor() {
    this.state = null; // the latest frame
    this.arrived = 0; // when, by performance.now()
    this.ports = new Map(); // by key
    this.peers = new Map(); // port key -> port key at the other end of the link
    this.hosts = new Map(); // port key -> hosts behind it
    this.names = new Map(); // dpid -> name
    this.history = new Map(); // port key -> samples, oldest first
    this.events = []; // newest first
  }

  // A frame of /v1/live.
  update(frame) {
    this.state = frame;
    this.arrived = performance.now();
    this.ports = new Map(frame.ports.map((row) => [portKey(row.dpid, row.port), row]));
    this.peers = new Map();
    for (const { a, b } of frame.links) {
      this.peers.set(portKey(...a), portKey(...b));
      this.peers.set(portKey(...b), portKey(...a));
    }
    this.hosts = new Map();
    for (const host of frame.hosts) {
      const key = portKey(...host.at);
      if (!this.hosts.has(key)) this.hosts.set(key, []);
      this.hosts.get(key).push(host);
    }
    this._nameSwitches(frame);
    this._remember(frame);
  }

  // Seconds since the latest frame arrived.
  get age() {
    return (performance.now() - this.arrived) / 1000;
  }

  _nameSwitches(frame) {
    for (const { dpid } of frame.switches) {
      if (!this.names.has(dpid)) this.names.set(dpid, shortDpid(dpid));
    }
    for (const { dpid, name } of frame.ports) {
      const found = /^(.+)-eth\d+$/.exec(name);
      if (found) this.names.set(dpid, found[1]);
    }
  }

  _remember(frame) {
    const since = frame.time - HISTORY_SECONDS - 1;
    for (const [key, row] of this.ports) {
      let samples = this.history.get(key);
      // The clock was set back, or this is another controller: earlier samples cannot be ordered with new ones.
      if (!samples || (samples.length && samples.at(-1).time > frame.time)) samples = [];
      const before = samples.at(-1);
      // A counter that restarts at 0 does not count as drops.
      const dropped = before && before.drops !== null && row.drops >= before.drops ? row.drops - before.drops : 0;
      samples.push({
        time: frame.time,
        queue: row.queue_bytes,
        peak: row.peak_bytes,
        target: row.target_bytes,
        limit: row.limit_bytes || null,
        pool: row.pool_bytes,
        window: row.window_bytes,
        drops: row.drops,
        dropped,
        congested: row.state === "CNG",
      });
      let old = 0;
      while (samples[old].time < since) old += 1;
      if (old) samples.splice(0, old);
      this.history.set(key, samples);
    }
    for (const [key, samples] of this.history) {
      if (samples.at(-1).time < since) this.history.delete(key);
    }
  }

  // Events arrive from the history and from the stream, some from both; the later version is used.
  addEvents(events) {
    const all = new Map([...this.events, ...events].map((event) => [event.id, event]));
    this.events = [...all.values()].sort((one, other) => other.id - one.id).slice(0, MAX_EVENTS);
  }

  // The number of the latest event; 0: none is known.
  get lastEvent() {
    return this.events[0]?.id ?? 0;
  }

  // A restarted controller numbers its events from 1.
  forgetEvents() {
    this.events = [];
  }

  switchName(dpid) {
    return this.names.get(dpid) ?? shortDpid(dpid);
  }

  portName(key) {
    const row = this.ports.get(key);
    if (row?.name) return row.name;
    const [dpid, port] = key.split(":");
    return `${this.switchName(dpid)} port ${port}`;
  }

  // The message of an event, with the names of switches and ports if they are known.
  message({ message, dpid, port }) {
    const named = message.replace(PORT, (words, number, of) => {
      return this.ports.get(portKey(number.padStart(16, "0"), of))?.name || words;
    });
    if (!dpid || port !== null) return named;
    return named.replace(`bridge ${shortDpid(dpid)} `, () => `bridge ${this.switchName(dpid)} `);
  }

  // A description of the other end of a port; empty if it is not known.
  leadsTo(key) {
    const peer = this.peers.get(key);
    if (peer) return this.switchName(peer.split(":")[0]);
    const hosts = this.hosts.get(key) ?? [];
    if (hosts.length > 1) return `${hosts.length} hosts`;
    return hosts.length ? hostName(hosts[0]) : "";
  }

  eventsAt(key) {
    return this.events.filter((event) => event.dpid && portKey(event.dpid, event.port) === key);
  }
}

export function hostName(host) {
  const addresses = host.addresses ?? [];
  return addresses.find((address) => !address.includes(":")) ?? addresses[0] ?? host.mac;
}

// The load of a port in the direction out of the switch, 0 to 1; null: not known.
export function load(row) {
  return row && row.rate_bps && typeof row.tx_bps === "number" ? Math.min(1, row.tx_bps / row.rate_bps) : null;
}
