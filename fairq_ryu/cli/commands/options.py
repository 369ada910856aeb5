"""Options that several subcommands have."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from fairq_ryu.errors import UserError

POLICIES = "droptail,droptail-rto5,fairq"
"""Those that are compared if none are named."""


def config_option(parser: argparse.ArgumentParser) -> None:
    """Add --config-file."""
    parser.add_argument(
        "--config-file",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="configuration file; may be repeated, a later one overrides settings of an earlier one",
    )


def url_option(parser: argparse.ArgumentParser) -> None:
    """Add --url."""
    parser.add_argument(
        "--url",
        help="the controller's REST interface "
        "(default: the variable FAIRQ_URL, or else http://127.0.0.1:8080)",
    )


def ports_options(parser: argparse.ArgumentParser) -> None:
    """Add --bridge and --port."""
    parser.add_argument("--bridge", metavar="NAME", help="name or dpid of the bridge (default: all bridges)")
    parser.add_argument(
        "--port",
        metavar="PORT",
        help="name of the port's interface, its number, or DPID:PORT (default: all ports)",
    )


def write_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of requests that change something: --url, --token-file and --json."""
    url_option(parser)
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the controller's token (default: the variable FAIRQ_TOKEN)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def full_option(parser: argparse.ArgumentParser) -> None:
    """Add --full, of commands that print the table of a result."""
    parser.add_argument(
        "--full", action="store_true", help="print all rows of the table, not only the most important ones"
    )


def experiment_options(parser: argparse.ArgumentParser, repeated: str) -> None:
    """Add what commands have that run experiments: --policy, --set, --config-file and --repeat.
    ``repeated``: what repetitions differ in.
    """
    parser.add_argument(
        "--policy",
        default=POLICIES,
        metavar="NAMES",
        help="policies to compare, comma separated, each with settings of its own in brackets if wanted:"
        " fairq,fairq[alpha=0.5] (default: %(default)s)",
    )
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
        help=f"repeat everything N times, {repeated}, for means with 95%% confidence intervals (default:"
        " %(default)s)",
    )


def overrides(args: argparse.Namespace) -> dict[str, str]:
    """The settings of --set, by name. Raises `UserError`."""
    found = {}
    for text in args.overrides:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"--set {text!r} is not NAME=VALUE", "write for example --set rounds=20")
        found[name.strip()] = value.strip()
    return found


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
