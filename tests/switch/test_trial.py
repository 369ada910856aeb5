"""What `fairq doctor` tries: it works here, and says so only where it does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairq_ryu.agent import layout, tcx, trial
from fairq_ryu.agent.libbpf import BpfError, BpfObject, in_short, load_library
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.cli.doctor import trial as doctor
from tests.switch.rig import namespace

# What works only where the kernel has tcx.
HAS_TCX: set[str] = {"ingress qdiscs"} if tcx.is_available(load_library()) else set()


def _refused(found: dict[str, str]) -> set[str]:
    return {name for name, fault in found.items() if fault}


@pytest.fixture(autouse=True)
def in_namespace() -> Iterator[None]:
    with namespace():
        yield


def test_every_program_is_tried_and_works_here() -> None:
    found = trial.faults()
    assert _refused(found) == {"ingress qdiscs"} - HAS_TCX
    assert found.keys() == {"programs", "packets", *doctor.LOST}


def test_a_window_that_is_not_lowered_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BridgePrograms, "install_rule", lambda *_: None)
    assert "an ACK with a window of 60,000 bytes left with 60,000, not 10,000" in trial.faults()["packets"]


def test_tracepoints_that_count_nothing_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = BridgePrograms.queue
    monkeypatch.setattr(BridgePrograms, "queue", lambda *args: empty(*args)._replace(packets=0))
    assert trial.faults()["packets"] == "the tracepoints counted 0 of the 2 packets of a queue"


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the compiled objects, which is used."""
    for path in layout.BPF_DIR.glob("*.bpf.o"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(layout, "BPF_DIR", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "subject"),
    [("turns", "turns"), ("queue_law", "queue laws"), ("taildrop", "taildrop"), ("shim", "scale shim")],
)
def test_a_program_that_the_kernel_refuses_is_named_and_the_others_are_tried(
    objects: Path, name: str, subject: str
) -> None:
    (objects / f"{name}.bpf.o").write_bytes(b"")
    found = trial.faults()
    assert f"{name}.bpf.o" in found.pop(subject)
    assert _refused(found) == {"ingress qdiscs"} - HAS_TCX


def test_without_the_window_program_nothing_else_is_tried(objects: Path) -> None:
    (objects / "window.bpf.o").write_bytes(b"")
    (fault,) = trial.faults().values()
    assert "window.bpf.o" in fault


def test_the_verifier_s_reason_is_what_is_said_in_short(tmp_path: Path) -> None:
    source, compiled = tmp_path / "refused.bpf.c", tmp_path / "refused.bpf.o"
    source.write_text('__attribute__((section("tc"))) int refused(void *at) { return ((int *)at)[999]; }\n')
    subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-c", source, "-o", compiled], check=True)
    with pytest.raises(BpfError) as refusal:
        BpfObject(load_library(), compiled, {})
    short = in_short(refusal.value)
    assert short.startswith(
        "the kernel refused eBPF object refused.bpf.o: Permission denied: invalid bpf_context"
    )
    assert len(str(refusal.value)) > len(short) and "\n" not in short
