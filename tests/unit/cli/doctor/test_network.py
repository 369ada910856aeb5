from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairq_ryu.cli.doctor import network
from fairq_ryu.cli.doctor.check import Check
from fairq_ryu.cli.doctor.commands import Output

SANDBOX_FINE = "veth=ok\nup=ok\ntbf=ok\nbfifo=ok\nclsact=ok\nethtool=ok\n"


def the_only(checks: Sequence[Check]) -> Check:
    (check,) = checks
    return check


def test_qdiscs_fine(commands: dict[str, Output], as_root: None) -> None:
    commands["unshare"] = Output(0, SANDBOX_FINE)
    assert [check.status for check in network.check_ports()] == ["ok", "ok"]


def test_qdisc_the_kernel_lacks(commands: dict[str, Output], as_root: None) -> None:
    why = "Error: Specified qdisc kind is unknown."
    commands["unshare"] = Output(0, SANDBOX_FINE.replace("bfifo=ok", f"bfifo={why}"))
    qdiscs, offloads = network.check_ports()
    assert (qdiscs.status, qdiscs.remedy) == ("fail", "modprobe sch_fifo")
    assert why in qdiscs.found
    assert offloads.status == "ok"


def test_offloads_that_stay_on(commands: dict[str, Output], as_root: None) -> None:
    commands["unshare"] = Output(0, SANDBOX_FINE.replace("ethtool=ok", "ethtool=sh: 1: ethtool: not found"))
    qdiscs, offloads = network.check_ports()
    assert (qdiscs.status, offloads.status) == ("ok", "fail")
    assert offloads.remedy == "apt-get install ethtool"


@pytest.mark.parametrize("text", ["", "unshare: unshare failed: Operation not permitted\n"])
def test_no_network_namespace(commands: dict[str, Output], as_root: None, text: str) -> None:
    commands["unshare"] = Output(1, text)
    check = the_only(network.check_ports())
    assert check.status == "fail"
    assert text.strip() in check.found


def test_the_qdiscs_of_the_kernel(monkeypatch: pytest.MonkeyPatch, as_root: None) -> None:
    reasons: dict[str, str] = {}
    monkeypatch.setattr(network.kernel_kinds, "refused", lambda wanted: reasons)
    assert network.check_kernel_qdiscs().status == "ok"
    reasons |= {"sfb": "the kernel has no sfb (module sch_sfb)"}
    check = network.check_kernel_qdiscs()
    assert (check.status, check.found) == (
        "warn",
        "cake, codel, fq, fq_codel, pie, red; experiments cannot compare with sfb (module sch_sfb)",
    )


@pytest.mark.parametrize(("available", "status"), [("reno bbr cubic", "ok"), ("reno", "fail")])
def test_congestion_control(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, available: str, status: str
) -> None:
    settings = tmp_path / "sys/net/ipv4"
    settings.mkdir(parents=True)
    (settings / "tcp_available_congestion_control").write_text(available + "\n")
    (settings / "tcp_congestion_control").write_text("bbr\n")
    monkeypatch.setattr(network, "PROC", tmp_path)
    check = network.check_congestion_control()
    assert check.status == status
    assert "bbr by default" in check.found


def test_controller_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(network, "CONTROLLER_ADDRESS", server.getsockname())
        check = network.check_controller_port()
        assert (check.status, check.remedy) == ("warn", f"ss -ltnp 'sport = :{server.getsockname()[1]}'")
    assert network.check_controller_port().status == "ok"


def test_namespaces(commands: dict[str, Output], as_root: None) -> None:
    commands["mnexec"] = Output(0, "")
    assert network.check_namespaces().status == "ok"
    commands["mnexec"] = Output(1, "unshare: Operation not permitted\n")
    check = network.check_namespaces()
    assert check.status == "fail" and "unshare: Operation not permitted" in check.found and check.remedy
