"""The table of published faults of what is pinned."""

from __future__ import annotations

from docs.generate.marks import ROOT, Old, Rows
from packages import known_faults, lock
from packages.known_faults import Fault


def known_faults_of(_old: Old, *packages: str) -> Rows:
    """``known-faults-of PACKAGE...``: those of these packages; ``others PACKAGE...``: of all but these."""
    but = packages[:1] == ("others",)
    rows = [
        (f"{each.ids[0]}", f"`{each.package}`", each.what, _state(each))
        for each in known_faults.read()
        if (each.package in packages) != but
    ]
    return [("fault", "package", "what", "what protects"), *rows]


def _state(fault: Fault) -> str:
    if not fault.fixed:
        return fault.shield
    return f"Fixed in {fault.fixed}; {_pinned(fault.package)} is installed. {fault.shield}".strip()


def _pinned(package: str) -> str:
    every = [pin for name in lock.LOCKS for pin in lock.pins((ROOT / name).read_text(encoding="utf-8"))]
    return " and ".join(sorted({pin.version for pin in every if pin.key == package}))
