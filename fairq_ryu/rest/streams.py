"""Server-sent events (SSE): events as they happen, and the state periodically, to a few streams.

Events are added to the history, which decides which of them are kept, and sent to all streams. The state is
made and encoded once for all streams, and not at all without one. A stream whose reader does not keep up is
ended, so that its queue is bounded; of states only the latest waits, because it may be larger than events.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fairq_ryu.control.reports.events import Event, History, Kind, Occurrence
from fairq_ryu.model import dpid_text
from fairq_ryu.rest.reply import CLOSE, Answer, Reply, RequestRefused, encode
from fairq_ryu.ryu_compat.runtime import hub, queue

LOG = logging.getLogger(__name__)

# Seconds between two states, and without a frame until a heartbeat is sent.
INTERVAL = 0.5
HEARTBEAT = 10.0
MAX_STREAMS = 16
# Bounds of the queue of a reader: frames, and bytes.
_MAX_FRAMES = 256
# A clock that is this many seconds from what it was has been set, and not only slewed.
_CLOCK_STEP = 0.5
MAX_BYTES = 1 << 20
# States that may replace one that waits: 10 s of them.
_MAX_REPLACED = 20
_SEND_BUFFER = 256 << 10
SSE = "text/event-stream"


class Stream:
    """The frames for one reader. An iterable for WSGI, which calls :meth:`close` when the reader has
    disconnected.
    """

    def __init__(self, kind: Kind | None, live: bool, ended: Callable[[Stream], None]) -> None:
        self.kind = kind
        self.live = live
        self._ended = ended
        self._frames: Any = queue.LightQueue()
        self._bytes = 0
        # The latest state, if it waits: in its place in the queue is an empty frame.
        self._state = b""
        self._replaced = 0
        self._open = True
        self._socket: Any = None
        self._watcher: Any = None

    def watch(self, environ: Mapping[str, Any]) -> None:
        """Detect that the reader disconnects, also while there is nothing to send."""
        source = environ.get("eventlet.input")
        if source is None:
            return
        self._socket = source.get_socket()
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self._watcher = hub.spawn(self._watch)

    def _watch(self) -> None:
        # The reader sends nothing more on this connection: data or an error ends the stream, a timeout does
        # not.
        silent = True
        while silent and self._open:
            silent = False
            try:
                self._socket.recv(1)
            except TimeoutError:
                silent = True
            except OSError:
                pass
        self.end()

    def put(self, frame: bytes) -> None:
        """Send a frame; end the stream of a reader that is too far behind."""
        if not self._open:
            return
        waiting = self._frames.qsize()
        if waiting >= _MAX_FRAMES or (waiting and self._bytes + len(frame) > MAX_BYTES):
            self._end_slow_reader()
            return
        self._bytes += len(frame)
        self._frames.put(frame)

    def put_state(self, frame: bytes) -> None:
        """Send a state, in place of one that waits; end the stream of a reader that does not take them."""
        if self._state:
            self._replaced += 1
        else:
            self._replaced = 0
            self.put(b"")
        self._state = frame
        if self._replaced > _MAX_REPLACED:
            self._end_slow_reader()

    def _end_slow_reader(self) -> None:
        LOG.info("REST: a reader of events does not keep up: its stream is ended")
        self.end(now=True)

    def end(self, now: bool = False) -> None:
        """End the stream. ``now``: discard the queued frames and abort a blocked send."""
        if not self._open:
            return
        self._open = False
        self._ended(self)
        self._frames.put(None)
        if now and self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                frame = self._frames.get(timeout=HEARTBEAT)
            except queue.Empty:
                yield b": still here\n\n"
                continue
            if frame is None or not self._open:
                return
            self._bytes -= len(frame)
            if not frame:
                frame, self._state = self._state, b""
            yield frame

    def close(self) -> None:
        """The reader has disconnected."""
        self.end()
        if self._watcher is not None:
            hub.kill(self._watcher)


class Streams:
    """All open streams, at most ``limit``. ``state`` returns the state, a dict for JSON, and is called while
    a client reads it.
    """

    def __init__(
        self,
        limit: int = MAX_STREAMS,
        state: Callable[[], Answer] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.history = History()
        self.limit = limit
        self.state = state
        self._clock = clock
        self._offset = time.time() - clock()
        # Each controller numbers its events from 1: in streams, the number names its controller.
        self._life = f"{secrets.randbits(48):x}"
        self._open: set[Stream] = set()
        self._running = False

    def __len__(self) -> int:
        return len(self._open)

    def now(self) -> float:
        """The current time as events show it, Unix time."""
        return self._unix(self._clock())

    def _unix(self, at: float) -> float:
        """Events are stored with monotonic time and shown with Unix time, also after the clock was set."""
        offset = time.time() - self._clock()
        if abs(offset - self._offset) > _CLOCK_STEP:
            self._offset = offset
        return at + self._offset

    # Events

    def add(self, occurrence: Occurrence) -> None:
        """Something has occurred: keep it as an event, or count it for the event that follows."""
        event = self.history.add(self._clock(), occurrence)
        if event is not None:
            self._send(event)

    def tick(self) -> None:
        """Send the events that were counted and are due. To be called periodically."""
        for event in self.history.due(self._clock()):
            self._send(event)

    def row(self, event: Event) -> dict[str, Any]:
        """The row of an event."""
        flow = event.flow
        message = event.message
        if event.kind is Kind.LOSS:
            message = f"{message}: {event.times} packet{'s' if event.times > 1 else ''}"
        elif event.times > 1:
            message = f"{message} ({event.times} times)"
        return {
            "id": event.id,
            "time": round(self._unix(event.time), 3),
            "kind": str(event.kind),
            "message": message,
            "dpid": None if event.dpid is None else dpid_text(event.dpid),
            "port": event.port,
            "flow": None if flow is None else flow._asdict(),
            "count": event.times,
        }

    def _send(self, event: Event) -> None:
        listening = [s for s in self._open if s.kind in (None, event.kind)]
        if not listening:
            return
        data = json.dumps(self.row(event))
        for stream in listening:
            stream.put(_frame("event" if stream.live else str(event.kind), data, self._id(event)))

    def _id(self, event: Event) -> str:
        return f"{event.id}@{self._life}"

    def known(self, last: str) -> int | None:
        """The number in a ``Last-Event-ID``; 0 if it is that of an earlier controller, whose events are not
        kept; None: it is none.
        """
        number, mark, life = last.partition("@")
        if not (number.isascii() and number.isdigit() and len(number) <= 18 and mark):
            return None
        return int(number) if life == self._life else 0

    # Streams

    def events(self, since: int | None, kind: Kind | None, environ: Any) -> Reply:
        """A stream of events; with ``since``, first those after this number. Raises
        :class:`RequestRefused`.
        """
        stream = self._new(kind, False, environ)
        if since is not None:
            for event in self.history.since(self.after(since), kind, _MAX_FRAMES // 2):
                stream.put(_frame(str(event.kind), json.dumps(self.row(event)), self._id(event)))
        return _reply(stream)

    def after(self, since: int) -> int:
        """A number of an event that a client knows; 0 if there is none with it: it is that of an earlier
        controller, and all events are new.
        """
        return since if since <= self.history.last else 0

    def live(self, environ: Any) -> Reply:
        """A stream of states and events. Raises :class:`RequestRefused`."""
        stream = self._new(None, True, environ)
        if not self._running:
            self._running = True
            hub.spawn(self._send_states)
        return _reply(stream)

    def _new(self, kind: Kind | None, live: bool, environ: Any) -> Stream:
        if len(self._open) >= self.limit:
            raise RequestRefused(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"there are {self.limit} streams already, and a controller serves no more",
                {"Retry-After": "5"},
            )
        stream = Stream(kind, live, self._open.discard)
        self._open.add(stream)
        if environ.get("REQUEST_METHOD") == "HEAD":
            stream.end()
            return stream
        # Without this, the server would buffer frames until there are 4 KiB.
        environ["eventlet.minimum_write_chunk_size"] = 1
        environ.get(CLOSE, lambda: None)()  # no request comes after a stream
        stream.watch(environ)
        stream.put(b"retry: 2000\n\n")  # this also sends the headers
        return stream

    def _send_states(self) -> None:
        try:
            while True:
                listening = [stream for stream in self._open if stream.live]
                if not listening or self.state is None:
                    return
                started = time.monotonic()
                try:
                    frame = _frame("state", encode(self.state()).decode().rstrip("\n"))
                except Exception:
                    LOG.exception("REST: cannot make the state for the live page")
                    for stream in listening:
                        stream.end()
                    return
                for stream in [stream for stream in self._open if stream.live]:
                    stream.put_state(frame)
                hub.sleep(max(0.05, INTERVAL - (time.monotonic() - started)))
        finally:
            self._running = False


def _frame(name: str, data: str, known: str | None = None) -> bytes:
    """A frame; ``data`` is JSON without line ends, ``known`` what a client that reconnects says it knows."""
    head = f"event: {name}\n" if known is None else f"event: {name}\nid: {known}\n"
    return f"{head}data: {data}\n\n".encode()


def _reply(stream: Stream) -> Reply:
    return Reply(content_type=SSE, stream=stream, headers={"X-Accel-Buffering": "no"})
