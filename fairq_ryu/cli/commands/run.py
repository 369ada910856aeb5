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
    parser.add_argument("scenario", nargs="?", help="a scenario's name (incast) or a .toml file")
    parser.add_argument(
        "--list", action="store_true", help="list scenarios and policies, and do nothing else"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory for result.json; must be given")
    options.experiment_options(parser)
    options.full_option(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments import listing, ownership, runner, variants

    if args.list:
        listing.show()
        return 0
    if args.scenario is None:
        raise listing.nothing_named()
    if args.out is None:
        example = f"--out results/{Path(args.scenario).stem}"
        raise UserError("no directory for the result", f"add --out DIR, for example {example}")
    overrides, policies = options.overrides(args), variants.split(args.policy)
    with ownership.given_to_caller(args.out, runner.WRITTEN):
        code = runner.main(
            args.scenario, policies, args.out, overrides, args.config_file, args.repeat, args.full
        )
    if code in (0, 1):
        print(f"next: {options.typed('report', args.out)}", file=sys.stderr)
    return code
