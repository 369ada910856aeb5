"""Lets everything that imports Ryu use os-ken instead, for a trial (``docs/supply-chain.md``).

On import, modules of ``os_ken`` take the names of those of ``ryu``; modules that os-ken does not have, and
those that ``OS_KEN_BUT`` names, stay c65ryu's. Nothing of fairq_ryu imports this.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

# os-ken's own default, threads, has no way to end one, and no WSGI server.
os.environ.setdefault("OSKEN_HUB_TYPE", "eventlet")
_BUT = set(os.environ.get("OS_KEN_BUT", "").split())


class _Alias(Loader):
    """Gives a module of os-ken."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        del spec
        return importlib.import_module(self._name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Applications(SourceFileLoader):
    """Loads os-ken's module of applications, whose class has another name."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.RyuApp = module.OSKenApp  # type: ignore[attr-defined]


class _Finder(MetaPathFinder):
    """Finds the modules below ``ryu``, and under ``os_ken`` those that only Ryu has: Python looks for
    submodules by the own name of a package.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        package, _, rest = fullname.partition(".")
        if package not in ("ryu", "os_ken") or not rest:
            return None
        theirs = None if f"ryu.{rest}" in _BUT else _in("os_ken", rest)
        if package == "os_ken":
            return theirs or (ModuleSpec(fullname, _Alias(f"ryu.{rest}")) if _in("ryu", rest) else None)
        return ModuleSpec(fullname, _Alias(f"os_ken.{rest}")) if theirs else _in("ryu", rest)


def _in(package: str, rest: str) -> ModuleSpec | None:
    """A module below a package, by its place."""
    folders = rest.split(".")[:-1]
    places = [os.path.join(each, *folders) for each in importlib.import_module(package).__path__]
    found = PathFinder.find_spec(f"{package}.{rest}", places)
    if found is not None and found.name == "os_ken.base.app_manager" and found.origin:
        found.loader = _Applications(found.name, found.origin)
    return found


sys.meta_path.insert(0, _Finder())
