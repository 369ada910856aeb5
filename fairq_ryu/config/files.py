"""Configuration files: INI, as oslo.config reads it."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from re import Pattern
from typing import ClassVar

from fairq_ryu.errors import UserError

Sections = dict[str, dict[str, str]]


class _Parser(configparser.ConfigParser):
    # A line that only begins with a bracket is not a header, because a shell pattern may begin with one.
    SECTCRE = re.compile(r"\[(?P<header>[^]]+)\]$")
    # The colon of role:host, bridge:NAME and policy:NAME is part of the name, if an equals sign or another
    # colon follows; elsewhere it is the same as an equals sign.
    OPTCRE: ClassVar[Pattern[str]] = re.compile(
        r"(?P<option>(?:role:(?:host|link)\b|(?:bridge|policy):(?=\S))?.*?)"
        r"\s*(?:(?P<vi>=|:)\s*(?P<value>.*))$"
    )

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def read(path: Path) -> Sections:
    """The lines of a file by section, in its order. Raises :class:`UserError` if they cannot be read."""
    # No interpolation and no DEFAULT section: that section is oslo.config's.
    parser = _Parser(interpolation=None, default_section="\0", strict=True, comment_prefixes=("#", ";"))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read {path}: {reason}", "check the path and its permissions") from None
    try:
        parser.read_string(text, str(path))
    except configparser.Error as error:
        raise UserError(*_wrong(path, error)) from None
    return {section: dict(parser.items(section, raw=True)) for section in parser.sections()}


def _wrong(path: Path, error: configparser.Error) -> tuple[str, str]:
    """The error of a file, with its line, and the remedy."""
    match error:
        case configparser.MissingSectionHeaderError():
            if path.suffix == ".toml":
                return (
                    f"{path} is not a configuration of controller and agent; a .toml file is a scenario",
                    f"use it with fairq run {path}, or name a configuration file",
                )
            return (
                f"{path}: line {error.lineno} is before the first [section]",
                "write [fairq_ryu], or another section of docs/operating.md, above it",
            )
        case configparser.DuplicateSectionError():
            return (
                f"{path}: line {error.lineno}: there is a section [{error.section}] already",
                "put its lines into one section",
            )
        case configparser.DuplicateOptionError():
            return (
                f"{path}: line {error.lineno}: [{error.section}] has {error.option} already",
                "remove one of the two lines",
            )
        case configparser.ParsingError() if error.errors:
            return f"{path}: line {error.errors[0][0]} is not name = value", "correct that line"
    return f"{path}: {str(error).splitlines()[0]}", "write it as [section] and name = value lines"
