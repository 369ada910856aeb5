"""``fairq sweep``: its arguments; sweeps are in ../../experiments/sweep."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairq_ryu.cli.commands import options

NAME = "sweep"
HELP = "run an experiment for each of several values of its settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("scenario", help="a scenario's name (incast) or a .toml file")
    parser.add_argument(
        "axes",
        nargs="+",
        metavar="SETTING=VALUES",
        help="a setting of the scenario and its values: 1..128 (doubled each time), 10..100/10 (in steps of"
        " 10) or 4,8,16; of several settings, all combinations are run",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="directory of the sweep (default: results/sweep-SCENARIO-SETTINGS); what is there already is not"
        " run again",
    )
    options.experiment_options(parser, "the order of the policies rotated")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    from fairq_ryu.experiments import variants
    from fairq_ryu.experiments.sweep import sweep

    overrides, policies = options.overrides(args), variants.split(args.policy)
    out = args.out or sweep.default_directory(args.scenario, args.axes)
    code = sweep.main(args.scenario, args.axes, policies, out, overrides, args.config_file, args.repeat)
    if code in (0, 1):
        print(f"next: {options.typed('report', out)}", file=sys.stderr)
    return code
