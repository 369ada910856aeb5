// The map of the network: switches with their ports, hosts, and links with their traffic.

import { make, makeSvg, setAttributes, setText } from "./dom.js";
import { percent, rate, shortRate } from "./format.js";
import { ARCH, commonPrefix, describeHost, isFar, layout, signature } from "./layout.js";

const SOCKET = 7;
const QUIET_BPS = 20_000; // a rate below this, such as that of discovery frames, is not shown as a number
const LEAST_HEIGHT = 330;
const PLACES = [0.5, 0.36, 0.64, 0.24, 0.76]; // positions of the number along a link between switches

// [minimum share of the capacity, name]: the legend in index.html has the same names.
const LOADS = [
  [0.9, "full"],
  [0.6, "high"],
  [0.25, "mid"],
  [0.001, "low"],
];

export class Topology {
  constructor(container, store, { onChoose }) {
    this._container = container;
    this._store = store;
    this._onChoose = onChoose;
    this._svg = makeSvg("svg", { role: "group", "aria-label": "Map of the network. Arrow keys move between ports, Enter selects one." });
    this._empty = make("p", { class: "empty" }, "No switch has connected yet.");
    container.append(this._empty, this._svg);
    this._drawn = "";
    this._levels = null;
    this._chosen = null;
    this._path = new Set();
    this._focus = null;
    new ResizeObserver(() => this._store.state && this.update()).observe(container);
    this._svg.addEventListener("keydown", (event) => this._key(event));
  }

  choose(key) {
    this._chosen = key;
    if (this._drawn) this._marks();
  }

  // Highlights the path of a flow: names of lanes, see _lane().
  showPath(flow) {
    this._path = new Set(flow ? flow.ports.map(([dpid, port]) => `${dpid}:${port}>`) : []);
    const first = flow?.back_ports.at(-1);
    if (first) this._path.add(`${first[0]}:${first[1]}<`);
    if (this._drawn) this._marks();
  }

  update() {
    const width = Math.floor(this._container.clientWidth);
    const height = Math.max(LEAST_HEIGHT, Math.floor(this._container.clientHeight));
    const wanted = `${width}x${height} ${signature(this._store)}`;
    this._empty.hidden = this._store.state.switches.length > 0;
    if (wanted !== this._drawn && width > 0) {
      this._draw(layout(this._store, width, height, this._levels));
      this._drawn = wanted;
    }
    if (this._drawn) this._values();
  }

  _draw(plan) {
    const hadFocus = this._svg.contains(document.activeElement);
    this._plan = plan;
    this._levels = plan.levels;
    setAttributes(this._svg, { viewBox: `0 0 ${plan.width} ${plan.height}`, width: plan.width, height: plan.height });
    this._lanes = [];
    this._tags = [];
    this._ports = new Map();
    this._boxes = new Map();
    const layers = ["links", "hosts", "switches", "ports", "labels"].map((name) => makeSvg("g", { class: name }));
    const [links, hosts, switches, ports, labels] = layers;
    for (const link of plan.links) links.append(this._link(link, labels));
    const names = plan.hosts.map((host) => describeHost(this._store, host.keys));
    this._prefix = commonPrefix(names);
    plan.hosts.forEach((host, index) => {
      links.append(this._hostLink(host, index, labels));
      hosts.append(this._host(host, names[index]));
    });
    for (const box of plan.boxes.values()) switches.append(this._box(box));
    for (const port of plan.ports.values()) if (this._isSingle(port.key)) ports.append(this._port(port));
    this._svg.replaceChildren(...layers);
    this._order = [...this._ports.keys()].sort((a, b) => {
      const [one, other] = [plan.ports.get(a), plan.ports.get(b)];
      return one.y - other.y || one.x - other.x;
    });
    if (!this._ports.has(this._focus)) this._focus = this._order[0] ?? null;
    this._rove(hadFocus);
    this._marks();
  }

  // Hosts that are drawn as one have no ports of their own on the map; the table has them.
  _isSingle(key) {
    return !this._plan.hosts.some((host) => host.keys.length > 1 && host.keys.includes(key));
  }

  _end(key) {
    const { x, y, side } = this._plan.ports.get(key);
    return { x, y: y + side * (this._store.ports.get(key).limit_bytes ? this._plan.tank.height : SOCKET) };
  }

  _lane(name, rate_, capacity) {
    const path = makeSvg("path", { class: "lane", "data-lane": name });
    this._lanes.push({ name, path, rate: rate_, capacity });
    return path;
  }

