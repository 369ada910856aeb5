"""``fairq doctor``: its arguments; the checks are in ../doctor."""

from __future__ import annotations

import argparse

NAME = "doctor"
HELP = "check what this machine has and lacks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.cli.doctor import checklist

    return checklist.main(json_output=args.json)
