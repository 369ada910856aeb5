"""Which congestion control hosts get for a name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.cli.doctor import kernel
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.hostcc import controls
from fairq_ryu.experiments.hostcc.coupling import Membership
from fairq_ryu.experiments.hostcc.hosts import HostTcp
from fairq_ryu.experiments.hostcc.layout import BPF_DIR
from fairq_ryu.experiments.hostcc.names import OWN


class Objects:
    """In place of the kernel: registers what is loaded."""

    def __init__(self, available: Path) -> None:
        self.available = available
        self.closed: list[str] = []
        self.modules: set[str] = set()

    def ask(self, _sock: Any, name: str) -> None:
        """As a socket that asks for a control, whose module the kernel then loads."""
        if name not in self.modules:
            raise RuntimeError("No such file or directory")
        self.available.write_text(f"{self.available.read_text()} {name}")

    def __call__(self, _lib: Any, path: Path, _sizes: Any, operations: str) -> Any:
        objects, name = self, OWN[path.name.removesuffix(".bpf.o")].registered

        class Loaded:
            def __init__(self) -> None:
                self.name = name

            def register(self, table: str) -> None:
                assert table == operations
                objects.available.write_text(f"{objects.available.read_text()} {name}")

            def map(self, *_arguments: Any) -> Any:
                return SimpleNamespace(get=lambda _key: None)

            def close(self) -> None:
                objects.closed.append(name)

        return Loaded()


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Objects:
    path = tmp_path / "available"
    path.write_text("reno cubic\n")
    objects = Objects(path)
    monkeypatch.setattr(controls, "AVAILABLE", path)
    monkeypatch.setattr(controls, "BpfObject", objects)
    monkeypatch.setattr(controls, "load_library", lambda: None)
    monkeypatch.setattr(controls.congestion, "choose", objects.ask)
    return objects


def test_what_the_kernel_lacks_is_loaded_under_a_name_of_its_own(kernels: Objects) -> None:
    made = controls.HostControls()
    made.provide(["cubic", "dctcp", "hstcp", "dctcp"])
    assert [made.name_of(name) for name in ("cubic", "dctcp", "hstcp")] == [
        "cubic",
        "fairq_dctcp",
        "fairq_hstcp",
    ]
    assert made.described() == {
        "cubic": "cubic, of the kernel",
        "dctcp": "fairq_dctcp, loaded for this run",
        "hstcp": "fairq_hstcp, loaded for this run",
    }
    assert made.left_out() == {"dctcp": 0, "hstcp": 0}
    made.close()
    made.close()
    assert made.left_out() == {}
    assert kernels.closed == ["fairq_dctcp", "fairq_hstcp"]


def test_the_kernel_s_own_is_used_and_said(kernels: Objects) -> None:
    kernels.available.write_text("reno cubic dctcp highspeed\n")
    made = controls.HostControls()
    made.provide(["dctcp", "hstcp"])
    assert made.described() == {"dctcp": "dctcp, of the kernel", "hstcp": "highspeed, of the kernel"}
    assert not made.announce("10.0.0.1", "10.0.0.2", 1, 2, 3, 4)
    made.close()
    assert kernels.closed == []


def test_the_kernel_s_own_is_used_when_it_is_a_module(kernels: Objects) -> None:
    kernels.modules = {"dctcp", "highspeed", "vegas"}
    made = controls.HostControls()
    made.provide(["dctcp", "cubic", "vegas"])
    assert made.described() == {
        "dctcp": "dctcp, of the kernel",
        "cubic": "cubic, of the kernel",
        "vegas": "vegas, of the kernel",
    }
    assert "highspeed" not in controls.offered()


def test_ours_can_be_asked_for_where_the_kernel_has_its_own(kernels: Objects) -> None:
    kernels.available.write_text("reno cubic dctcp\n")
    made = controls.HostControls()
    made.provide(["fairq_dctcp", "dctcp"])
    assert made.described() == {
        "fairq_dctcp": "fairq_dctcp, loaded for this run",
        "dctcp": "dctcp, of the kernel",
    }
    made.close()
    with pytest.raises(UserError, match="fairq_dctcp is registered already"):
        controls.HostControls().provide(["fairq_dctcp"])


def test_the_kernel_s_can_be_insisted_on(kernels: Objects) -> None:
    controls.check(["dctcp"])
    with pytest.raises(UserError, match="this kernel does not offer the congestion control 'dctcp'"):
        controls.check(["dctcp"], ["dctcp"])
    kernels.modules = {"dctcp"}
    controls.check(["dctcp"], ["dctcp"])


def test_bbr_is_the_kernel_s_or_refused_in_one_line(kernels: Objects) -> None:
    with pytest.raises(UserError) as caught:
        controls.check(["bbr"], ["bbr"])
    (line,) = str(caught.value).splitlines()
    assert "does not offer the congestion control 'bbr'" in line and "`modprobe tcp_bbr`" in line
    kernels.modules = {"bbr"}
    controls.check(["bbr"], ["bbr"])


def test_a_control_of_another_run_is_not_used(kernels: Objects) -> None:
    kernels.available.write_text("reno cubic fairq_dctcp\n")
    with pytest.raises(UserError, match="fairq_dctcp is registered already"):
        controls.HostControls().provide(["dctcp"])


def test_an_unknown_control_is_refused_with_those_there_are(kernels: Objects) -> None:
    with pytest.raises(UserError, match="'vegas'") as caught:
        controls.check(["cubic", "vegas"])
    assert (
        caught.value.remedy
        == "`modprobe tcp_vegas`, or choose one of reno, cubic, dctcp, d2tcp, hstcp, ctrl_reno, ctrl_cubic"
    )
    with pytest.raises(UserError) as caught:
        controls.check(["rino", "cubc", "cubic", "vega", "lemonade"])
    assert [line.split("Remedy: ")[1] for line in str(caught.value).splitlines()] == [
        "did you mean cubic?",
        "choose one of reno, cubic, dctcp, d2tcp, hstcp, ctrl_reno, ctrl_cubic",
        "did you mean reno?",
        "did you mean vegas?",
    ]


def test_ours_need_receivers_that_echo_under_either_name() -> None:
    with pytest.raises(UserError, match="senders use fairq_dctcp and receivers cubic"):
        scenario.load("incast", {"sender_cc": '["fairq_dctcp"]'})
    scenario.load("incast", {"cc": "dctcp", "sender_cc": '["fairq_dctcp"]'})


def test_coupled_controls_are_told_of_the_hosts_and_no_others(kernels: Objects, monkeypatch) -> None:
    entered: list[tuple[str, int, Membership]] = []

    def of(loaded: Any) -> Any:
        return SimpleNamespace(enter=lambda netns, member: entered.append((loaded.name, netns, member)))

    monkeypatch.setattr(controls.Coupling, "of", of)
    monkeypatch.setattr(controls, "cookie", lambda pid: 1000 + pid)
    made = controls.HostControls()
    made.provide(["reno", "dctcp", "ctrl_reno", "ctrl_cubic"])
    assert made.coupling("dctcp") is None
    member = Membership("h1", shared=True)
    made.join(7, member)
    assert entered == [("ctrl_reno", 1007, member), ("ctrl_cubic", 1007, member)]
    assert made.described()["ctrl_reno"] == "ctrl_reno, loaded for this run"


def test_senders_have_their_controls_in_turn(kernels: Objects) -> None:
    chosen = scenario.load("incast", {"senders": "5", "cc": "d2tcp", "sender_cc": '["reno", "dctcp"]'})
    assert chosen.controls == ("d2tcp", "reno", "dctcp")
    tcp = HostTcp(chosen)
    tcp.load()
    assert tcp.cc == "fairq_d2tcp"
    assert list(tcp.wanted().values()) == ["reno", "fairq_dctcp", "reno", "fairq_dctcp", "reno"]


def test_a_sender_of_dctcp_needs_a_receiver_that_echoes() -> None:
    with pytest.raises(UserError, match="senders use dctcp and receivers cubic") as caught:
        scenario.load("incast", {"sender_cc": '["reno", "dctcp"]'})
    assert caught.value.remedy == "set cc = dctcp or d2tcp"


def test_every_control_has_its_source_and_no_name_of_a_kernel() -> None:
    assert {path.name.removesuffix(".bpf.c") for path in BPF_DIR.glob("*.bpf.c")} == set(OWN)
    assert kernel.HOST_BPF_DIR == BPF_DIR
    for name, own in OWN.items():
        assert own.registered == (name if own.coupled else f"fairq_{name}") and len(own.registered) < 16
        assert f'.name = "{own.registered}"' in (BPF_DIR / f"{name}.bpf.c").read_text()


def test_a_kernel_that_registers_no_controls_is_named(monkeypatch, tmp_path):
    """Before Linux 6.4. Nothing is loaded then, so that no message of the verifier has to be understood."""
    monkeypatch.setattr(controls, "_BTF", tmp_path / "vmlinux")
    monkeypatch.setattr(controls, "offered", lambda: ["reno", "cubic"])
    for data in (None, b"\0bpf_link\0bpf_struct_ops_link_x\0"):
        if data is not None:
            (tmp_path / "vmlinux").write_bytes(data)
        with pytest.raises(UserError, match=r"since 6\.4.*one of its own: reno, cubic"):
            controls.HostControls().provide(["dctcp"])
    controls.HostControls().provide(["reno"])
    (tmp_path / "vmlinux").write_bytes(b"\0bpf_link\0bpf_struct_ops_link\0")
    assert controls.refusal() is None
