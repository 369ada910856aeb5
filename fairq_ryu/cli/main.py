"""The ``fairq`` command: parses arguments and runs a subcommand; a user's error is one line."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from fairq_ryu import __version__
from fairq_ryu.cli.commands import (
    agent,
    announce,
    check,
    cluster,
    compare,
    disable,
    doctor,
    enable,
    far,
    host,
    release,
    report,
    run,
    shim,
    show,
    simulate,
    status,
    sweep,
)
from fairq_ryu.errors import UserError, plain

COMMANDS: tuple[Any, ...] = (
    *(doctor, agent, shim, release, status, show, far, cluster),
    *(disable, enable, announce, host, run, sweep, simulate, report, compare, check),
)
"""The subcommands, in the order of the help text."""


def command_line() -> argparse.ArgumentParser:
    """The arguments of the command and of all its subcommands."""
    parser = argparse.ArgumentParser(
        prog="fairq", description="Fair shares and short queues for TCP, without changing any host."
    )
    parser.add_argument("--version", action="version", version=f"fairq_ryu {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        subparser = commands.add_parser(command.NAME, help=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code: 0 done, 1 failed, 2 an error that the user can correct."""
    args = command_line().parse_args(arguments)
    try:
        code: int = args.run(args)
        return code
    except UserError as error:
        for line in str(error).splitlines():
            print(f"fairq {args.command}: {plain(line)}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        # Not every installation has what every command needs: tables need rich, experiments matplotlib.
        package = (error.name or "").partition(".")[0]
        if package in ("", __name__.partition(".")[0]):
            raise
        print(f"fairq {args.command}: {_not_installed(package)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print(f"fairq {args.command}: interrupted", file=sys.stderr)
        return 130


def _not_installed(package: str) -> UserError:
    return UserError(
        f"it needs the Python package {package}, which is not installed",
        "install it; docs/install.md says which package has what",
    )
