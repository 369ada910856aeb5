"""Configuration files: INI, as oslo.config has it."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from re import Pattern
from typing import ClassVar

from fairq_ryu.errors import UserError

Sections = dict[str, dict[str, str]]


class _Parser(configparser.ConfigParser):
    # A line that only begins with a bracket is a line: a shell pattern may.
    SECTCRE = re.compile(r"\[(?P<header>[^]]+)\]$")
    # The colon of role:host is part of the name; elsewhere it stands for the equals sign, as ever.
    OPTCRE: ClassVar[Pattern[str]] = re.compile(
        r"(?P<option>(?:role:(?:host|link)\b)?.*?)\s*(?:(?P<vi>=|:)\s*(?P<value>.*))$"
    )

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def read(path: Path) -> Sections:
    """The lines of a file by section, in its order. Raises :class:`UserError` if it cannot be read so."""
    # No interpolation and no DEFAULT section: what oslo.config puts there is not ours.
    parser = _Parser(interpolation=None, default_section="\0", strict=True, comment_prefixes=("#", ";"))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read {path}: {reason}", "check the path and its permissions") from None
    try:
        parser.read_string(text, str(path))
    except configparser.Error as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{path}: {first}", "write it as [section] and name = value lines") from None
    return {section: dict(parser.items(section, raw=True)) for section in parser.sections()}
