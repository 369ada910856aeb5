// The current policy and its parameters, read-only.

import { byId, setText } from "./dom.js";
import { Table } from "./table.js";

export class PolicyTable {
  constructor() {
    const known = (value) => (value === null || value === undefined ? "–" : String(value));
    this._table = new Table(
      byId("policy"),
      [
        { name: "Parameter", words: true, text: (row) => row.name },
        { name: "Value", text: (row) => known(row.value) },
        { name: "Unit", words: true, text: (row) => row.unit ?? "" },
        { name: "Default", text: (row) => known(row.default) },
        { name: "Meaning", words: true, text: (row) => row.help ?? "", className: "help" },
      ],
      { key: (row) => row.name },
    );
  }

  async ask() {
    try {
      const answer = await fetch("/v1/policy", { cache: "no-store" });
      if (answer.ok) this._show(await answer.json());
    } catch {
      // The stream reports that the controller has disconnected.
    }
  }

  _show({ policy, parameters, ports }) {
    const others = (ports ?? []).map((rule) => `${rule.policy} for ${rule.match}`).join(", ");
    setText(byId("policy-name"), others ? `${policy}; ${others}` : policy);
    this._table.update(parameters ?? []);
  }
}
