// Numbers as text. null and undefined, which mean "not known", become a dash.

export const UNKNOWN = "–";

const POWERS = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

// Three significant figures, in powers of 1000: 30466 is "30.5 k".
function scaled(value, space) {
  for (const [power, letter] of POWERS) {
    if (Math.abs(value) >= power * 0.9995) {
      const number = value / power;
      const digits = Math.abs(number) >= 99.95 ? 0 : 1;
      return `${number.toFixed(digits)}${space}${letter}`;
    }
  }
  return `${Math.round(value)}${space}`;
}

export function count(value) {
  return known(value) ? value.toLocaleString("en-GB") : UNKNOWN;
}

export function bytes(value) {
  return known(value) ? `${scaled(value, "\u00a0")}B` : UNKNOWN;
}

export function rate(bps) {
  return known(bps) ? `${scaled(bps, "\u00a0")}bit/s` : UNKNOWN;
}

// For labels on links, which have space for four characters.
export function shortRate(bps) {
  if (!known(bps)) return "";
  for (const [power, letter] of POWERS) {
    if (bps >= power * 0.995) {
      const number = bps / power;
      return `${number.toFixed(number >= 9.95 ? 0 : 1)}${letter}`;
    }
  }
  return String(Math.round(bps));
}

export function percent(share) {
  if (!known(share)) return UNKNOWN;
  return `${share >= 0.0995 || share < 0.0005 ? Math.round(share * 100) : (share * 100).toFixed(1)}\u00a0%`;
}

export function seconds(value) {
  if (!known(value)) return UNKNOWN;
  const sign = value < 0 ? "\u2212" : "";
  const size = Math.abs(value);
  if (size < 0.01 && size > 0) return `${sign}${(size * 1000).toFixed(1)}\u00a0ms`;
  if (size < 1) return `${sign}${Math.round(size * 1000)}\u00a0ms`;
  if (size < 60) return `${sign}${size.toFixed(1)}\u00a0s`;
  const whole = Math.round(size);
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)}\u00a0min ${whole % 60}\u00a0s`;
  if (whole < 172800) return `${sign}${Math.floor(whole / 3600)}\u00a0h ${Math.floor((whole % 3600) / 60)}\u00a0min`;
  return `${sign}${Math.floor(whole / 86400)}\u00a0days`;
}

// The format of a countdown does not change while it runs.
export function countdown(value) {
  if (!known(value)) return UNKNOWN;
  if (Math.abs(value) >= 60) return seconds(value);
  return `${value < 0 ? "\u2212" : ""}${Math.abs(value).toFixed(1)}\u00a0s`;
}

export function clock(unix) {
  return known(unix) ? new Date(unix * 1000).toLocaleTimeString("en-GB") : UNKNOWN;
}

export function endpoint(address, port) {
  const host = address.includes(":") ? `[${address}]` : address;
  return port === null || port === undefined ? host : `${host}:${port}`;
}
