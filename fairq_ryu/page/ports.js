// The table of ports.

import { byId, make, setText } from "./dom.js";
import { bytes, count, percent } from "./format.js";
import { windowWords } from "./port.js";
import { load, portKey } from "./store.js";
import { Table } from "./table.js";

const MAX_ROWS = 200; // maximum number of rows that are drawn; the filter shows others

function queueCell(cell, row) {
  if (!cell.firstChild) {
    const gauge = make("span", { class: "gauge", "aria-hidden": "true" }, make("i"), make("b"));
    cell.append(gauge, make("span"));
  }
  const [gauge, text] = cell.children;
  setText(text, bytes(row.queue_bytes));
  gauge.style.visibility = row.limit_bytes ? "visible" : "hidden";
  if (!row.limit_bytes) return;
  const share = (value) => `${(Math.min(1, (value ?? 0) / row.limit_bytes) * 100).toFixed(1)}%`;
  gauge.firstChild.style.width = share(row.queue_bytes);
  gauge.lastChild.style.left = share(row.target_bytes);
  gauge.lastChild.hidden = !row.target_bytes;
  gauge.classList.toggle("full", row.queue_bytes > 0.9 * row.limit_bytes);
}

function stateCell(cell, row) {
  setText(cell, row.state ?? "–");
  cell.classList.toggle("bad", row.state === "CNG");
}

export class PortsTable {
  constructor(store, { onChoose }) {
    this._store = store;
    this._chosen = null;
    const name = (row) => store.portName(portKey(row.dpid, row.port));
    const towards = (row) => store.leadsTo(portKey(row.dpid, row.port));
    const number = (title, field, text, extra = {}) => ({ name: title, sort: (row) => row[field], text: (row) => text(row[field]), ...extra });
    this._table = new Table(
      byId("ports"),
      [
        { name: "Port", words: true, text: name },
        { name: "Leads to", words: true, sort: towards, text: (row) => towards(row) || "–" },
        { name: "Queue", sort: (row) => row.queue_bytes, show: queueCell },
        number("Peak", "peak_bytes", bytes, { className: "narrow-off", help: "greatest length of the queue between the last two readings" }),
        { name: "Limit", sort: (row) => row.limit_bytes, text: (row) => bytes(row.limit_bytes || null), className: "narrow-off" },
        { name: "Load", sort: load, text: (row) => percent(load(row)), help: "rate as a percentage of the capacity" },
        { name: "Flows", sort: (row) => row.active, text: (row) => (row.active === null ? count(row.flows) : `${count(row.active)}/${count(row.flows)}`), help: "active / all" },
        { name: "Windows", words: true, text: windowWords },
        number("Drops", "drops", count),
        { name: "State", words: true, sort: (row) => row.state, show: stateCell },
        { name: "Policy", words: true, text: (row) => row.policy, className: "narrow-off" },
      ],
      { key: (row) => portKey(row.dpid, row.port), onPick: onChoose },
    );
    this._form = byId("ports-filter");
    this._form.addEventListener("input", () => this.update());
    this._form.addEventListener("submit", (event) => event.preventDefault());
  }

  choose(key) {
    this._chosen = key;
    this.update();
  }

  update() {
    if (!this._store.state) return;
    const all = this._store.state.ports;
    const find = this._form.elements.find.value.trim().toLowerCase();
    const queues = this._form.elements.queues.checked;
    const rows = all.filter((row) => {
      if (queues && !row.limit_bytes) return false;
      const key = portKey(row.dpid, row.port);
      return !find || `${this._store.portName(key)} ${this._store.leadsTo(key)} ${key}`.toLowerCase().includes(find);
    });
    this._table.update(rows, this._chosen, MAX_ROWS);
    setText(byId("count-ports"), count(all.length));
    let note = "";
    if (!all.length) note = "No ports: no switch has connected yet.";
    else if (!rows.length) note = "No port matches.";
    else if (rows.length > MAX_ROWS) note = `${MAX_ROWS} of ${count(rows.length)} ports: type a name to find others.`;
    setText(byId("ports-note"), note);
  }
}
