// The positions of switches, hosts and links: hosts at the bottom, their switches above, up to the spines.
// Pure: draws nothing.

import { hostName, portKey } from "./store.js";

const BOX = 34; // height of a switch
const TOP = 14;
export const ARCH = 58; // height of a link between switches of one level
const HOST_ROW = 44; // height of a host and its name, below the gap under the last switch
const NARROWEST_SLOT = 15; // hosts with less space than this are drawn as one
const WIDEST_SLOT = 88;
const TANK_ABOVE = 16; // further room for the vessels of far queues above the highest switches

// A far queue is in the switch above: no port, but a vessel on top of the one that sees what leaves it.
export function isFar(row) {
  return row.far_of !== null && row.far_of !== undefined;
}

// The level of a switch: its number of hops from the nearest switch with hosts. `before` has the levels of the
// previous layout: a switch that has lost its links keeps its level.
export function levels(store, before) {
  const neighbours = new Map(store.state.switches.map(({ dpid }) => [dpid, new Set()]));
  for (const { a, b } of store.state.links) {
    neighbours.get(a[0])?.add(b[0]);
    neighbours.get(b[0])?.add(a[0]);
  }
  const edge = new Set();
  for (const [key, row] of store.ports) {
    if (row.role === "host" || store.hosts.has(key)) edge.add(row.dpid);
  }
  const found = new Map();
  let front = [...neighbours.keys()].filter((dpid) => edge.has(dpid));
  for (let level = 0; front.length; level += 1) {
    for (const dpid of front) found.set(dpid, level);
    const next = new Set();
    for (const dpid of front) {
      for (const other of neighbours.get(dpid)) if (!found.has(other) && neighbours.has(other)) next.add(other);
    }
    front = [...next];
  }
  for (const dpid of neighbours.keys()) if (!found.has(dpid)) found.set(dpid, before?.get(dpid) ?? 0);
  return { found, neighbours };
}

// Reduces crossings: orders each level by the mean position of its neighbours, from the bottom up and back.
function ordered(found, neighbours) {
  const rows = [];
  for (const [dpid, level] of found) (rows[level] ??= []).push(dpid);
  const filledRows = Array.from(rows, (row) => (row ?? []).sort());
  const place = new Map();
  const note = (row) => row.forEach((dpid, index) => place.set(dpid, (index + 0.5) / row.length));
  filledRows.forEach(note);
  const sweep = (level, towards) => {
    const mean = (dpid) => {
      const there = [...neighbours.get(dpid)].filter((other) => found.get(other) === level + towards);
      return there.length ? there.reduce((sum, other) => sum + place.get(other), 0) / there.length : place.get(dpid);
    };
    const means = new Map(filledRows[level].map((dpid) => [dpid, mean(dpid)]));
    filledRows[level].sort((a, b) => means.get(a) - means.get(b) || (a < b ? -1 : 1));
    note(filledRows[level]);
  };
  for (let level = 1; level < filledRows.length; level += 1) sweep(level, -1);
  for (let level = filledRows.length - 2; level >= 0; level -= 1) sweep(level, 1);
  for (let level = 1; level < filledRows.length; level += 1) sweep(level, -1);
  return filledRows;
}

// The inputs of a layout as a key. While the key stays the same, nothing moves.
export function signature(store) {
  // A port with a queue is drawn as a vessel, and the queue may become known later.
  const ports = [...store.ports.values()].map((row) => `${row.dpid}:${row.port}:${row.role}:${row.limit_bytes ? 1 : 0}`);
  const hosts = [...store.hosts.keys()];
  const links = store.state.links.map(({ a, b }) => `${a}-${b}`);
  return [store.state.switches.map(({ dpid }) => dpid), ports, hosts, links].map((part) => part.join()).join("|");
}

export function layout(store, width, height, before) {
  const { found, neighbours } = levels(store, before);
  const rows = ordered(found, neighbours);
  const depth = Math.max(1, rows.length);
  // A link between two switches of the top level is drawn above them.
  const over = store.state.links.some(({ a, b }) => found.get(a[0]) === depth - 1 && found.get(b[0]) === depth - 1);
  const above = [...store.ports.values()].some((row) => isFar(row) && found.get(row.dpid) === depth - 1);
  const top = TOP + (over || above ? ARCH : 0) + (above ? TANK_ABOVE : 0) + (depth > 1 ? 0 : 6);
  const gap = (height - top - HOST_ROW - depth * BOX) / depth;
  const y = (level) => top + (depth - 1 - level) * (BOX + gap);

  const boxes = new Map();
  const hosts = [];
  placeEdge(store, rows[0] ?? [], width, y(0), boxes, hosts, y(0) + BOX + gap);
  for (let level = 1; level < depth; level += 1) placeRow(rows[level], width, y(level), boxes);
  const ports = placePorts(store, boxes, hosts, found);
  // The vessels that show queues are as large as the space allows.
  const slot = Math.min(60, ...hosts.map((host) => host.slot));
  const tank = {
    width: Math.round(Math.max(9, Math.min(20, slot * 0.42))),
    height: Math.round(Math.max(20, Math.min(72, gap * 0.26))),
  };
  const links = store.state.links
    .map(({ a, b }) => ({ a: portKey(...a), b: portKey(...b) }))
    .filter(({ a, b }) => ports.has(a) && ports.has(b));
  const thickness = slot < 30 ? 0.6 : 1; // of lines
  return { width, height, thickness, boxes, hosts, ports, links, tank, levels: found };
}

