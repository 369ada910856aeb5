"""The numbers of a paper's lines in the comments of the file that has its algorithm."""

from __future__ import annotations

import inspect
import io
import re
import tokenize
from types import ModuleType


def line_numbers(module: ModuleType) -> list[int]:
    """The numbers with which comments begin, in their order: ``# 7``, ``# 7: text`` or ``# 7-9: text``."""
    found: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(module)).readline):
        if token.type == tokenize.COMMENT and (match := re.match(r"# (\d+)(?:-(\d+))?\b", token.string)):
            first, last = match.groups()
            found += range(int(first), int(last or first) + 1)
    return found