  _group(shape, lanes, keys, tag, describe) {
    const title = makeSvg("title");
    const hit = makeSvg("path", { class: "hit", d: shape });
    const group = makeSvg("g", { class: "link" }, title, hit, ...lanes);
    group.addEventListener("click", () => {
      const busy = (key) => this._store.ports.get(key)?.tx_bps ?? 0;
      this._onChoose(keys.reduce((one, other) => (busy(other) > busy(one) ? other : one)));
    });
    this._tags.push({ ...tag, title, describe });
    return group;
  }

  _link({ a, b }, labels) {
    const { ports } = this._plan;
    const [from, to] = [this._end(a), this._end(b)];
    const level = ports.get(a).side === -1 && ports.get(b).side === -1;
    const there = this._lane(`${a}>`, () => this._tx(a, b), () => this._capacity(a));
    const back = this._lane(`${b}>`, () => this._tx(b, a), () => this._capacity(b));
    shapeLanes(there, back, from, to, level, 4 * this._plan.thickness);
    const label = makeSvg("text", { class: "rate" });
    labels.append(label);
    const places = PLACES.map((at) => ({
      x: from.x + (to.x - from.x) * at,
      y: level ? Math.min(from.y, to.y) - ARCH / 2 + 4 : from.y + (to.y - from.y) * at + 4,
    }));
    const up = to.y < from.y;
    const rates = () => [this._tx(a, b), this._tx(b, a)];
    const describe = ([one, other]) =>
      `${this._say(a, one)}\n${this._say(b, other)}`;
    const arrows = level ? (from.x < to.x ? "→←" : "←→") : up ? "↑↓" : "↓↑";
    return this._group(level ? arch(from, to, 0) : straight(from, to, 0), [there, back], [a, b], { label, rates, arrows, places }, describe);
  }

  _hostLink(host, index, labels) {
    const { keys } = host;
    const from = keys.length === 1 ? this._end(keys[0]) : { ...this._plan.ports.get(keys[0]) };
    const to = { x: host.x, y: host.y - 9 };
    const sum = (field) => () => total(keys.map((key) => this._store.ports.get(key)?.[field]));
    const down = this._lane(`${keys[0]}>`, sum("tx_bps"), () => this._capacity(keys[0]) * keys.length);
    // The rate of a queue limits the direction out of the switch. In the other direction only a port without a
    // queue gives the capacity.
    const row = () => this._store.ports.get(keys[0]);
    const up = this._lane(`${keys[0]}<`, sum("rx_bps"), () => (row()?.limit_bytes ? 0 : this._capacity(keys[0]) * keys.length));
    shapeLanes(down, up, from, to, false, 4 * this._plan.thickness);
    const label = makeSvg("text", { class: "rate" });
    labels.append(label);
    // Labels of neighbouring hosts have different heights.
    const heights = host.slot < 26 ? [0.3, 0.5, 0.7] : host.slot < 48 ? [0.38, 0.62] : [0.5];
    const at = heights[index % heights.length];
    const edge = Math.max(20, Math.min(this._plan.width - 20, to.x));
    const places = [{ x: edge, y: from.y + (to.y - from.y) * at + 4 }];
    const rates = () => [sum("tx_bps")(), sum("rx_bps")()];
    const describe = ([one, other]) => `${this._sayAll(keys, one)}\nand back ${rate(other)}`;
    return this._group(straight(from, to, 0), [down, up], keys, { label, rates, arrows: "↓↑", places }, describe);
  }

  _say(key, bps) {
    return `${this._store.portName(key)} to ${this._store.leadsTo(key)}: ${this._share(bps, this._capacity(key))}`;
  }

  // Of ports that are drawn as one.
  _sayAll(keys, bps) {
    if (keys.length === 1) return this._say(keys[0], bps);
    const capacity = keys.reduce((sum, key) => sum + this._capacity(key), 0);
    return `${keys.length} ports of hosts: ${this._share(bps, capacity)}`;
  }

  _share(bps, capacity) {
    const of = capacity && typeof bps === "number" ? ` of ${rate(capacity)} (${percent(bps / capacity)})` : "";
    return `${rate(bps)}${of}`;
  }

  _tx(key, peer) {
    return this._store.ports.get(key)?.tx_bps ?? this._store.ports.get(peer)?.rx_bps ?? null;
  }

  _capacity(key) {
    return this._store.ports.get(key)?.rate_bps || 0;
  }

