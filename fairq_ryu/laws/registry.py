"""The laws that switches run, found by their folders.

A folder of ``fairq_ryu/laws`` whose package has a class derived from
:class:`~fairq_ryu.law_spec.LawSpec` is a window law, from
:class:`~fairq_ryu.queue_law_spec.QueueLawSpec` a queue law. Its C code is ``law.h`` beside it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from fairq_ryu import laws
from fairq_ryu.errors import UserError
from fairq_ryu.law_spec import LawSpec, Parameters
from fairq_ryu.queue_law_spec import QueueLawSpec

FOLDER = Path(laws.__path__[0])
Law = TypeVar("Law", bound=Parameters)


@cache
def window_laws() -> Mapping[int, type[LawSpec]]:
    """The window laws by their numbers, in this order. Raises :class:`UserError` if a folder is broken."""
    return MappingProxyType(_numbered(_found(FOLDER, laws.__name__, LawSpec)))


@cache
def queue_laws() -> Mapping[int, type[QueueLawSpec]]:
    """The queue laws, likewise."""
    return MappingProxyType(_numbered(_found(FOLDER, laws.__name__, QueueLawSpec)))


def _found(folder: Path, package: str, base: type[Law]) -> Iterator[type[Law]]:
    """The laws of this base, by the names of their folders."""
    for name in sorted(each.name for each in pkgutil.iter_modules([str(folder)]) if each.ispkg):
        try:
            module = importlib.import_module(f"{package}.{name}")
        except Exception as error:
            raise _broken(f"{package}.{name}", f"{type(error).__name__}: {error}") from error
        for law in vars(module).values():
            if isinstance(law, type) and issubclass(law, base) and law.__module__ == module.__name__:
                if law.name != name:
                    raise _broken(module.__name__, f"its name is {law.name}")
                if not (folder / name / "law.h").exists():
                    raise _broken(module.__name__, "it has no law.h")
                yield law


def _numbered(found: Iterator[type[Law]]) -> dict[int, type[Law]]:
    numbered: dict[int, type[Law]] = {}
    for law in found:
        if not 0 < law.kind < 256:
            raise _broken(law.__module__, f"its kind {law.kind} is not between 1 and 255")
        other = numbered.setdefault(law.kind, law)
        if other is not law:
            raise _broken(law.__module__, f"its kind {law.kind} is that of {other.name}")
    return dict(sorted(numbered.items()))


def _broken(module: str, why: str) -> UserError:
    return UserError(f"the law {module} cannot be used: {why}", "correct it, or reinstall")
