"""``fairq release``: its arguments; the work is done in ../release.py."""

from __future__ import annotations

import argparse

NAME = "release"
HELP = "remove from a bridge what fairq_ryu has put into it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("--bridge", required=True, help="the Open vSwitch bridge, e.g. s1")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.cli import release

    return release.main(args.bridge)
