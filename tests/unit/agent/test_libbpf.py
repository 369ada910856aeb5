"""Maps and programs of an object, by the functions of newer and older versions of libbpf."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from fairq_ryu.agent import libbpf
from fairq_ryu.agent.libbpf import BpfError, BpfObject

OBJECT = 1
NEXT = {None: 10, 10: 11, 11: None}


def following(of: int, previous: int | None) -> int | None:
    assert of == OBJECT
    return NEXT[previous]


@pytest.mark.parametrize("what", ["map", "program"])
@pytest.mark.parametrize("newer", [True, False])
def test_an_object_is_walked_in_either_order_of_arguments(what: str, newer: bool) -> None:
    lib = SimpleNamespace()
    if newer:
        setattr(lib, f"bpf_object__next_{what}", following)
    else:  # libbpf 0.5 has the previous one first
        setattr(lib, f"bpf_{what}__next", lambda previous, of: following(of, previous))
    found, at = [], None
    while at := libbpf._next(lib, what, OBJECT, at):
        found.append(at)
    assert found == [10, 11]


def test_an_object_of_another_version_is_not_loaded_beside_what_runs(tmp_path: Path) -> None:
    """An upgrade has replaced the file: its programs would share the maps of those that run."""
    path = tmp_path / "turns.bpf.o"
    path.write_bytes(b"one")
    libbpf.remember_objects([path])
    path.write_bytes(b"other")
    with pytest.raises(
        BpfError, match=r"turns.bpf.o has changed since the agent began: start the agent again"
    ):
        BpfObject(None, path, {})
