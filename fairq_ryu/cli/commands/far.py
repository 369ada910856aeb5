"""``fairq far``: the far queues that the controller knows, as a table or as JSON."""

from __future__ import annotations

import argparse
import json

from fairq_ryu.cli.commands import options

NAME = "far"
HELP = "show the queues in switches above that are governed from here"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.url_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from rich.text import Text

    from fairq_ryu import client
    from fairq_ryu.cli import columns, show
    from fairq_ryu.cli.port_table import ports_table

    answer = show.fetch(client.address(args.url), "ports", {})
    rows = [row for row in answer["ports"] if row["far_of"] is not None]
    if args.json:
        print(json.dumps({"ports": rows}))
    elif rows:
        columns.console().print(ports_table({"ports": rows}))
    else:
        columns.console().print(
            Text("no far queues: section [far_queues] of the agents' configuration has them")
        )
    return 0
