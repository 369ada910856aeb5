"""A process of simulated switches, each a bridge and its agent, with a connection each to every controller.

``python -m bench.simulated_switches`` reads its :class:`Settings` as a line of JSON from stdin. Every further
line is answered by a :class:`Report` on stdout; both count from the line before. Real switches have their own
processors: one of the machine's is left to the controller.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from bench.simulated_agent import SimulatedPorts, make_server
from bench.simulated_bridge import BridgeSession
from bench.simulated_flows import Copy, Flows
from fairq_ryu.agent.controller_session import ControllerSession
from fairq_ryu.agent.segment_copier import CopiedSegment
from fairq_ryu.channel.framing import HEADER
from fairq_ryu.channel.segment_copies import SegmentMatch
from fairq_ryu.packet.headers import ETH_IP

HOST = "127.0.0.1"
# Seconds between two steps of the traffic, and, as in the agent, between two searches for leases that have
# ended, and two passes through the flow map.
_STEP, _EXPIRY, _SWEEP = 0.02, 0.1, 1.0
# The switches of a process are advanced in so many groups, one after the other: real ones do not send at the
# same moment.
_GROUPS = 10
# A controller that does not read is sent more after this time, seconds; to one that has gone, agents connect
# again after that.
_RETRY, _CONNECT_AGAIN = 0.002, 0.5
_SUMMED = ("governed", "laws", "least", "renewals", "lapses", "hosts", "connections", "channels")


@dataclass(frozen=True, slots=True)
class Settings:
    """``port``: the controller's, and ``others`` of controllers that share the fabric with it; ``first``:
    number of the first switch; ``lasting``, ``rate``, ``seconds`` and ``sending``: see :class:`Flows`;
    ``bridges``: those connect, too, and not only their agents. Without, the agents copy segments.
    """

    port: int
    first: int
    switches: int
    ports: int
    lasting: int
    rate: float
    seconds: float
    sending: float = 1.0
    others: tuple[int, ...] = ()
    bridges: bool = True


@dataclass(slots=True)
class Traffic:
    """What has passed some connections. ``in`` is from the controller."""

    bytes_in: int = 0
    bytes_out: int = 0
    messages_in: int = 0
    messages_out: int = 0

    @property
    def bytes(self) -> int:
        """In both directions."""
        return self.bytes_in + self.bytes_out

    @property
    def messages(self) -> int:
        """In both directions."""
        return self.messages_in + self.messages_out

    def add(self, other: Traffic) -> None:
        """Add the counters of others."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(slots=True)
class Report:
    """The switches of a process. ``governed``: ports whose rule is in force now, ``laws``: those with a law
    in force; ``least``: the lowest number of governed ports since the last report; ``renewals`` and
    ``lapses`` of leases; ``hosts`` that the controller knows; ``gap``: longest time between two renewals of
    a port, seconds; ``left``: least part of a lease that was left when it was renewed; ``connections`` that
    have begun; ``channels``: connections of agents to controllers that are open; ``owned``: by the number of
    a switch, the generation of its owner, and the time of the monotonic clock from which on all rules are of
    this owner, seconds.
    """

    governed: int = 0
    laws: int = 0
    least: int = 0
    renewals: int = 0
    lapses: int = 0
    hosts: int = 0
    gap: float = 0.0
    left: float = 1.0
    connections: int = 0
    channels: int = 0
    owned: dict[str, tuple[int, float]] = field(default_factory=dict)
    agents: Traffic = field(default_factory=Traffic)
    bridges: Traffic = field(default_factory=Traffic)

    def add(self, other: Report) -> None:
        """Add another process, or another switch."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.gap, self.left = max(self.gap, other.gap), min(self.left, other.left)
        self.owned |= other.owned
        self.agents.add(other.agents)
        self.bridges.add(other.bridges)


def read_report(line: str) -> Report:
    """The report in a line of JSON."""
    values = json.loads(line)
    agents, bridges = Traffic(**values.pop("agents")), Traffic(**values.pop("bridges"))
    return Report(**values, agents=agents, bridges=bridges)


class MessageCounter:
    """Counts the messages of a stream that comes in pieces."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._skip = 0  # bytes of the last message that are still to come

    def count(self, data: bytes) -> int:
        """The number of messages that begin in the next piece."""
        at, found = 0, 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
            else:
                step = min(HEADER.size - len(self._head), len(data) - at)
                self._head += data[at : at + step]
                if len(self._head) == HEADER.size:
                    self._skip = HEADER.unpack(self._head)[2] - HEADER.size
                    self._head.clear()
                    found += 1
            at += step
        return found


