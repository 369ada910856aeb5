// The table of flows. There may be many thousands, so only the visible page is requested, periodically.

import { byId, setText } from "./dom.js";
import { bytes, count, endpoint, seconds } from "./format.js";
import { Table } from "./table.js";

const PAGE = 50;
const AGAIN_MS = 1000;
const MANY = 2000; // from this number of flows on, a filter costs the controller time: it is requested less often
const AGAIN_MANY_MS = 3000;
const TYPING_MS = 300;

const ADDRESS = /^(\d{1,3}(\.\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]*)$/i;
const PORT = /^(\d{1,5}|[0-9a-f]{1,16}:\d{1,10})$/i;
const CHECKS = {
  src: [ADDRESS, "From: an IP address, such as 10.0.0.1"],
  dst: [ADDRESS, "To: an IP address, such as 10.0.0.1"],
  port: [PORT, "Port: a TCP port, or DPID:PORT for a port of a switch, such as 1:3"],
};
// Kind of the window rule -> its label. A kind without a label is shown by its name.
const WINDOW_KINDS = { flow: "own rule", port: "same for the port", pool: "share of a pool" };

export class FlowsTable {
  constructor(store, { onFlow }) {
    this._store = store;
    this._onFlow = onFlow;
    this._offset = 0;
    this._total = 0;
    this._timer = 0;
    this._turn = 0;
    this._shown = false;
    this._port = null;
    this._chosen = null;
    const path = (ports) => ports.map(([dpid, port]) => `${store.switchName(dpid)}:${port}`).join(" ") || "–";
    this._table = new Table(
      byId("flows"),
      [
        { name: "From", words: true, text: (flow) => endpoint(flow.src, flow.sport) },
        { name: "To", words: true, text: (flow) => endpoint(flow.dst, flow.dport) + (flow.vlan ? ` (VLAN ${flow.vlan})` : "") },
        { name: "State", words: true, text: (flow) => flow.state },
        { name: "Sent", text: (flow) => bytes(flow.bytes) },
        { name: "Back", text: (flow) => bytes(flow.back_bytes) },
        { name: "Window", show: windowCell, help: "bytes in flight that the switches allow" },
        { name: "RTT", text: (flow) => seconds(flow.rtt_s) },
        { name: "Lowered", text: (flow) => count(flow.rewritten), help: "ACKs whose window was lowered" },
        { name: "Idle", text: (flow) => seconds(flow.idle_s) },
        { name: "Leaves by", words: true, help: "switch ports through which its data leaves, in the order of the path", text: (flow) => path(flow.ports) + (flow.pinned ? " (pinned)" : "") },
      ],
      { key: flowKey, onPick: (key, flow) => this._pick(key, flow) },
    );
    this._form = byId("flows-filter");
    this._form.addEventListener("input", () => this._filterChanged());
    this._form.addEventListener("reset", () => setTimeout(() => this._filterChanged()));
    this._form.addEventListener("submit", (event) => event.preventDefault());
    byId("flows-here").addEventListener("click", () => this._throughPort());
    byId("flows-back").addEventListener("click", () => this._turnTo(this._offset - PAGE));
    byId("flows-on").addEventListener("click", () => this._turnTo(this._offset + PAGE));
  }

  show(shown) {
    this._shown = shown;
    if (shown) this._ask();
    else clearTimeout(this._timer);
  }

  port(key) {
    this._port = key;
    byId("flows-here").disabled = !key;
  }

  // Called with every frame, which has the number of flows.
  update() {
    setText(byId("count-flows"), count(this._store.state.flows_total));
  }

  _pick(key, flow) {
    this._chosen = this._chosen === key ? null : key;
    this._onFlow(this._chosen && flow);
    this._table.update(this._table._last, this._chosen);
  }

  _throughPort() {
    const [dpid, port] = this._port.split(":");
    this._form.elements.port.value = `${dpid.replace(/^0+(?=.)/, "")}:${port}`;
    this._filterChanged();
  }

  _filterChanged() {
    this._offset = 0;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._ask(), TYPING_MS);
  }

  _turnTo(offset) {
    this._offset = Math.max(0, offset);
    this._ask();
  }

  // The filter as a query; null if it is not valid, with a message to the user.
  _query() {
    const query = new URLSearchParams({ limit: PAGE, offset: this._offset });
    let wrong = "";
    for (const field of this._form.elements) {
      const value = field.name ? field.value.trim() : "";
      const [fits, advice] = CHECKS[field.name] ?? [/(?:)/, ""];
      const bad = value !== "" && !fits.test(value);
      if (field.name) field.setAttribute("aria-invalid", String(bad));
      if (bad) wrong ||= advice;
      else if (value !== "") query.set(field.name, value);
    }
    setText(byId("flows-problem"), wrong);
    return wrong ? null : query;
  }

  async _ask() {
    clearTimeout(this._timer);
    const query = this._query();
    if (!this._shown || query === null) return;
    const turn = (this._turn += 1);
    if (!document.hidden && document.body.dataset.live === "live") {
      try {
        const answer = await fetch(`/v1/flows?${query}`, { cache: "no-store", headers: { "Fairq-Scope": "controller" } });
        const body = await answer.json();
        if (turn !== this._turn) return; // the filter has changed meanwhile
        if (answer.ok) this._take(body);
        else setText(byId("flows-problem"), body.detail ?? `The controller answers ${answer.status}.`);
      } catch {
        // The stream reports that the controller has disconnected.
        if (turn !== this._turn) return;
      }
    }
    if (!this._shown) return;
    this._timer = setTimeout(() => this._ask(), this._total > MANY ? AGAIN_MANY_MS : AGAIN_MS);
  }

  _take({ flows, total, limit, offset }) {
    this._total = total;
    if (!flows.length && offset > 0) {
      this._offset = Math.max(0, Math.floor((total - 1) / PAGE) * PAGE);
    }
    // While flows start and end between two requests, a connection may be listed twice.
    const unique = new Map(flows.map((flow) => [flowKey(flow), flow]));
    this._table.update([...unique.values()], this._chosen);
    if (this._chosen && unique.has(this._chosen)) this._onFlow(unique.get(this._chosen));
    setText(byId("flows-note"), total ? `${count(offset + 1)} to ${count(Math.min(total, offset + flows.length))} of ${count(total)}` : "No flow matches.");
    byId("flows-back").disabled = offset === 0;
    byId("flows-on").disabled = offset + limit >= total;
  }
}

function flowKey(flow) {
  return `${endpoint(flow.src, flow.sport)} ${endpoint(flow.dst, flow.dport)} ${flow.vlan ?? 0}`;
}

function windowCell(cell, flow) {
  setText(cell, bytes(flow.window_bytes));
  const kind = WINDOW_KINDS[flow.window_kind] ?? flow.window_kind;
  if (cell.title !== (kind ?? "")) cell.title = kind ?? "";
}

