"""``fairq report``: its arguments; reports are in ../../experiments/report."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairq_ryu.cli.commands import options
from fairq_ryu.errors import UserError

NAME = "report"
HELP = "print the table of a run or a sweep, and draw its pictures and a page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory of a run, a sweep or a series")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="directory for page and pictures (default: that of the result)",
    )
    parser.add_argument(
        "--flows",
        action="store_true",
        help="also write flows.parquet, a record for each flow (needs pyarrow)",
    )
    options.full_option(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments import ownership
    from fairq_ryu.experiments.papers import report as papers_report
    from fairq_ryu.experiments.papers import series
    from fairq_ryu.experiments.report import report
    from fairq_ryu.experiments.sweep import report as sweep_report
    from fairq_ryu.experiments.sweep import store

    out = args.out or args.directory
    several = series.is_series(args.directory) or store.is_sweep(args.directory)
    if args.full and several:
        raise UserError(
            f"{args.directory} is a sweep or a series, and --full is for a run",
            "leave it out, or name the directory of a point or an experiment",
        )
    if series.is_series(args.directory):
        quick = series.of_directory(args.directory)
        with ownership.given_to_caller(out, papers_report.WRITTEN):
            return papers_report.main(args.directory, quick, out, args.flows)
    if store.is_sweep(args.directory):
        if args.flows:
            raise UserError(
                f"{args.directory} is a sweep, and --flows is for a run or a series", "leave it out"
            )
        found = store.Store.load(args.directory)
        with ownership.given_to_caller(out, sweep_report.written(found)):
            return sweep_report.main(found, out)
    with ownership.given_to_caller(out, report.WRITTEN):
        return report.main(args.directory, out, args.full, args.flows)
