"""The agent asks for the capabilities that it uses, and for no more."""

from __future__ import annotations

import pytest

from fairq_ryu.agent import privileges
from fairq_ryu.errors import UserError

ALL = sum(1 << bit for bit in privileges.NEEDED.values())


def holding(monkeypatch, tmp_path, mask):
    path = tmp_path / "status"
    path.write_text(f"Name:\tfairq\nCapPrm:\t{2**41 - 1:016x}\nCapEff:\t{mask:016x}\nCapBnd:\t0\n")
    monkeypatch.setattr(privileges, "STATUS", path)


def test_four_capabilities_are_enough(monkeypatch, tmp_path):
    holding(monkeypatch, tmp_path, ALL)
    assert privileges.missing() == []
    privileges.check()


@pytest.mark.parametrize("name", privileges.NEEDED)
def test_a_missing_one_is_named(monkeypatch, tmp_path, name):
    holding(monkeypatch, tmp_path, ALL & ~(1 << privileges.NEEDED[name]))
    with pytest.raises(UserError, match=rf"needs root, or {name}, to load eBPF"):
        privileges.check()


def test_older_kernels_have_one_in_place_of_two(monkeypatch, tmp_path):
    """CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON, and no capability of the network."""
    holding(monkeypatch, tmp_path, 1 << 21)
    assert privileges.missing() == ["CAP_NET_ADMIN", "CAP_NET_RAW"]
    holding(monkeypatch, tmp_path, 1 << 21 | 1 << 12 | 1 << 13)
    assert privileges.missing() == []


def test_without_any(monkeypatch, tmp_path):
    holding(monkeypatch, tmp_path, 0)
    assert privileges.missing() == list(privileges.NEEDED)
