// What each tenant has at each port.

import { byId, setText } from "./dom.js";
import { bytes, count, percent, rate } from "./format.js";
import { portKey } from "./store.js";
import { Table } from "./table.js";

export class TenantsTable {
  constructor(store) {
    this._store = store;
    const port = (row) => (row.dpid === null ? "–" : store.portName(portKey(row.dpid, row.port)));
    const number = (title, field, text, extra = {}) => ({ name: title, sort: (row) => row[field], text: (row) => text(row[field]), ...extra });
    this._table = new Table(
      byId("tenants"),
      [
        { name: "Tenant", words: true, text: (row) => row.tenant },
        { name: "Port", words: true, text: port },
        number("Goodput", "goodput_bps", rate, { help: "acknowledged payload in the last second or so" }),
        number("Share", "share", percent, { help: "part of the port's windows that is the tenant's" }),
        number("Weight", "weight", count),
        number("Flows", "flows", count, { help: "flows that use their windows, or are new" }),
        number("Pool", "pool_bytes", bytes, { className: "narrow-off", help: "what its flows share" }),
        number("Floor broken", "floor_broken", count, { help: "ACKs at which one segment for each flow was more than the share" }),
      ],
      { key: (row) => `${row.tenant} ${row.dpid} ${row.port}` },
    );
  }

  update() {
    if (!this._store.state) return;
    const { tenants } = this._store.state;
    setText(byId("count-tenants"), count(tenants.length - 1));
    const none = { dpid: null, port: null, goodput_bps: null, share: null, flows: null, pool_bytes: null, floor_broken: null };
    const rows = tenants.flatMap(({ name, weight, ports }) => {
      const found = ports.length || name === "others" ? ports : [none];
      return found.map((row) => ({ ...row, tenant: name, weight }));
    });
    this._table.update(rows);
    let note = "“others” are all hosts that have no tenant.";
    if (!rows.length) note = "No tenants. The policy “tenants” shares ports out among them.";
    setText(byId("tenants-note"), note);
  }
}
