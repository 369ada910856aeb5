"""``fairq run``: its arguments; experiments are in ../../experiments."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairq_ryu.cli.commands import options
from fairq_ryu.errors import UserError

NAME = "run"
HELP = "run an experiment"
PAPERS = "papers"
"""In place of a scenario: the series of all papers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--list", action="store_true", help="list scenarios and policies, and do nothing else"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="of `papers`: fewer and shorter experiments, planned for less than 25 minutes",
    )
    parser.add_argument(
        "--only",
        metavar="IDS",
        default="",
        help="of `papers`: these experiments only, comma separated, such as FQ3,SD2",
    )
    add_experiment(
        parser,
        "the order of the policies rotated",
        "; `fairq run papers`: the experiments of all papers, with the policies that belong to each",
    )


def add_experiment(parser: argparse.ArgumentParser, repeated: str, also: str = "") -> None:
    """Add what names an experiment, its policies and its result. ``repeated``: what repetitions differ in;
    ``also``: what may stand in place of a scenario.
    """
    parser.add_argument("scenario", nargs="?", help=f"a scenario's name (incast) or a .toml file{also}")
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory for the results; must be given")
    options.experiment_options(parser, repeated)
    options.full_option(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments import listing, ownership, runner

    if args.list:
        listing.show()
        return 0
    if args.scenario == PAPERS:
        return _papers(args)
    if args.quick or args.only:
        raise UserError("--quick and --only are of `fairq run papers`", "leave them out")
    chosen = experiment(args)
    with ownership.given_to_caller(args.out, runner.WRITTEN):
        code = runner.main(*chosen, args.config_file, args.repeat, args.full)
    if code in (0, 1):
        print(f"next: {options.typed('report', args.out)}", file=sys.stderr)
    return code


def _papers(args: argparse.Namespace) -> int:
    """The series. Raises `UserError`."""
    from fairq_ryu.experiments.papers import series

    given = {
        "--policy": args.policy != options.POLICIES,
        "--set": args.overrides,
        "--config-file": args.config_file,
        "--repeat": args.repeat != 1,
        "--full": args.full,
    }
    if wrong := [name for name, value in given.items() if value]:
        raise UserError(
            f"the series has its own policies and settings, and takes no {' and no '.join(wrong)}",
            "leave it out, or run one of its scenarios by name",
        )
    if args.out is None:
        raise UserError("no directory for the results", "add --out DIR, for example --out results/papers")
    ids = [each.strip() for each in args.only.split(",") if each.strip()]
    return series.main(args.out, args.quick, ids)


def experiment(args: argparse.Namespace) -> tuple[str, list[str], Path, dict[str, str]]:
    """The scenario, the policies, the directory for the result, and the settings that ``--set`` changes.
    Raises `UserError` if they are missing.
    """
    from fairq_ryu.experiments import listing, variants

    if args.scenario is None:
        raise listing.nothing_named()
    if args.out is None:
        example = f"--out results/{Path(args.scenario).stem}"
        raise UserError("no directory for the result", f"add --out DIR, for example {example}")
    return args.scenario, variants.split(args.policy), args.out, options.overrides(args)
