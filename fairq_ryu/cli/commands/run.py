"""``fairq run``: its arguments; experiments are in ../../experiments."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairq_ryu.cli.commands import options
from fairq_ryu.errors import UserError

NAME = "run"
HELP = "run an experiment"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--list", action="store_true", help="list scenarios and policies, and do nothing else"
    )
    add_experiment(parser, "the order of the policies rotated")


def add_experiment(parser: argparse.ArgumentParser, repeated: str) -> None:
    """Add what names an experiment, its policies and its result. ``repeated``: what repetitions differ in."""
    parser.add_argument("scenario", nargs="?", help="a scenario's name (incast) or a .toml file")
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory for result.json; must be given")
    options.experiment_options(parser, repeated)
    options.full_option(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments import listing, ownership, runner

    if args.list:
        listing.show()
        return 0
    chosen = experiment(args)
    with ownership.given_to_caller(args.out, runner.WRITTEN):
        code = runner.main(*chosen, args.config_file, args.repeat, args.full)
    if code in (0, 1):
        print(f"next: {options.typed('report', args.out)}", file=sys.stderr)
    return code


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
