// The live page: passes the controller's frames to the parts that show them.

import { byId, make, setText } from "./dom.js";
import { EventList } from "./events.js";
import { FlowsTable } from "./flows.js";
import { count, seconds } from "./format.js";
import { GifTable } from "./gif.js";
import { Live } from "./live.js";
import { PolicyTable } from "./policy.js";
import { PortPanel } from "./port.js";
import { PortsTable } from "./ports.js";
import { Store } from "./store.js";
import { TenantsTable } from "./tenants.js";
import { Topology } from "./topology.js";

const store = new Store();
const map = new Topology(byId("map"), store, { onChoose: choose });
const panel = new PortPanel(store);
const ports = new PortsTable(store, { onChoose: choose });
const flows = new FlowsTable(store, { onFlow: (flow) => map.showPath(flow) });
const gif = new GifTable(store);
const tenants = new TenantsTable(store);
const events = new EventList(store);
const policy = new PolicyTable();

// The chosen port is in the page's address, so that it survives a reload and can be shared as a link.
let chosen = fromAddress();
let byHand = chosen !== null;

function fromAddress() {
  const found = /^#port=([0-9a-f]{16}:\d+)$/.exec(location.hash);
  return found ? found[1] : null;
}

function choose(key) {
  byHand = true;
  history.replaceState(null, "", `#port=${key}`);
  put(key);
}

function put(key) {
  chosen = key;
  map.choose(key);
  panel.choose(key);
  ports.choose(key);
  flows.port(key);
}

addEventListener("hashchange", () => {
  const key = fromAddress();
  if (key) choose(key);
});

// The port to show before the user has chosen one: the port with the longest queue, or the smallest buffer.
function suggest() {
  if (byHand || chosen) return;
  const queues = store.state.ports.filter((row) => row.limit_bytes);
  queues.sort((a, b) => b.queue_bytes - a.queue_bytes || a.limit_bytes - b.limit_bytes);
  const row = queues[0];
  if (row) put(`${row.dpid}:${row.port}`);
}

// Frames

let began = null;
// Events with higher numbers are still to be requested; null: none are missing.
let missing = 0;

function onState(frame) {
  const { health } = frame;
  const start = frame.time - (health.uptime_s ?? 0);
  // A different controller than before: its events are different, and its policy may be.
  const anew = began === null || Math.abs(start - began) > 5;
  if (anew || health.policy !== shownPolicy) policy.ask();
  if (anew) {
    // A new controller numbers its events from 1.
    store.forgetEvents();
    missing = 0;
  }
  began = start;
  if (missing !== null) askEvents();
  shownPolicy = health.policy;
  store.update(frame);
  showFigures(frame);
  showWarnings(frame);
  map.update();
  if (chosen) panel.update();
  else suggest();
  ports.update();
  flows.update();
  gif.update();
  tenants.update();
  events.update(); // names may be known by now
}

let shownPolicy = null;

function onEvent(event) {
  store.addEvents([event]);
  if (event.kind === "policy") policy.ask();
  events.update();
}

// Requests the events from before the stream. The stream is open by then, so no event is missed between.
async function askEvents() {
  const since = missing;
  missing = null;
  try {
    const url = `/v1/events?limit=200&since=${since}`;
    const answer = await fetch(url, { cache: "no-store", headers: { Accept: "application/json" } });
    if (answer.ok) store.addEvents((await answer.json()).events);
  } catch {
    // The stream reports that the controller has disconnected; after a reconnect they are requested again.
    missing ??= since;
  }
  events.update();
}

// A switch that only its agent governs is not connected, and need not be.
function isThere({ connected, agent, way }) {
  return connected || (agent && way === "windows");
}

const FIGURES = [
  ["Policy", ({ health }) => health.policy],
  ["Switches", ({ switches }) => count(switches.filter(isThere).length)],
  ["Agents", ({ health }) => count(health.agents)],
  ["Flows", (frame) => `${count(frame.flows_active)} open of ${count(frame.flows_total)}`],
  ["Loop delay", ({ health }) => seconds(health.loop_delay_s), "less"],
  ["Up for", ({ health }) => seconds(Math.floor(health.uptime_s)).replace(".0", ""), "less"],
].map(([name, text, className]) => {
  const value = make("dd", {}, "–");
  byId("figures").append(make("div", { class: className }, make("dt", {}, name), value));
  return { value, text };
});

function showFigures(frame) {
  for (const { value, text } of FIGURES) setText(value, text(frame));
}

function named(dpids) {
  return dpids.map((dpid) => store.switchName(dpid)).join(", ");
}

let warned = null;

function showWarnings({ switches, health }) {
  const away = switches.filter((row) => !isThere(row)).map(({ dpid }) => dpid);
  const missing = health.agents_missing.filter((dpid) => !away.includes(dpid));
  const lines = [];
  if (away.length) lines.push(`Not connected: switch ${named(away)}. Its state is not known.`);
  if (missing.length) {
    lines.push(`No agent on switch ${named(missing)}: its queues are not measured, and no windows are installed there.`);
  }
  // Set only on a change, because screen readers read it aloud and frames arrive twice a second.
  if (lines.join("\n") === warned) return;
  warned = lines.join("\n");
  const banner = byId("warnings");
  banner.replaceChildren(...lines.map((line) => make("p", {}, line)));
  banner.classList.toggle("shown", lines.length > 0);
}

// The connection

const CONNECTION = { connecting: "Connecting", live: "Live", gone: "No connection", refused: "No live data" };

function onStatus({ kind, since, reason }) {
  document.body.dataset.live = kind;
  setText(byId("connection-text"), CONNECTION[kind]);
  const banner = byId("gone");
  const lost = kind === "gone" || kind === "refused";
  banner.classList.toggle("shown", lost);
  banner.replaceChildren();
  if (!lost) return;
  // Now and not after the reconnect: the first new event would hide that earlier ones are missing.
  missing ??= store.lastEvent;
  const at = since.toLocaleTimeString("en-GB");
  const what =
    kind === "gone"
      ? `The controller has not answered since ${at}.`
      : `The controller has sent no live data since ${at}: ${reason}.`;
  const advice = store.state
    ? "This page shows the last known state and tries to reconnect. If the controller is down, windows end by themselves and traffic continues without them."
    : "This page tries to reconnect.";
  banner.append(make("p", {}, what), make("p", {}, make("small", {}, advice)));
}

// Tabs

const TABS = {
  "tab-ports": () => {},
  "tab-flows": (on) => flows.show(on),
  "tab-gif": (on) => gif.show(on),
  "tab-tenants": () => {},
};
const tabs = Object.keys(TABS).map(byId);

function openTab(wanted, focus) {
  for (const tab of tabs) {
    const on = tab === wanted;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !on;
    TABS[tab.id](on);
  }
  if (focus) wanted.focus();
}

for (const tab of tabs) {
  tab.addEventListener("click", () => openTab(tab, false));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const place = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : tabs.indexOf(tab) + (step ?? NaN);
    if (Number.isNaN(place)) return;
    event.preventDefault();
    openTab(tabs.at(place % tabs.length), true);
  });
}

if (chosen) put(chosen);
else flows.port(null);
new Live("/v1/live", { onState, onEvent, onStatus }).run();
