// The last minute of a port, on a canvas: queue with target and limit, windows, drops.

import { HISTORY_SECONDS } from "./store.js";
import { bytes, count } from "./format.js";

const LEFT = 52;
const RIGHT = 54; // space for the names of lines, beside their ends
const GAP_SECONDS = 2; // maximum interval between two samples that are joined by a line
const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const PLOTS = [
  { name: "queue", from: 0.055, to: 0.56 },
  { name: "windows", from: 0.645, to: 0.83 },
  { name: "drops", from: 0.9, to: 0.945 },
];

export class Chart {
  constructor(canvas, readout) {
    this._canvas = canvas;
    this._readout = readout;
    this._samples = [];
    this._events = [];
    this._cursor = null; // seconds before the newest sample
    const redraw = () => this.draw();
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    canvas.addEventListener("pointermove", (event) => this._point(event));
    canvas.addEventListener("pointerleave", () => this._at(null));
    canvas.addEventListener("blur", () => this._at(null));
    canvas.addEventListener("keydown", (event) => this._key(event));
  }

  show(samples, events) {
    this._samples = samples;
    this._events = events;
    this.draw();
  }

  _point(event) {
    const box = this._canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    this._at(share < -0.02 || share > 1.02 ? null : (1 - share) * HISTORY_SECONDS);
  }

  _key(event) {
    const step = { ArrowLeft: 1, ArrowRight: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (event.key === "Escape") this._at(null);
    else if (step) this._at(Math.max(0, Math.min(HISTORY_SECONDS, (this._cursor ?? 0) + step)));
    else return;
    event.preventDefault();
  }

  _at(cursor) {
    this._cursor = cursor;
    this.draw();
  }

  draw() {
    const canvas = this._canvas;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = FONT;
    const style = getComputedStyle(canvas);
    const ink = (name) => style.getPropertyValue(`--${name}`).trim();
    const now = this._samples.at(-1)?.time ?? 0;
    const x = (time) => LEFT + (1 - (now - time) / HISTORY_SECONDS) * (width - LEFT - RIGHT);
    const samples = this._samples.filter((sample) => sample.time >= now - HISTORY_SECONDS);
    const areas = PLOTS.map(({ name, from, to }) => ({ name, top: height * from, bottom: height * to }));
    const frame = { pen, ink, x, width, samples, now };
    drawQueue(frame, areas[0], this._events);
    drawWindows(frame, areas[1]);
    drawDrops(frame, areas[2]);
    drawTime(frame, height);
    this._drawCursor(frame, areas, samples, now);
  }

  _drawCursor({ pen, ink, x }, areas, samples, now) {
    if (this._cursor === null || !samples.length) {
      if (this._readout.textContent) this._readout.textContent = "";
      return;
    }
    const wanted = now - this._cursor;
    const near = samples.reduce((one, other) => (Math.abs(other.time - wanted) < Math.abs(one.time - wanted) ? other : one));
    pen.strokeStyle = ink("ink-soft");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x(near.time), areas[0].top);
    pen.lineTo(x(near.time), areas.at(-1).bottom);
    pen.stroke();
    const words = [
      `${Math.round(now - near.time)} s ago: queue ${bytes(near.queue)}`,
      `peak ${bytes(near.peak)}`,
      near.pool !== null && `pool ${bytes(near.pool)}`,
      near.window !== null && `window ${bytes(near.window)}`,
      near.dropped > 0 && `${count(near.dropped)} dropped`,
      near.congested && "congested (CNG)",
      ...this._events.filter((event) => Math.abs(event.time - near.time) < 0.5).map((event) => event.kind),
    ];
    this._readout.textContent = words.filter(Boolean).join(", ");
  }
}

function scale(area, top) {
  return (value) => area.bottom - (Math.min(value, top) / top) * (area.bottom - area.top);
}

function most(samples, ...fields) {
  return samples.reduce((max, sample) => Math.max(max, ...fields.map((field) => sample[field] ?? 0)), 0);
}

// The ticks of an axis: at most four steps of 1, 2 or 5 times a power of ten.
function ticks(top) {
  const rough = top / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let value = 0; value <= top * 1.001; value += step) found.push(value);
  return found;
}

function axis({ pen, ink, width }, area, y, values) {
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const value of values) {
    pen.strokeStyle = ink("line");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(LEFT, Math.round(y(value)) + 0.5);
    pen.lineTo(width - RIGHT, Math.round(y(value)) + 0.5);
    pen.stroke();
    pen.fillStyle = ink("ink-soft");
    pen.fillText(value ? bytes(value).replace(".0", "") : "0", LEFT - 6, y(value));
  }
}

function heading({ pen, ink }, text, y) {
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillStyle = ink("ink-soft");
  pen.fillText(text, LEFT, y);
}

// Calls `piece` for each run of samples that have the field and follow each other closely.
function runs(samples, field, piece) {
  let run = [];
  for (const sample of samples) {
    const there = sample[field] !== null && sample[field] !== undefined;
    if (run.length && (!there || sample.time - run.at(-1).time > GAP_SECONDS)) {
      piece(run);
      run = [];
    }
    if (there) run.push(sample);
  }
  if (run.length) piece(run);
}

