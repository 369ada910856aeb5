// The list of events, newest first, with filters by kind.

import { byId, make } from "./dom.js";
import { clock } from "./format.js";

const DRAWN = 150;

// Kind -> its label. Kinds that report problems are highlighted.
const KINDS = {
  cng: "congested",
  nom: "normal",
  incast: "incast",
  share: "share",
  others: "others",
  rate: "rate found",
  loss: "loss",
  law: "law",
  repin: "re-pin",
  missed: "missed",
  met: "met",
  unsent: "unsent",
  bridge: "bridge",
  agent: "agent",
  policy: "policy",
  mode: "mode",
  far: "far queue",
};
const TROUBLE = new Set(["cng", "loss", "missed", "unsent", "incast", "share", "others", "law"]);

export class EventList {
  constructor(store) {
    this._store = store;
    this._list = byId("event-list");
    this._hidden = new Set();
    this._due = false;
    for (const [kind, name] of Object.entries(KINDS)) {
      const box = make("input", { type: "checkbox", name: kind });
      box.checked = true;
      box.addEventListener("change", () => {
        if (box.checked) this._hidden.delete(kind);
        else this._hidden.add(kind);
        this.update();
      });
      byId("kinds").append(make("label", {}, box, name));
    }
    this.update();
  }

  // Many events may arrive together; they are drawn once.
  update() {
    if (this._due) return;
    this._due = true;
    requestAnimationFrame(() => {
      this._due = false;
      this._draw();
    });
  }

  _draw() {
    const events = this._store.events.filter(({ kind }) => !this._hidden.has(kind)).slice(0, DRAWN);
    const messages = events.map((event) => this._store.message(event));
    const ids = events.map(({ id }, place) => `${id} ${messages[place]}`).join("\n");
    if (ids === this._drawn) return;
    this._drawn = ids;
    const items = events.map((event, place) => {
      const time = make("time", { datetime: new Date(event.time * 1000).toISOString() }, clock(event.time));
      const kind = make("span", { class: "kind" }, KINDS[event.kind] ?? event.kind);
      const item = make("li", { class: TROUBLE.has(event.kind) ? "bad" : null, "data-kind": event.kind }, time, kind);
      item.append(make("span", { class: "message" }, messages[place]));
      return item;
    });
    if (!items.length) items.push(make("li", { class: "none" }, this._store.events.length ? "No events of the selected kinds." : "No events yet."));
    const top = this._list.scrollTop;
    const height = this._list.scrollHeight;
    this._list.replaceChildren(...items);
    // The scroll position of a user who reads older events stays.
    if (top > 0) this._list.scrollTop = top + this._list.scrollHeight - height;
  }
}
