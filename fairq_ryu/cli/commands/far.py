"""``fairq far``: its arguments; the requests are made in ../far.py."""

from __future__ import annotations

import argparse

from fairq_ryu.cli.commands import options

NAME = "far"
HELP = "show, add and remove the queues in switches above that are governed from here"
_WORDS = "rate RATE, buffer BYTES and share PART, each or none: rate 10gbit buffer 1000000 share 0.98"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.write_options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    # Options stand before the action or behind it: behind it they have no defaults.
    none = argparse.SUPPRESS
    adding = actions.add_parser("add", help="add or change the far queue of a port", argument_default=none)
    removing = actions.add_parser("remove", help="remove the far queue of a port", argument_default=none)
    for each in (adding, removing):
        options.write_options(each)
        each.add_argument("bridge", metavar="BRIDGE", help="name or dpid of the bridge")
        each.add_argument("port", metavar="PORT", help="name of the interface by which the data arrives")
    adding.add_argument("words", nargs="*", default=[], metavar="WORD", help=_WORDS)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu import client
    from fairq_ryu.cli import far

    url = client.address(args.url)
    if args.action is None:
        return far.show_all(url, json_output=args.json)
    port = args.bridge, args.port
    words = args.words if args.action == "add" else None
    return far.change(port, words, url, json_output=args.json, token_file=args.token_file)