function portsOf(store) {
  const found = new Map();
  for (const [key, row] of store.ports) {
    if (!found.has(row.dpid)) found.set(row.dpid, []);
    found.get(row.dpid).push(key);
  }
  for (const keys of found.values()) keys.sort((a, b) => store.ports.get(a).port - store.ports.get(b).port);
  return found;
}

// The width is divided among the switches with hosts, by their numbers of hosts.
function placeEdge(store, row, width, y, boxes, hosts, hostY) {
  const all = portsOf(store);
  const below = new Map(
    row.map((dpid) => [dpid, (all.get(dpid) ?? []).filter((key) => !store.peers.has(key) && store.hosts.has(key))]),
  );
  const space = 10;
  const slots = row.map((dpid) => Math.max(2, below.get(dpid).length));
  const total = slots.reduce((sum, each) => sum + each, 0);
  const slot = Math.min(WIDEST_SLOT, (width - space * row.length) / Math.max(1, total));
  const single = slot >= NARROWEST_SLOT;
  const room = width / Math.max(1, row.length);
  let x = single ? (width - slot * total - space * (row.length - 1)) / 2 : 0;
  row.forEach((dpid, index) => {
    const keys = below.get(dpid);
    const wide = single ? slot * slots[index] : room - space;
    boxes.set(dpid, { dpid, x, y, width: wide, height: BOX });
    if (single) {
      const inset = (slots[index] - keys.length) / 2;
      keys.forEach((key, place) => hosts.push({ keys: [key], x: x + (place + inset + 0.5) * slot, y: hostY, slot }));
    } else if (keys.length) {
      hosts.push({ keys, x: x + wide / 2, y: hostY, slot: room });
    }
    x += wide + space;
  });
}

function placeRow(row, width, y, boxes) {
  const room = width / Math.max(1, row.length);
  const wide = Math.min(132, room * 0.78);
  row.forEach((dpid, index) => {
    boxes.set(dpid, { dpid, x: (index + 0.5) * room - wide / 2, y, width: wide, height: BOX });
  });
}

// A port is on the side of the switch to which it leads: top or bottom.
function placePorts(store, boxes, hosts, found) {
  const ports = new Map();
  const middle = (box) => box.x + box.width / 2;
  for (const host of hosts) {
    const [key] = host.keys;
    const box = boxes.get(store.ports.get(key).dpid);
    for (const each of host.keys) ports.set(each, { key: each, x: host.x, y: box.y + box.height, side: 1 });
  }
  const sides = new Map();
  for (const [key, peer] of store.peers) {
    const [here, there] = [key.split(":")[0], peer.split(":")[0]];
    if (!boxes.has(here) || !boxes.has(there) || !store.ports.has(key)) continue;
    const down = found.get(there) < found.get(here);
    const side = `${here} ${down ? 1 : -1}`;
    if (!sides.has(side)) sides.set(side, []);
    sides.get(side).push({ key, towards: middle(boxes.get(there)) });
  }
  for (const [key, row] of store.ports) {
    if (!isFar(row) || !boxes.has(row.dpid)) continue;
    const side = `${row.dpid} -1`;
    if (!sides.has(side)) sides.set(side, []);
    sides.get(side).push({ key, towards: middle(boxes.get(row.dpid)) });
  }
  for (const [side, entries] of sides) {
    const [dpid, way] = side.split(" ");
    const box = boxes.get(dpid);
    entries.sort((a, b) => a.towards - b.towards || (a.key < b.key ? -1 : 1));
    // Ports are close together in the middle of a wide box, so that links to the next level are easier to follow.
    const step = Math.min(30, box.width / (entries.length + 1));
    entries.forEach(({ key }, index) => {
      const x = middle(box) + (index - (entries.length - 1) / 2) * step;
      ports.set(key, { key, x, y: way === "1" ? box.y + box.height : box.y, side: Number(way) });
    });
  }
  return ports;
}

export function describeHost(store, keys) {
  if (keys.length > 1) return `${keys.length} hosts`;
  const there = store.hosts.get(keys[0]) ?? [];
  return there.length > 1 ? `${there.length} hosts` : there.length ? hostName(there[0]) : "";
}

// The common prefix of all hosts' IPv4 addresses, up to a dot; labels omit it.
export function commonPrefix(names) {
  const quads = names.filter((name) => /^\d+(\.\d+){3}$/.test(name)).map((name) => name.split("."));
  if (quads.length < 2) return "";
  let same = 0;
  while (same < 3 && quads.every((quad) => quad[same] === quads[0][same])) same += 1;
  return same ? `${quads[0].slice(0, same).join(".")}.` : "";
}
