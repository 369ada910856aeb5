"""``fairq check``: checks a configuration file or a scenario."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "check"
HELP = "check a configuration file or a scenario"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a configuration, or a scenario if its name ends in .toml"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code. Raises `UserError`."""
    if args.file.suffix == ".toml":
        from fairq_ryu.experiments import scenario

        scenario.load(str(args.file))
    else:
        from fairq_ryu.config import loader

        loader.load([args.file])
        for section in loader.ignored_sections(args.file):
            print(f"{args.file}: [{section}] is left to other programs: fairq_ryu has no such section")
    print(f"{args.file}: fine")
    return 0
