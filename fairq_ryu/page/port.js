// The chosen port: its graph, its figures, and the last minute as a table.

import { Chart } from "./chart.js";
import { byId, make, setAttributes, setText } from "./dom.js";
import { bytes, count, percent, rate } from "./format.js";
import { load } from "./store.js";
import { Table } from "./table.js";

const STATES = { CNG: "▲ CNG, congested", NOM: "NOM, normal" };
const STEP = 5; // seconds between the rows of the table

export function windowWords(row) {
  if (row.flow_windows) return `${count(row.flow_windows)} with own windows`;
  if (row.pool_bytes !== null) return `pool ${bytes(row.pool_bytes)}`;
  if (row.window_bytes !== null) return `${bytes(row.window_bytes)} each`;
  return "none";
}

const FACTS = [
  ["Queue now", (row) => bytes(row.queue_bytes)],
  ["Peak", (row) => bytes(row.peak_bytes)],
  ["Target", (row) => bytes(row.target_bytes)],
  ["Limit", (row) => bytes(row.limit_bytes || null)],
  ["Sends", (row) => rate(row.tx_bps)],
  ["Load", (row) => percent(load(row))],
  ["Capacity", (row) => rate(row.rate_bps || null)],
  ["Virtual queue", virtualWords],
  ["Hidden queue", (row) => (row.virtual_rate_why ? bytes(row.hidden_bytes) : "–")],
  ["Active flows", (row) => (row.active === null ? count(row.flows) : `${count(row.active)} of ${count(row.flows)}`)],
  ["Windows", windowWords],
  ["Window of each flow", (row) => bytes(share(row))],
  ["Dropped so far", (row) => count(row.drops)],
  ["Queue law", queueLawWords],
  ["Judged", (row) => judgedWords(row)],
  ["Policy", (row) => row.policy],
];

// The rate at which the virtual queue of a far queue drains, and why.
function virtualWords(row) {
  if (!row.virtual_rate_why) return "–";
  if (!row.line_bps) return "its line is not known yet";
  return `${rate(row.virtual_rate_bps)} of ${rate(row.line_bps)}, ${row.virtual_rate_why}`;
}

// The law that judges each packet of the queue, and what it does now.
function queueLawWords(row) {
  if (!row.queue_law) return "none";
  if (row.queue_law_missing) return `${row.queue_law}, not in force`;
  const limits = row.queue_law_limits;
  return limits && limits !== "nothing" ? `${row.queue_law}, limits by ${limits}` : row.queue_law;
}

function judgedWords(row) {
  if (typeof row.judged !== "number") return "–";
  return `${count(row.judged)}; ${count(row.judged_dropped)} dropped, ${count(row.judged_marked)} marked`;
}

// The window of one flow, if all flows have the same; null otherwise.
export function share(row) {
  if (row.window_bytes !== null) return row.window_bytes;
  return row.pool_bytes !== null && row.active ? row.pool_bytes / row.active : null;
}

export class PortPanel {
  constructor(store) {
    this._store = store;
    this._chart = new Chart(byId("chart"), byId("readout"));
    this._facts = FACTS.map(([name, text]) => {
      const value = make("dd");
      byId("facts").append(make("div", {}, make("dt", {}, name), value));
      return { value, text };
    });
    const column = (name, field, text = bytes) => ({ name, text: (sample) => text(sample[field]) });
    this._minute = new Table(
      byId("minute"),
      [
        { name: "Ago", text: (sample) => `${Math.round(sample.ago)} s` },
        column("Queue", "queue"),
        column("Peak", "peak"),
        column("Target", "target"),
        column("Limit", "limit"),
        column("Pool", "pool"),
        column("Window", "window"),
        column("Dropped", "dropped", count),
        { name: "State", text: (sample) => (sample.congested ? "CNG" : "") },
      ],
      { key: (sample) => sample.row },
    );
    this.key = null;
  }

  choose(key) {
    this.key = key;
    this.update();
  }

  update() {
    const { key, _store: store } = this;
    const row = key && store.ports.get(key);
    const samples = (key && store.history.get(key)) || [];
    const name = key ? store.portName(key) : "No port selected";
    const towards = key ? store.leadsTo(key) : "";
    setText(byId("port-title"), name + (towards ? ` to ${towards}` : ""));
    setText(byId("port-about"), about(store, key, row));
    setText(byId("port-state"), STATES[row?.state] ?? "");
    setAttributes(byId("port-state"), { "data-state": row?.state });
    for (const { value, text } of this._facts) setText(value, row ? text(row) : "–");
    this._chart.show(samples, key ? store.eventsAt(key) : []);
    this._describe(samples);
    this._minute.update(minute(samples));
  }

  // For users who cannot see the graph, and for tests.
  _describe(samples) {
    const canvas = byId("chart");
    const last = samples.at(-1);
    const highest = samples.reduce((top, sample) => Math.max(top, sample.queue ?? 0), 0);
    setAttributes(canvas, {
      "data-samples": samples.length,
      "data-time": last?.time ?? "",
      "data-queue": last?.queue ?? "",
      "data-highest": highest,
      "aria-label": last
        ? `Queue, windows and drops of the last minute. Queue ${bytes(last.queue)}, target ${bytes(last.target)}, ` +
          `limit ${bytes(last.limit)}, longest queue seen ${bytes(highest)}. Arrow keys read single moments.`
        : "Queue, windows and drops of the last minute: nothing known yet",
    });
  }
}

function about(store, key, row) {
  if (!key) return "Select one on the map or in the table of ports.";
  if (!row) return "This port has been removed.";
  const words = [`Port ${row.port} of switch ${store.switchName(row.dpid)}`];
  if (row.incast) words.push("incast: many senders answer at the same moment");
  if (row.mode === "observe") words.push("only observed: nothing is written");
  if (row.mode === "disabled") words.push("disabled: it has no windows");
  if (row.queue_bytes === null) words.push("no agent measures its queue");
  else if (!row.limit_bytes) words.push("it has no queue that can be controlled");
  return `${words.join("; ")}.`;
}

function minute(samples) {
  const now = samples.at(-1)?.time;
  const rows = [];
  for (let back = samples.length - 1, due = 0; back >= 0; back -= 1) {
    const ago = now - samples[back].time;
    if (ago + 0.01 < due) continue;
    rows.push({ ...samples[back], ago, row: rows.length });
    due = rows.length * STEP;
  }
  return rows;
}
