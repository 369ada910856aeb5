"""``fairq doctor``: its arguments; the checks are in ../doctor, ports of a bridge in ../port_report.py."""

from __future__ import annotations

import argparse

NAME = "doctor"
HELP = "check what this machine has and lacks, or the ports of a bridge"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--bridge",
        help="list the ports of this bridge: governed or not, why, and the commands that make it so",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    if args.bridge is not None:
        from fairq_ryu.cli import port_report

        return port_report.main(args.bridge, json_output=args.json)
    from fairq_ryu.cli.doctor import checklist

    return checklist.main(json_output=args.json)
