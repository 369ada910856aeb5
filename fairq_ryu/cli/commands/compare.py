"""``fairq compare``: its arguments; comparisons are in ../../experiments/report/compare.py."""

from __future__ import annotations

import argparse

NAME = "compare"
HELP = "say which of two results is better, as far as their repetitions can show"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "one",
        metavar="A",
        help="directory of a result, DIR, or one policy of it, DIR:POLICY; without one, all policies that"
        " both results have are compared",
    )
    parser.add_argument("other", metavar="B", help="likewise; :POLICY is a policy of the same result")
    parser.add_argument(
        "--anyway", action="store_true", help="compare results whose scenarios or settings differ, too"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments.report import compare

    return compare.main(args.one, args.other, args.anyway)
