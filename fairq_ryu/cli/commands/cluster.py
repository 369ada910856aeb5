"""``fairq cluster``: its arguments; the work is done in ../cluster.py."""

from __future__ import annotations

import argparse

from fairq_ryu.cli.commands import options

NAME = "cluster"
HELP = "make the database that several controllers of a fabric share, and show who owns which bridge"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.url_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    none = argparse.SUPPRESS
    making = actions.add_parser(
        "init",
        help="make the file of a database, and print the command that serves it",
        argument_default=none,
    )
    making.add_argument("file", metavar="FILE", help="the file, such as /var/lib/fairq/fairq.db")
    making.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="where controllers connect: unix:/FILE (default: FILE with .sock), or tcp:ADDRESS:PORT",
    )
    making.add_argument(
        "--raft",
        metavar="ADDRESS",
        help="this server is one of a cluster: where it talks to the others, tcp:ADDRESS:PORT",
    )
    making.add_argument(
        "--join",
        metavar="ADDRESS",
        action="append",
        help="the --raft ADDRESS of a server that is in the cluster already; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.cli import cluster

    if args.action == "init":
        listen, raft, join = (getattr(args, name, None) for name in ("listen", "raft", "join"))
        return cluster.init(args.file, listen, raft, join or [])
    from fairq_ryu import client

    return cluster.show(client.address(args.url), json_output=args.json)
