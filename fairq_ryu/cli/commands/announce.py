"""``fairq announce``: its arguments; the request is made in ../announce.py."""

from __future__ import annotations

import argparse

from fairq_ryu.cli.commands import options

NAME = "announce"
HELP = "announce the size, deadline or priority of a flow to the controller"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    from fairq_ryu.cli.announce import byte_count, seconds

    parser.add_argument("--src", required=True, metavar="ADDRESS", help="IP address that sends the data")
    parser.add_argument("--dst", required=True, metavar="ADDRESS", help="IP address that receives it")
    parser.add_argument("--sport", type=int, metavar="PORT", help="TCP port of --src (default: any)")
    parser.add_argument("--dport", type=int, required=True, metavar="PORT", help="TCP port of --dst")
    parser.add_argument("--size", type=byte_count, metavar="BYTES", help="for example 12MB, or 64KiB")
    parser.add_argument(
        "--deadline",
        type=seconds,
        metavar="SECONDS",
        help="counted from the start of the flow, for example 0.8 or 300ms",
    )
    parser.add_argument(
        "--priority", type=int, metavar="N", help="share within its tenant, in proportion (usual: 100)"
    )
    parser.add_argument(
        "--ttl", type=seconds, metavar="SECONDS", help="time within which the flow must start (default: 60)"
    )
    parser.add_argument(
        "--count",
        type=int,
        metavar="N",
        help="without --sport: number of flows to which it applies (default: 1)",
    )
    parser.add_argument("--vlan", type=int, metavar="ID", help="VLAN of the flow; 0: none (default: any)")
    options.write_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu import client
    from fairq_ryu.cli import announce as announcing

    names = ("src", "dst", "sport", "dport", "size", "deadline", "priority", "ttl", "count", "vlan")
    values = {name: getattr(args, name) for name in names}
    url = client.address(args.url)
    return announcing.main(values, url, json_output=args.json, token_file=args.token_file)
