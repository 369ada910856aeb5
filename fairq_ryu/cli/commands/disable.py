"""``fairq disable``: its arguments; the request is made in ../modes.py."""

from __future__ import annotations

import argparse

from fairq_ryu.cli.commands import options

NAME = "disable"
HELP = "let ports have no windows, for some time or until they are enabled"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    from fairq_ryu.cli.announce import seconds

    options.ports_options(parser)
    parser.add_argument(
        "--for",
        dest="seconds",
        type=seconds,
        metavar="TIME",
        help="enable them again after this time, for example 60s or 0.5 (default: until fairq enable)",
    )
    options.write_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu import client
    from fairq_ryu.cli import modes

    fields = {"bridge": args.bridge, "port": args.port, "seconds": args.seconds}
    url = client.address(args.url)
    return modes.main(NAME, fields, url, json_output=args.json, token_file=args.token_file)
