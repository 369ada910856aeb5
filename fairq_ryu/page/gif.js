// Flows by priority, with deadlines that count down between the frames.

import { byId, make, setText } from "./dom.js";
import { bytes, count, countdown, endpoint, seconds } from "./format.js";
import { portKey } from "./store.js";
import { Table } from "./table.js";

const TICK_MS = 100;
const CALM_TICK_MS = 1000;

const VERDICTS = { open: "open", met: "✓ met", missed: "✗ missed", ended: "ended" };

export class GifTable {
  constructor(store) {
    this._store = store;
    this._shown = false;
    this._calm = matchMedia("(prefers-reduced-motion: reduce)");
    const remaining = (row) => (row.remaining_s === null ? null : row.remaining_s - (row.state === "open" ? store.age : 0));
    this._table = new Table(
      byId("gif"),
      [
        { name: "Port", words: true, text: (row) => store.portName(portKey(row.dpid, row.port)) },
        { name: "Priority", text: (row) => count(row.priority), help: "1 is served first" },
        { name: "From", words: true, text: (row) => endpoint(row.src, row.sport) },
        { name: "To", words: true, text: (row) => endpoint(row.dst, row.dport) },
        { name: "Left to send", show: leftCell },
        { name: "Deadline in", show: (cell, row, line) => dueCell(cell, row, line, remaining(row)) },
        { name: "State", words: true, text: (row) => VERDICTS[row.state] ?? "no deadline", className: "verdict" },
        { name: "Age", text: (row) => seconds(row.age_s) },
      ],
      { key: (row) => `${row.dpid} ${row.port} ${endpoint(row.src, row.sport)} ${endpoint(row.dst, row.dport)}` },
    );
    this._tick();
  }

  show(shown) {
    this._shown = shown;
    this.update();
  }

  update() {
    if (!this._store.state) return;
    // The controller sends the first rows only, and the total number of rows.
    const { gif: rows, gif_total: total } = this._store.state;
    setText(byId("count-gif"), count(total));
    if (!this._shown) return;
    this._table.update(rows);
    let note = "GIF (global information of flows): flows by priority. Priority 1 is served first.";
    if (!rows.length) note = "No flows. Only the policies SED and RSED use deadlines and keep this table.";
    else if (rows.length < total) note = `The first ${count(rows.length)} of ${count(total)} rows.`;
    setText(byId("gif-note"), note);
  }

  _tick() {
    if (this._shown && !document.hidden && document.body.dataset.live === "live") this.update();
    setTimeout(() => this._tick(), this._calm.matches ? CALM_TICK_MS : TICK_MS);
  }
}

function leftCell(cell, row) {
  if (!cell.firstChild) cell.append(make("progress", { max: 1, "aria-hidden": "true" }), make("span"));
  const [bar, text] = cell.children;
  bar.hidden = !row.size_bytes;
  if (row.size_bytes) bar.value = 1 - row.remaining_bytes / row.size_bytes;
  setText(text, row.size_bytes ? `${bytes(row.remaining_bytes)} of ${bytes(row.size_bytes)}` : "–");
}

function dueCell(cell, row, line, remaining) {
  setText(cell, countdown(remaining));
  const late = row.state === "missed" || (row.state === "open" && remaining < 0);
  cell.classList.toggle("bad", late);
  line.classList.toggle("missed", row.state === "missed");
}
