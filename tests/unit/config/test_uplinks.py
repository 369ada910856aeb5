"""Sections [uplink.NAME]: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairq_ryu.config import loader
from fairq_ryu.config.uplinks import written
from fairq_ryu.errors import UserError
from fairq_ryu.uplink import Member, Uplink

GBIT = 125_000_000
RACK = Uplink("rack1", (Member("br1", "eth0"), Member("00000000000000af", "eth0")), 10 * GBIT, 1_000_000)


def load(tmp_path: Path, text: str) -> loader.Config:
    file = tmp_path / "fairq.conf"
    file.write_text(text)
    return loader.load([file])


def section(*lines: str, name: str = "uplink.rack1") -> str:
    return "\n".join([f"[{name}]", *lines, ""])


RATE, PORTS = "rate = 10gbit", "ports = br1/eth0, br2/eth0"


def test_an_uplink_is_read_and_written(tmp_path: Path) -> None:
    config = load(tmp_path, section(RATE, "buffer = 1000000", "ports = br1/eth0, 00000000000000af/eth0"))
    assert config.uplinks() == (RACK,)
    shown = config.as_dict()["uplink.rack1"]
    assert shown == written(RACK)
    again = load(tmp_path, section(*(f"{name} = {value}" for name, value in shown.items())))
    assert again.uplinks() == (RACK,)
    assert config.changed("fairq_ryu", {"lease": 3}).uplinks() == (RACK,)
    assert loader.ignored_sections(tmp_path / "fairq.conf") == []


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([PORTS], "has no rate"),
        ([RATE], "ports: '' is not the interface of a bridge"),
        ([RATE, "ports = br1/eth0"], "has 1 port"),
        ([RATE, "ports = br1/eth0, eth1"], "ports: 'eth1' is not the interface of a bridge"),
        ([RATE, "ports = br1/eth0, br2/"], "ports: 'br2/' is not the interface of a bridge"),
        ([RATE, "ports = br1/eth0, br 2/eth0"], "ports: 'br 2/eth0' is not the interface of a bridge"),
        ([RATE, "ports = br1/eth0, br2/eth*"], "ports: 'br2/eth*' is not the interface of a bridge"),
        (["rate = fast", PORTS], "rate fast: it is not a rate"),
        (["rate = 7mbit", PORTS], "the rate is too little for 2 ports"),
        ([RATE, "buffer = 5", PORTS], "buffer 5: it is too little"),
        ([RATE, "share = 2", PORTS], "share 2: it is not such a part"),
        ([RATE, PORTS, "speed = 1"], "there is no 'speed' of an uplink"),
    ],
)
def test_a_wrong_uplink_is_refused_whole(tmp_path: Path, lines: list[str], says: str) -> None:
    with pytest.raises(UserError) as refused:
        load(tmp_path, section(*lines))
    assert "fairq.conf: [uplink.rack1]" in refused.value.message and says in refused.value.message
    assert refused.value.remedy


def test_a_port_is_behind_one_uplink(tmp_path: Path) -> None:
    other = section(RATE, "ports = br3/eth0, br2/eth0", name="uplink.rack2")
    with pytest.raises(UserError, match=r"br2/eth0: its far queue and that of br2/eth0 of \[uplink.rack1\]"):
        load(tmp_path, section(RATE, PORTS) + other)
    with pytest.raises(UserError, match="are both enp131f0np0@far"):
        load(tmp_path, section(RATE, "ports = br1/enp131s0f0np0, br1/enp131s1f0np0"))
    with pytest.raises(UserError, match="are both eth0@far"):
        load(tmp_path, section(RATE, "ports = 00000000000000af/eth0, 00000000000000AF/eth0"))


@pytest.mark.parametrize("name", ["uplink", "uplinks", "uplink rack1", "Uplink.rack1"])
def test_a_section_with_a_similar_name_is_no_foreign_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"did you mean \[uplink\."):
        load(tmp_path, section(RATE, PORTS, name=name))


def test_an_uplink_has_a_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no name"):
        load(tmp_path, section(RATE, PORTS, name="uplink."))
