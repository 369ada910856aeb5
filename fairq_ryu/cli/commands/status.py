"""``fairq status``: its arguments, and the choice of the agent; the tables are in ../status_table.py."""

from __future__ import annotations

import argparse
import json

from fairq_ryu.errors import UserError

NAME = "status"
HELP = "show the queues, rules and counters of a bridge's agent"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("--bridge", help="the bridge (default: the only one with an agent)")
    parser.add_argument("--json", action="store_true", help="print JSON, with histograms")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.agent import status

    bridge = args.bridge
    if bridge is None:
        found = status.running()
        if len(found) != 1:
            there = f"agents run on {', '.join(found)}" if found else "no agent runs here"
            raise UserError(there, "name the bridge: fairq status --bridge NAME")
        bridge = found[0]
    about = status.ask(bridge)
    if args.json:
        print(json.dumps(about))
        return 0
    from fairq_ryu.cli.status_table import print_status

    print_status(about)
    return 0
