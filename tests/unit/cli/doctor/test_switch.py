from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fairq_ryu.cli.doctor import switch
from fairq_ryu.cli.doctor.check import Check
from fairq_ryu.cli.doctor.commands import Output


def the_only(checks: Sequence[Check]) -> Check:
    (check,) = checks
    return check


@pytest.fixture
def ovs(
    commands: dict[str, Output], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[], dict[str, Check]]:
    """A running Open vSwitch with both datapaths; gives the checks by name."""
    commands["ovs-vswitchd"] = Output(0, "ovs-vswitchd (Open vSwitch) 3.1.0\n")
    commands["ovs-vsctl"] = Output(0, '"3.1.0"\n')
    commands["ovs-appctl"] = Output(0, "ovs-vswitchd (Open vSwitch) 3.1.0\n")
    (tmp_path / "tun").touch()
    monkeypatch.setattr(switch, "has_kernel_datapath", lambda: True)
    monkeypatch.setattr(switch, "TUN_DEVICE", tmp_path / "tun")
    return lambda: {check.name: check for check in switch.check_ovs()}


def test_ovs_fine(ovs: Callable[[], dict[str, Check]]) -> None:
    checks = ovs()
    assert {check.status for check in checks.values()} == {"ok"}
    assert checks["datapath"].found == "kernel; a bridge with datapath_type=netdev has the userspace one"


def test_ovs_not_installed(commands: dict[str, Output]) -> None:
    check = the_only(switch.check_ovs())
    assert (check.status, check.remedy) == ("fail", "apt-get install openvswitch-switch")


@pytest.mark.parametrize("dead", ["ovs-vsctl", "ovs-appctl"])
def test_ovs_not_running(commands: dict[str, Output], ovs: Callable[[], dict[str, Check]], dead: str) -> None:
    commands[dead] = Output(1, "db.sock: database connection failed (No such file or directory)\n")
    check = ovs()["Open vSwitch runs"]
    assert (check.status, check.remedy) == ("fail", "scripts/start-ovs.sh")


def test_ovs_not_allowed(commands: dict[str, Output], ovs: Callable[[], dict[str, Check]]) -> None:
    commands["ovs-vsctl"] = Output(1, "db.sock: database connection failed (Permission denied)\n")
    assert ovs()["Open vSwitch runs"].remedy.startswith("sudo ")


def test_datapaths(
    monkeypatch: pytest.MonkeyPatch, ovs: Callable[[], dict[str, Check]], tmp_path: Path
) -> None:
    monkeypatch.setattr(switch, "has_kernel_datapath", lambda: False)
    assert ovs()["datapath"].found.startswith("userspace only")
    (tmp_path / "tun").unlink()
    assert ovs()["datapath"].status == "fail"
    monkeypatch.setattr(switch, "has_kernel_datapath", lambda: True)
    assert ovs()["datapath"] == Check("datapath", "ok", "kernel")


@pytest.mark.parametrize(
    ("name", "check", "path"),
    [
        ("send buffer", switch.check_send_buffer, "WMEM_DEFAULT"),
        ("receive buffer", switch.check_receive_buffer, "RMEM_DEFAULT"),
    ],
)
def test_small_socket_buffers_are_named_with_their_remedy(monkeypatch, tmp_path, name, check, path):
    small = tmp_path / "net.key"
    small.write_text("212992\n")
    monkeypatch.setattr(switch, path, small)
    found = check()
    assert (found.name, found.status) == (name, "warn")
    assert "212,992" in found.found and "sysctl -w net.core.net.key=" in found.remedy
    small.write_text(f"{8 << 20}\n")
    assert check().status == "ok"
    small.unlink()
    assert check().status == "warn"