  _host(host, name) {
    const short = host.slot < 92 && this._prefix && name.startsWith(this._prefix) ? `.${name.slice(this._prefix.length)}` : name;
    const small = host.slot < 26 || short.length * 6.6 > host.slot;
    const most = Math.max(3, Math.floor(host.slot / (small ? 5.2 : 6.6)));
    // If the address is too long, its last number is shown.
    const last = /^\d+(\.\d+){3}$/.test(name) ? `.${name.split(".").at(-1)}` : short;
    const label = short.length <= most ? short : last.length <= most ? last : `${last.slice(0, most - 1)}…`;
    const circle = makeSvg("circle", { cx: host.x, cy: host.y, r: host.slot < 26 ? 6 : 8 });
    const text = makeSvg("text", { x: host.x, y: host.y + 25, class: small ? "small" : null }, label);
    return makeSvg("g", { class: "host" }, makeSvg("title", {}, name), circle, text);
  }

  _box({ dpid, x, y, width, height }) {
    const rect = makeSvg("rect", { x, y, width, height, rx: 4 });
    const name = makeSvg("text", { x: x + width / 2, y: y + height / 2 + 4.5 });
    const title = makeSvg("title");
    const group = makeSvg("g", { class: "switch" }, title, rect, name);
    this._boxes.set(dpid, { group, name, title, width });
    return group;
  }

  _port({ key, x, y, side }) {
    const tank = Boolean(this._store.ports.get(key).limit_bytes);
    const { width, height } = tank ? this._plan.tank : { width: SOCKET, height: SOCKET };
    const top = side === 1 ? y : y - height;
    const kind = `${tank ? "port tank" : "port"}${isFar(this._store.ports.get(key)) ? " far" : ""}`;
    const group = makeSvg("g", { class: kind, role: "button", tabindex: -1, "data-port": key });
    const title = makeSvg("title");
    const ring = makeSvg("rect", { class: "ring", x: x - width / 2 - 4, y: top - 4, width: width + 8, height: height + 8, rx: 5 });
    const body = makeSvg("rect", { class: "body", x: x - width / 2, y: top, width, height, rx: tank ? 2 : 1 });
    group.append(title, ring, body);
    const parts = { group, title, top, height };
    if (tank) {
      parts.fill = makeSvg("rect", { class: "fill", x: x - width / 2 + 1.5, width: width - 3 });
      parts.target = makeSvg("path", { class: "target" });
      parts.alarm = makeSvg("path", { class: "alarm", d: `M${x + width / 2 + 9} ${top + 2}l5 9h-10z` });
      group.append(parts.fill, parts.target, parts.alarm);
    }
    parts.x = x;
    group.addEventListener("click", () => this._pick(key));
    this._ports.set(key, parts);
    return group;
  }

  _pick(key) {
    this._focus = key;
    this._rove(true);
    this._onChoose(key);
  }

  // Only one port of the map is a stop of the Tab key; arrow keys move to the others.
  _rove(focus) {
    for (const [key, { group }] of this._ports) group.setAttribute("tabindex", key === this._focus ? 0 : -1);
    if (focus && this._focus) this._ports.get(this._focus).group.focus({ preventScroll: true });
  }

