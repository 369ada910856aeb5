"""What the shim of a host refuses before it loads anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairq_ryu.agent import privileges, shim
from fairq_ryu.errors import UserError


@pytest.fixture
def tcp_ecn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tcp_ecn"
    path.write_text("2\n")
    monkeypatch.setattr(shim, "TCP_ECN", path)
    monkeypatch.setattr(privileges, "missing", list)
    return path


@pytest.mark.parametrize(
    ("mode", "unify"),
    [
        ("reserved", None),
        ("reserved", 14),
        ("reserved3", 7),
        ("reserved3", 0),
        ("window12", None),
        ("off", 4),
    ],
)
def test_accepted(tcp_ecn: Path, mode: str, unify: int | None) -> None:
    shim.check(mode, unify)


@pytest.mark.parametrize("unify", [None, 8, 14])
def test_three_bits_need_small_scales(tcp_ecn: Path, unify: int | None) -> None:
    with pytest.raises(UserError, match="give --unify 7 or less"):
        shim.check("reserved3", unify)


@pytest.mark.parametrize("value", [3, 4, 5])
def test_accecn_by_the_sysctl(tcp_ecn: Path, value: int) -> None:
    tcp_ecn.write_text(f"{value}\n")
    with pytest.raises(UserError, match=f"tcp_ecn = {value}: connections may use AccECN.*reserved3"):
        shim.check("reserved", 7)
    shim.check("reserved3", 7)
    shim.check("window12", None)


@pytest.mark.parametrize(
    ("lacking", "named"), [(["CAP_BPF", "CAP_NET_ADMIN"], True), (["CAP_PERFMON"], False)]
)
def test_privileges(tcp_ecn: Path, monkeypatch: pytest.MonkeyPatch, lacking: list[str], named: bool) -> None:
    monkeypatch.setattr(privileges, "missing", lambda: lacking)
    if named:
        with pytest.raises(UserError, match="the shim needs root, or CAP_BPF, CAP_NET_ADMIN"):
            shim.check("reserved", None)
    else:
        shim.check("reserved", None)


def test_no_such_interface(tcp_ecn: Path) -> None:
    with pytest.raises(UserError, match="no interface 'eth77' here"):
        shim.Shim("eth77", "reserved", None)
