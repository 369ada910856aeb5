// The connection to the controller: server-sent events, and the status to show when they stop.
//
// The stream is read with fetch and not with EventSource, which does not report why a stream was refused and
// chooses its own retry interval.

// A stream without data for this number of the controller's intervals counts as disconnected.
const PATIENCE = 5;
const LEAST_PATIENCE_MS = 2500;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;

// Kinds of status: "connecting", "live", "gone" (no server answers) and "refused" (the server gave a reason).
export class Live {
  constructor(url, { onState, onEvent, onStatus }) {
    this._url = url;
    this._onState = onState;
    this._onEvent = onEvent;
    this._onStatus = onStatus;
    this._patience = LEAST_PATIENCE_MS;
    this._wait = FIRST_WAIT_MS;
    this._lost = null; // the time of the disconnection, a Date
    this.status = { kind: "connecting" };
  }

  // Runs until the page is closed.
  async run() {
    for (;;) {
      const reason = await this._follow();
      this._lost ??= new Date();
      this._tell({ kind: reason ? "refused" : "gone", since: this._lost, reason });
      // A random delay, so that not all pages reconnect to a restarted controller at once.
      await new Promise((resolve) => setTimeout(resolve, this._wait * (0.8 + 0.4 * Math.random())));
      this._wait = Math.min(LONGEST_WAIT_MS, this._wait * 2);
    }
  }

  // Reads one stream to its end. Returns the reason of a refusal; undefined if the connection broke.
  async _follow() {
    const stop = new AbortController();
    let watchdog = 0;
    const watch = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => stop.abort(), this._patience);
    };
    watch();
    try {
      const headers = { Accept: "text/event-stream" };
      const answer = await fetch(this._url, { headers, signal: stop.signal, cache: "no-store" });
      if (!answer.ok) {
        const problem = await answer.json().catch(() => ({}));
        return problem.detail || `it answers ${answer.status} ${answer.statusText}`;
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const frames = new Frames();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return "";
        for (const [kind, data] of frames.cut(value)) {
          if (kind === "state") {
            watch();
            this._arrived(data);
          } else if (kind === "event") {
            this._call(this._onEvent, data);
          }
        }
      }
    } catch (error) {
      if (error instanceof SyntaxError) return "the data is in a format that this page does not know; reload the page";
      // No connection, a broken connection, or no data for too long. Errors of this page are handled elsewhere.
      if (stop.signal.aborted || error instanceof TypeError || error.name === "AbortError") return "";
      throw error;
    } finally {
      clearTimeout(watchdog);
      stop.abort();
    }
  }

  _arrived(frame) {
    this._patience = Math.max(LEAST_PATIENCE_MS, PATIENCE * 1000 * (frame.interval_s || 0.5));
    this._wait = FIRST_WAIT_MS;
    this._lost = null;
    this._tell({ kind: "live" });
    this._call(this._onState, frame);
  }

  // An exception of a message's handler does not end the stream; it is reported to the browser.
  _call(action, data) {
    try {
      action(data);
    } catch (fault) {
      reportError(fault);
    }
  }

  _tell(status) {
    const before = this.status;
    if (before.kind === status.kind && before.reason === status.reason && before.since === status.since) return;
    this.status = status;
    this._onStatus(status);
  }
}

// Splits the text of a stream into messages: [kind, data], with the data parsed as JSON. Ignores comments.
export class Frames {
  constructor() {
    this._rest = "";
  }

  cut(text) {
    const blocks = (this._rest + text).replaceAll("\r\n", "\n").split("\n\n");
    this._rest = blocks.pop();
    const found = [];
    for (const block of blocks) {
      let kind = "message";
      const data = [];
      for (const line of block.split("\n")) {
        if (line.startsWith("event:")) kind = line.slice(6).trim();
        else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
      }
      if (data.length) found.push([kind, JSON.parse(data.join("\n"))]);
    }
    return found;
  }
}
