"""``fairq show``: its arguments; requests and tables are in ../show.py."""

from __future__ import annotations

import argparse

from fairq_ryu.cli.commands import options

NAME = "show"
HELP = "show ports, flows, paths, gif (flows by priority), events, policy, tenants and more"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    about = "gif: global information of flows, by priority, as SED and RSED keep it"
    kinds = ["ports", "flows", "paths", "gif", "events", "policy", "health"]
    kinds += ["announcements", "switches", "hosts", "links", "tenants"]
    parser.add_argument(
        "what", nargs="?", choices=kinds, default="ports", help=f"{about} (default: %(default)s)"
    )
    options.url_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=_seconds,
        const=2.0,
        metavar="SECONDS",
        help="repeat until Ctrl-C (default: every %(const)g s)",
    )
    flows = parser.add_argument_group("filters for flows", "checked by the controller")
    flows.add_argument("--src", metavar="ADDRESS", help="IP address of the side that opened the connection")
    flows.add_argument("--dst", metavar="ADDRESS", help="IP address of the other side")
    flows.add_argument("--port", help="TCP port of either side, or DPID:PORT, a switch port on its path")
    flows.add_argument("--state", help="for example established")
    lists = parser.add_argument_group("part of a list")
    lists.add_argument("--limit", metavar="N", help="maximum number of rows (default 100, at most 1000)")
    lists.add_argument("--offset", metavar="N", help="number of rows to skip")
    lists.add_argument("--kind", help="filter for events: for example cng, loss, missed or unsent")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu import client
    from fairq_ryu.cli import show

    names = ("src", "dst", "port", "state", "limit", "offset", "kind")
    filters = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    url = client.address(args.url)
    return show.main(args.what, url, filters, json_output=args.json, watch=args.watch)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:  # not a number is neither
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return value
