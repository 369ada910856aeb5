"""``fairq report``: its arguments; reports are in ../../experiments/report."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "report"
HELP = "draw pictures and a page from a result"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with result.json")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="directory for page and pictures (default: that of the result)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments import ownership
    from fairq_ryu.experiments.report import report

    out = args.out or args.directory
    with ownership.given_to_caller(out, report.WRITTEN):
        return report.main(args.directory, out)