function line({ pen, x, samples }, field, y, style, width, dash = []) {
  pen.strokeStyle = style;
  pen.lineWidth = width;
  pen.lineJoin = "round";
  pen.setLineDash(dash);
  runs(samples, field, (run) => {
    pen.beginPath();
    run.forEach((sample, index) => pen[index ? "lineTo" : "moveTo"](x(sample.time), y(sample[field])));
    // A single sample is drawn as a point.
    if (run.length === 1) pen.lineTo(x(run[0].time) + 1, y(run[0][field]));
    pen.stroke();
  });
  pen.setLineDash([]);
}

// Draws names beside the ends of lines without overlap: [text, y, style].
function names({ pen, width }, area, words) {
  const found = words.filter(([, y]) => y !== null).sort((one, other) => one[1] - other[1]);
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  let above = -Infinity;
  found.forEach(([text, y, style], index) => {
    const room = area.bottom - (found.length - 1 - index) * 13;
    const at = Math.min(room, Math.max(above + 13, y));
    pen.fillStyle = style;
    pen.fillText(text, width - RIGHT + 6, at);
    above = at;
  });
}

function drawQueue(frame, area, events) {
  const { pen, ink, x, samples, now } = frame;
  const last = samples.at(-1);
  const top = Math.max(most(samples, "queue", "peak", "target") * 1.12, most(samples, "limit") * 1.06, 1000);
  const y = scale(area, top);
  pen.fillStyle = ink("alert-wash");
  runs(samples, "congested", (run) => {
    run.forEach((sample, index) => {
      const next = run[index + 1];
      if (sample.congested && next) pen.fillRect(x(sample.time), area.top, x(next.time) - x(sample.time) + 0.5, area.bottom - area.top);
    });
  });
  axis(frame, area, y, ticks(top));
  heading(frame, "Queue", area.top - 6);
  line(frame, "peak", y, ink("peak"), 1);
  pen.fillStyle = ink("water");
  runs(samples, "queue", (run) => {
    pen.beginPath();
    pen.moveTo(x(run[0].time), y(0));
    for (const sample of run) pen.lineTo(x(sample.time), y(sample.queue));
    pen.lineTo(x(run.at(-1).time), y(0));
    pen.fill();
  });
  line(frame, "queue", y, ink("accent"), 1.8);
  line(frame, "limit", y, ink("alert"), 1.6);
  line(frame, "target", y, ink("ink"), 1.4, [6, 4]);
  const at = (field) => (last?.[field] ? y(last[field]) : null);
  names(frame, area, [
    ["limit", at("limit"), ink("alert")],
    ["target", at("target"), ink("ink")],
    ["queue", at("queue"), ink("accent")],
  ]);
  pen.fillStyle = ink("alert");
  for (const event of events) {
    if (event.time < now - HISTORY_SECONDS || event.time > now || !["loss", "incast", "repin"].includes(event.kind)) continue;
    pen.beginPath();
    pen.moveTo(x(event.time), area.bottom);
    pen.lineTo(x(event.time) - 4, area.bottom + 7);
    pen.lineTo(x(event.time) + 4, area.bottom + 7);
    pen.fill();
  }
}

function drawWindows(frame, area) {
  const { ink, samples } = frame;
  const last = samples.at(-1);
  const top = Math.max(most(samples, "pool", "window") * 1.15, 1000);
  const y = scale(area, top);
  const all = ticks(top);
  axis(frame, area, y, [0, all.at(-1)]);
  const none = most(samples, "pool", "window") === 0;
  heading(frame, none ? "Windows: none installed" : "Windows", area.top - 6);
  line(frame, "pool", y, ink("pool"), 1.8);
  line(frame, "window", y, ink("ink"), 1.4, [2, 3]);
  const at = (field) => (last?.[field] ? y(last[field]) : null);
  names(frame, area, [
    ["pool", at("pool"), ink("pool")],
    ["window", at("window"), ink("ink")],
  ]);
}

function drawDrops(frame, area) {
  const { pen, ink, x, samples, width } = frame;
  const all = samples.reduce((sum, sample) => sum + sample.dropped, 0);
  heading(frame, all ? `Drops: ${count(all)} in this minute, at most ${count(most(samples, "dropped"))} between two readings` : "Drops: none in this minute", area.top - 6);
  pen.strokeStyle = ink("line");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(LEFT, Math.round(area.bottom) + 0.5);
  pen.lineTo(width - RIGHT, Math.round(area.bottom) + 0.5);
  pen.stroke();
  pen.fillStyle = ink("alert");
  const top = Math.max(1, most(samples, "dropped"));
  const y = scale(area, top);
  for (const { time, dropped } of samples) {
    if (dropped) pen.fillRect(x(time) - 1.5, Math.min(y(dropped), area.bottom - 2), 3, Math.max(2, area.bottom - y(dropped)));
  }
}

function drawTime({ pen, ink, x, now, width }, height) {
  pen.fillStyle = ink("ink-soft");
  pen.textBaseline = "alphabetic";
  for (const ago of width < 420 ? [60, 30, 0] : [60, 45, 30, 15, 0]) {
    pen.textAlign = ago === 0 ? "right" : ago === HISTORY_SECONDS ? "left" : "center";
    pen.fillText(ago ? `${ago} s ago` : "now", x(now - ago), height - 3);
  }
}
