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
