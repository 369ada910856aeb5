"""``fairq enable``: its arguments; the request is made in ../modes.py."""

from __future__ import annotations

import argparse

from fairq_ryu.cli.commands import options

NAME = "enable"
HELP = "let ports that fairq disable has named have windows again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.ports_options(parser)
    options.write_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu import client
    from fairq_ryu.cli import modes

    fields = {"bridge": args.bridge, "port": args.port}
    url = client.address(args.url)
    return modes.main(NAME, fields, url, json_output=args.json, token_file=args.token_file)