class Channel(asyncio.Protocol):
    """A connection to the controller, whose bytes and messages are counted. ``session`` makes the switch's
    end of it: a function that takes received bytes. ``ended`` is called when the controller has closed it.
    """

    def __init__(
        self,
        traffic: Traffic,
        session: Callable[[Channel], Callable[[bytes], object]],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._traffic, self._session, self._ended = traffic, session, ended
        self._in, self._out = MessageCounter(), MessageCounter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._receive = self._session(self)

    def data_received(self, data: bytes) -> None:
        """Bytes from the controller."""
        self._traffic.bytes_in += len(data)
        self._traffic.messages_in += self._in.count(data)
        self._process(data)

    def _process(self, data: bytes) -> None:
        if self._receive(data):  # something is left until the controller has read
            asyncio.get_running_loop().call_later(_RETRY, self._process, b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """The controller has ended the connection."""
        if exc is not None:
            print(f"the controller has closed a connection: {exc}", file=sys.stderr)
        self._ended()

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._traffic.bytes_out += len(data)
        self._traffic.messages_out += self._out.count(data)
        self._transport.write(data)

    def unread(self) -> int:
        """The number of bytes that wait to be sent."""
        return self._transport.get_write_buffer_size()


class Switch:
    """A bridge and its agent."""

    def __init__(self, number: int, settings: Settings, now: float) -> None:
        self.flows = Flows(
            number, settings.ports, settings.lasting, settings.rate, settings.seconds, now, settings.sending
        )
        self.data = SimulatedPorts(self.flows)
        self.server = make_server(self.flows, number, self.data)
        self.report = Report(least=settings.ports)
        self._number, self._settings = number, settings
        self._bridge: BridgeSession | None = None
        self._connections = 0
        # The generation of the owner, when it came (ns), and from when on all rules are the owner's (s).
        self._generation, self._fenced_ns, self._owned_at = 0, 0, 0.0

    async def connect(self) -> None:
        """Connect the bridge and the agent, to every controller."""
        loop = asyncio.get_running_loop()

        def bridge(channel: Channel) -> Callable[[bytes], object]:
            self._bridge = BridgeSession(self.flows, self._number, channel.send)
            return self._bridge.receive

        for port in (self._settings.port, *self._settings.others):
            if self._settings.bridges:
                await loop.create_connection(lambda: Channel(self.report.bridges, bridge), HOST, port)
            await self._connect_agent(port)

    async def _connect_agent(self, port: int) -> None:
        sessions: list[ControllerSession] = []

        def begin(channel: Channel) -> Callable[[bytes], object]:
            session = ControllerSession(self.server, channel.send, channel.unread)
            sessions.append(session)

            def receive(data: bytes) -> object:
                began_ns = time.monotonic_ns()
                left = session.receive(data)
                self._note_owner(began_ns)
                return left

            return receive

        def ended() -> None:
            sessions.pop().close()
            again.append(loop.create_task(self._connect_again(port)))

        loop = asyncio.get_running_loop()
        again: list[asyncio.Task[None]] = []  # a task that nobody knows may be collected
        await loop.create_connection(lambda: Channel(self.report.agents, begin, ended), HOST, port)

    async def _connect_again(self, port: int) -> None:
        while True:
            await asyncio.sleep(_CONNECT_AGAIN)
            with contextlib.suppress(OSError):
                return await self._connect_agent(port)

    def _note_owner(self, began_ns: int) -> None:
        """Messages that arrived then have been processed: is there another owner, and has it all rules?"""
        generation = self.server.generation or 0
        if generation != self._generation:
            self._generation, self._fenced_ns, self._owned_at = generation, began_ns, 0.0
        if generation and not self._owned_at and self.data.ruled_since(self._fenced_ns):
            self._owned_at = time.monotonic()

    def advance(self, now: float) -> None:
        """Let the traffic go on; ``now`` in seconds."""
        if self._bridge is not None:
            self._bridge.advance(now)
        elif not self._settings.bridges:
            self.server.copier.deliver(map(_copied, self.flows.advance(now)), time.monotonic_ns())

    def expire(self, now_ns: int) -> None:
        """Remove rules whose lease has ended, and count the ports that have one."""
        self.data.expire(self.server, now_ns)
        self.report.least = min(self.report.least, self.data.governed(now_ns))

    def take_report(self, now_ns: int) -> Report:
        """The report since the last one."""
        self.expire(now_ns)
        leases, taken = self.data.take_leases(now_ns), self.report
        taken.governed, taken.laws = self.data.governed(now_ns), self.data.laws
        taken.renewals, taken.lapses, taken.left = leases.renewals, leases.lapses, leases.left
        taken.gap = leases.gap / 1e9
        taken.hosts = 0 if self._bridge is None else self._bridge.known
        taken.connections = self.flows.opened - self._connections
        self._connections = self.flows.opened
        taken.channels = len(self.server.sessions)
        taken.owned = {str(self._number): (self._generation, self._owned_at)} if self._owned_at else {}
        found = Report()
        found.add(taken)
        # The channels keep their counters: these start again.
        taken.least, taken.gap = taken.governed, 0.0
        for traffic in (taken.agents, taken.bridges):
            traffic.bytes_in = traffic.bytes_out = traffic.messages_in = traffic.messages_out = 0
        return found


def _copied(copy: Copy) -> CopiedSegment:
    rule = SegmentMatch(ETH_IP, copy.flag)
    return CopiedSegment(rule, copy.leaves, copy.frame, len(copy.frame))


async def _repeat(seconds: float, job: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(seconds)
        job()


async def run(settings: Settings) -> None:
    """Connect the switches, and answer until stdin ends."""
    loop = asyncio.get_running_loop()
    now = time.monotonic()
    numbers = range(settings.first, settings.first + settings.switches)
    switches = [Switch(number, settings, now) for number in numbers]

    groups = itertools.cycle(switches[first::_GROUPS] for first in range(_GROUPS))

    def advance() -> None:
        now = time.monotonic()
        for switch in next(groups):
            switch.advance(now)

    def expire() -> None:
        now_ns = time.monotonic_ns()
        for switch in switches:
            switch.expire(now_ns)

    turns = itertools.cycle(switches)
    for switch in switches:
        switch.data.sweep()
    for switch in switches:
        await switch.connect()
    jobs = [
        asyncio.create_task(_repeat(_STEP / _GROUPS, advance)),
        asyncio.create_task(_repeat(_EXPIRY, expire)),
        # In turn, as agents of their own would do.
        asyncio.create_task(_repeat(_SWEEP / len(switches), lambda: next(turns).data.sweep())),
    ]
    while await loop.run_in_executor(None, sys.stdin.readline):
        whole = Report()
        for switch in switches:
            whole.add(switch.take_report(time.monotonic_ns()))
        print(json.dumps(asdict(whole)), flush=True)
        for job in jobs:
            if job.done():
                job.result()  # it has failed: raise why
    for job in jobs:
        job.cancel()


def _leave_a_processor() -> None:
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, usable[1:] or usable)


if __name__ == "__main__":
    _leave_a_processor()
    asyncio.run(run(Settings(**json.loads(sys.stdin.readline()))))