  _key(event) {
    const index = this._order.indexOf(this._focus);
    if (index < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const last = this._order.length - 1;
    const steps = { ArrowRight: Math.min(last, index + 1), ArrowLeft: Math.max(0, index - 1), Home: 0, End: last };
    if (event.key in steps) {
      this._focus = this._order[steps[event.key]];
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      // Move to the other end of the link.
      const peer = this._store.peers.get(this._focus);
      if (!peer || !this._ports.has(peer)) return;
      this._focus = peer;
    } else if (event.key === "Enter" || event.key === " ") {
      this._onChoose(this._focus);
    } else {
      return;
    }
    event.preventDefault();
    this._rove(true);
  }

  _marks() {
    for (const [key, { group }] of this._ports) group.setAttribute("aria-pressed", String(key === this._chosen));
    for (const { name, path } of this._lanes) path.classList.toggle("on-path", this._path.has(name));
    this._svg.classList.toggle("tracing", this._path.size > 0);
  }

  _values() {
    for (const { path, rate: read, capacity } of this._lanes) {
      const bps = read() ?? 0;
      const most = capacity();
      const share = most ? bps / most : 0;
      const load = (LOADS.find(([from]) => share >= from) ?? [0, bps > QUIET_BPS ? "low" : "idle"])[1];
      const width = bps > QUIET_BPS ? (1 + Math.min(7, Math.log10(bps / QUIET_BPS) * 1.4)) * this._plan.thickness : 1;
      setAttributes(path, { "data-load": load, "stroke-width": width.toFixed(1) });
    }
    this._writeTags();
    for (const [key, parts] of this._ports) this._portValues(key, parts);
    for (const row of this._store.state.switches) this._boxValues(row);
  }

  // Numbers on links, the busiest links first; a number without free space is left out.
  _writeTags() {
    const tags = this._tags.map((tag, index) => {
      const both = tag.rates();
      const side = (both[1] ?? 0) > (both[0] ?? 0) ? 1 : 0;
      setText(tag.title, tag.describe(both));
      const bps = both[side] ?? 0;
      // The order uses steps, so that labels do not move with every small change.
      return { ...tag, bps, index, step: Math.round(Math.log2(bps + 1)), text: `${tag.arrows[side]}${shortRate(bps)}` };
    });
    tags.sort((one, other) => other.step - one.step || one.index - other.index);
    const taken = [];
    for (const { label, places, bps, text } of tags) {
      const width = text.length * 7 + 4;
      const free = (place) =>
        !taken.some((other) => Math.abs(other.x - place.x) < (other.width + width) / 2 && Math.abs(other.y - place.y) < 14);
      const place = bps > QUIET_BPS ? places.find(free) : undefined;
      setText(label, place ? text : "");
      if (!place) continue;
      setAttributes(label, { x: place.x.toFixed(1), y: place.y.toFixed(1) });
      taken.push({ ...place, width });
    }
  }

  _portValues(key, { group, title, top, height, fill, target, alarm, x }) {
    const row = this._store.ports.get(key);
    const towards = this._store.leadsTo(key);
    const name = `Port ${this._store.portName(key)}${towards ? ` to ${towards}` : ""}`;
    setAttributes(group, { "aria-label": name });
    setText(title, name);
    if (!fill) return;
    const inside = height - 3;
    const share = (value) => Math.max(0, Math.min(1, (value ?? 0) / (row.limit_bytes || 1)));
    const filled = inside * share(row.queue_bytes);
    setAttributes(fill, { y: (top + 1.5 + inside - filled).toFixed(1), height: filled.toFixed(1) });
    const level = (top + 1.5 + inside * (1 - share(row.target_bytes))).toFixed(1);
    const { width } = this._plan.tank;
    setAttributes(target, { d: row.target_bytes ? `M${x - width / 2 - 3} ${level}h${width + 6}` : null });
    group.classList.toggle("congested", row.state === "CNG");
    alarm.toggleAttribute("hidden", row.state !== "CNG");
  }

  _boxValues({ dpid, connected, agent, way }) {
    const box = this._boxes.get(dpid);
    if (!box) return;
    // Only its agent governs it in the way "windows": the switch need not be connected.
    const there = connected || (agent && way === "windows");
    const trouble = !there ? "not connected" : !agent ? "no agent" : "";
    const name = this._store.switchName(dpid);
    box.group.classList.toggle("gone", !there);
    box.group.classList.toggle("blind", there && !agent);
    const most = Math.max(2, Math.floor(box.width / 7.8));
    const whole = trouble ? `${name}: ${trouble}` : name;
    // With little space, "edge4_1" is shortened to "e4_1".
    const brief = name.replace(/^(\p{L})\p{L}+(?=\d)/u, "$1");
    const mark = trouble ? "⚠ " : "";
    const shown = [whole, `${mark}${name}`, `${mark}${brief}`].find((each) => each.length <= most);
    setText(box.name, shown ?? `${mark}${brief.slice(0, most - 1)}…`);
    setText(box.title, way && way !== "paths" ? `${whole} (way ${way})` : whole);
  }
}

function total(values) {
  const known = values.filter((value) => typeof value === "number");
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}

// The two directions of a link, side by side; each starts at its source, so that its arrow is at its destination.
function shapeLanes(there, back, from, to, level, aside) {
  const shape = level ? arch : straight;
  there.setAttribute("d", shape(from, to, aside));
  back.setAttribute("d", shape(to, from, aside));
}

function straight(from, to, aside) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [x, y] = [(-(to.y - from.y) / length) * aside, ((to.x - from.x) / length) * aside];
  return `M${(from.x + x).toFixed(1)} ${(from.y + y).toFixed(1)}L${(to.x + x).toFixed(1)} ${(to.y + y).toFixed(1)}`;
}

function arch(from, to, aside) {
  const shift = from.x < to.x ? -aside : aside;
  const top = Math.min(from.y, to.y) - ARCH + shift;
  return `M${from.x - shift} ${from.y}Q${(from.x + to.x) / 2} ${top} ${to.x + shift} ${to.y}`;
}
