"""The load generator: roles, each a small process inside a host, started as
``python -m fairq_ryu.experiments.traffic.generator ROLE``.

    generator sink       receiver: receives the elephants' bytes
    generator elephants  sender:   long-lived bulk connections
    generator longflows  sender:   long TCP flows, each with its start and its congestion control
    generator udp        sender:   datagrams at a constant rate
    generator datagrams  receiver: counts them
    generator server     sender:   answers mice
    generator client     receiver: opens a volley of mice at once
    generator source     outside:  flows of all senders that start together
    generator arrivals   outside:  flows of all senders that start at random times
    generator scheduled  outside:  flows of all senders that start at given times
    generator collector  receiver: receives these flows, and records when each has arrived
    generator talkers    sender:   short messages on open connections
    generator echo       receiver: answers them
    generator syns       attacker: SYNs of connections that are never completed
    generator tracer     outside:  what TCP does in the senders, the queue and its law
    generator capture    outside:  packets at the hosts' interfaces

Control is one JSON object a line, commands on stdin and answers on stdout, so that none of it crosses
the network that is measured. Every command has ``cmd``; every answer repeats it as ``re``. End of stdin ends
the process. A role that fails answers ``{"re": "error", "message": ...}`` and exits with 1.

Standard library only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from fairq_ryu.experiments.measure.capture import Capture
from fairq_ryu.experiments.measure.collector import Collector
from fairq_ryu.experiments.traffic.arrivals import Arrivals
from fairq_ryu.experiments.traffic.bulk import Elephants, Sink
from fairq_ryu.experiments.traffic.datagrams import DatagramSink, UdpSender
from fairq_ryu.experiments.traffic.flow_sender import Source
from fairq_ryu.experiments.traffic.generator_control import Loop, Role, answer
from fairq_ryu.experiments.traffic.long_flows import LongFlows
from fairq_ryu.experiments.traffic.messages import Echo, Talkers
from fairq_ryu.experiments.traffic.mice import Client, Server
from fairq_ryu.experiments.traffic.scheduled import Scheduled
from fairq_ryu.experiments.traffic.syns import Syns
from fairq_ryu.experiments.traffic.tracer import Tracer

_ROLES: dict[str, Callable[[Loop, int], Role]] = {
    "sink": Sink,
    "elephants": lambda loop, _port: Elephants(loop),
    "longflows": lambda loop, _port: LongFlows(loop),
    "udp": lambda loop, _port: UdpSender(loop),
    "datagrams": DatagramSink,
    "server": Server,
    "client": lambda loop, _port: Client(loop),
    "source": lambda loop, _port: Source(loop),
    "arrivals": lambda loop, _port: Arrivals(loop),
    "scheduled": lambda loop, _port: Scheduled(loop),
    "collector": Collector,
    "talkers": lambda loop, _port: Talkers(loop),
    "echo": Echo,
    "syns": lambda loop, _port: Syns(loop),
    "tracer": lambda loop, _port: Tracer(loop),
    "capture": lambda loop, _port: Capture(loop),
}


def main(argv: list[str] | None = None) -> int:
    """Run one role until stdin ends."""
    parser = argparse.ArgumentParser(prog="traffic", description="load generator of fairq run")
    parser.add_argument("role", choices=list(_ROLES))
    parser.add_argument("--port", type=int, default=0, help="where to listen; 0: any free port")
    arguments = parser.parse_args(argv)
    loop = Loop(sys.stdin.fileno())
    try:
        role = _ROLES[arguments.role](loop, arguments.port)
        loop.run(role)
    except (OSError, RuntimeError, ValueError) as error:
        answer("error", message=str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
