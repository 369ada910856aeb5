"""``fairq host``: the connections of a host, or of a network namespace, behave like one."""

from __future__ import annotations

import argparse

NAME = "host"
HELP = "couple the TCP connections that a host sends by, so that they behave like one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--cc",
        required=True,
        metavar="NAME",
        help="the congestion control to load: ctrl_reno or ctrl_cubic",
    )
    parser.add_argument(
        "--tenant",
        required=True,
        metavar="NAME",
        help="whose the connections are; namespaces of one tenant are coupled with each other",
    )
    parser.add_argument(
        "--netns",
        default="",
        metavar="NAME",
        help="the network namespace: a name that `ip netns` lists, a pid, or a path (default: this one)",
    )
    parser.add_argument(
        "--priority",
        type=int,
        default=100,
        metavar="N",
        help="of each connection, from 1 to 1000: its part of what the group has (default: 100)",
    )
    parser.add_argument(
        "--port",
        action="append",
        default=[],
        metavar="PORT=N",
        help="another priority for connections to or from this port; may be repeated",
    )
    parser.add_argument(
        "--shared",
        action="store_true",
        help="all destinations are behind one bottleneck: couple connections to different ones too "
        "(default: those to one destination)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments.hostcc import service

    return service.serve(
        service.options(args.cc, args.tenant, args.netns, args.priority, args.port, args.shared)
    )
