"""Options that several subcommands have."""

from __future__ import annotations

import argparse
from pathlib import Path


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
