"""The TCP or TLS connection to one controller: connect, retry, read, write, and close a silent peer.

    address -> connect -> ControllerSession (bytes in, bytes out) -> end -> wait -> connect ...

Bounded: a long reply is sent as the controller reads it. A controller that does not read loses its connection
when ``MAX_UNSENT`` bytes wait for it, or when it has read nothing for a time; one that sends no HELLO, half
a message, or nothing at all loses it after a time.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Callable

from fairq_ryu.agent.controller_session import ControllerSession
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.channel.control_socket import send_again_soon
from fairq_ryu.controller_target import ControllerTarget

log = logging.getLogger(__name__)
# All times in seconds.
# The time between two attempts doubles from the first of these to the second: its ports have no windows until
# an agent is back.
_FIRST_RETRY, _LAST_RETRY = 0.2, 1.0
# A controller that refuses this agent will do so until somebody installs something.
_AFTER_REFUSAL = 30.0
# After a connection that lasted at least this long, the first retry is quick again.
_STABLE = 5.0
_CONNECT_TIMEOUT = 5.0
ECHO_INTERVAL = 5.0
SILENCE_TIMEOUT = 15.0
MAX_UNSENT = 8 << 20
# From accept to the controller's HELLO, and from the first byte of a message to its last.
_HELLO_TIMEOUT = 10.0
_MESSAGE_TIMEOUT = 10.0
# How often silence and these timeouts are checked.
_CHECK_INTERVAL = 1.0
# Time for the requests of one controller before other tasks of the loop run.
_SLICE = 0.005
# Time for unsent bytes at the end of a connection.
_CLOSE_TIMEOUT = 1.0


class ControllerConnection:
    """Keeps up a connection to one controller."""

    def __init__(
        self,
        target: ControllerTarget,
        tls: ssl.SSLContext | None,
        server: OpenFlowServer,
        after_requests: Callable[[], None],
    ) -> None:
        """``after_requests`` is called after requests were processed, which may have changed thresholds."""
        self.target = target
        self.connected = False
        """A controller has sent its HELLO on the present connection."""
        self._tls = tls if target.secure else None
        self._server = server
        self._after_requests = after_requests
        self._writer: asyncio.StreamWriter | None = None

    def close(self) -> None:
        """Close the present connection; another is opened."""
        if self._writer is not None:
            self._writer.close()

    async def run(self) -> None:
        """Connect; after each end or failure try again, with growing delays up to the limit.

        A problem is logged once, and again after a different one.
        """
        delay, logged = _FIRST_RETRY, ""
        while True:
            try:
                # Not wait_for: in Python 3.11 it loses a cancellation that comes with the result, and then
                # the agent would never end.
                async with asyncio.timeout(_CONNECT_TIMEOUT):
                    reader, writer = await asyncio.open_connection(
                        self.target.host, self.target.port, ssl=self._tls
                    )
            # UnicodeError: a name that no host can have.
            except (OSError, TimeoutError, ssl.SSLError, UnicodeError) as error:
                why = error or type(error).__name__
                problem = f"cannot be reached ({why}); will keep trying. Is the controller running?"
            else:
                began = time.monotonic()
                session, fault = await self._serve(reader, writer)
                if session.refused:
                    delay = _AFTER_REFUSAL
                elif session.greeted:
                    problem = "connection lost; rules run out with their leases"
                    logged = ""
                    if time.monotonic() - began > _STABLE:
                        delay = _FIRST_RETRY
                else:
                    problem = "ends every connection at once. Is it OpenFlow 1.3, are the TLS files right?"
                if fault:
                    problem = f"{fault}; connection closed, will reconnect"
            if problem != logged:
                log.warning("controller %s: %s", self.target.text, problem)
                logged = problem
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(delay * 2, _LAST_RETRY)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[ControllerSession, str]:
        """Serve one connection until it ends. Returns its session, and the fault that ended it; "": none."""
        unread = writer.transport.get_write_buffer_size
        faults: list[str] = []

        def abort(fault: str) -> None:
            faults.append(fault)
            writer.transport.abort()

        def send(data: bytes) -> None:
            if faults:
                return
            writer.write(data)
            if unread() > MAX_UNSENT:
                abort(f"does not read: {unread()} bytes are queued")

        session = ControllerSession(self._server, send, unread)
        self._writer = writer
        send_again_soon(writer.get_extra_info("socket"))
        last_read = [time.monotonic()]
        # A task beside the reader: a timeout around each of 500 reads a second costs more than the reads.
        watchdog = asyncio.create_task(_watch_silence(session, last_read, abort))
        try:
            while not session.closed:
                data = await reader.read(1 << 16)
                if not data:
                    break
                last_read[0] = time.monotonic()
                more = True
                while more and not faults:
                    more = session.receive(data, _SLICE)
                    data = b""
                    self._after_requests()
                    if session.greeted and not self.connected:
                        self.connected = True
                        log.info("controller %s: connected", self.target.text)
                    await writer.drain()
                    if more:
                        last_read[0] = time.monotonic()  # it reads, and is not read from before it has
                        await asyncio.sleep(0)
        except (OSError, ssl.SSLError) as error:
            log.debug("controller %s: %s", self.target.text, error)
        except Exception as error:
            log.exception("controller %s: a fault of the agent", self.target.text)
            faults.append(f"a fault of the agent: {error}")
        finally:
            watchdog.cancel()
            self.connected = False
            self._writer = None
            writer.close()
            # A peer that does not read would keep unsent bytes for ever.
            asyncio.get_running_loop().call_later(_CLOSE_TIMEOUT, writer.transport.abort)
            try:
                session.close()
            except Exception as error:
                log.exception("controller %s: a fault of the agent", self.target.text)
                faults.append(f"a fault of the agent: {error}")
        return session, session.fault or "".join(faults[:1])


async def _watch_silence(
    session: ControllerSession, last_read: list[float], abort: Callable[[str], None]
) -> None:
    """Send an echo request to a silent controller; abort the connection if it stays silent, sends no HELLO,
    or does not complete a message.
    """
    began = pinged = time.monotonic()
    while True:
        await asyncio.sleep(_CHECK_INTERVAL)
        now = time.monotonic()
        silent = now - last_read[0]
        if not session.greeted and now - began > _HELLO_TIMEOUT:
            abort(f"no HELLO after {now - began:.0f} s")
        elif session.incomplete_since(now) > _MESSAGE_TIMEOUT:
            abort(f"incomplete message after {session.incomplete_since(now):.0f} s")
        elif silent > SILENCE_TIMEOUT:
            abort(f"silent for {silent:.0f} s")
        elif silent >= ECHO_INTERVAL and now - pinged >= ECHO_INTERVAL:
            pinged = now
            session.ping()
