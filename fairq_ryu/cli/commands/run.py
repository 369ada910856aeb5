"""``fairq run``: its arguments; experiments are in ../../experiments."""

from __future__ import annotations

import argparse
import shlex
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
    parser.add_argument(
        "--policy",
        default="droptail,droptail-rto5,fairq",
        metavar="NAMES",
        help="policies to compare, comma separated (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory for result.json; must be given")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="overrides",
        metavar="NAME=VALUE",
        help="change a setting of the scenario; may be repeated",
    )
    parser.add_argument(
        "--config-file", type=Path, metavar="FILE", help="configuration file for controller and agents"
    )
    parser.add_argument(
        "--repeat",
        type=_repetitions,
        default=1,
        metavar="N",
        help=f"repeat the whole run N times, {repeated}, for means with 95%% confidence intervals (default:"
        " %(default)s)",
    )
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
        print(f"next: {typed('report', args.out)}", file=sys.stderr)
    return code


def experiment(args: argparse.Namespace) -> tuple[str, list[str], Path, dict[str, str]]:
    """The scenario, the policies, the directory for the result, and the settings that ``--set`` changes.
    Raises `UserError` if they are missing.
    """
    from fairq_ryu.experiments import listing

    if args.scenario is None:
        raise listing.nothing_named()
    if args.out is None:
        example = f"--out results/{Path(args.scenario).stem}"
        raise UserError("no directory for the result", f"add --out DIR, for example {example}")
    overrides = {}
    for text in args.overrides:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"--set {text!r} is not NAME=VALUE", "write for example --set rounds=20")
        overrides[name.strip()] = value.strip()
    policies = [name.strip() for name in args.policy.split(",") if name.strip()]
    return args.scenario, policies, args.out, overrides


def typed(command: str, directory: Path) -> str:
    """A command as it can be typed here, with the program called as this one was."""
    program = Path(sys.argv[0])
    if program.is_absolute() and program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    return shlex.join([str(program), command, str(directory)])


def _repetitions(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return int(text)
