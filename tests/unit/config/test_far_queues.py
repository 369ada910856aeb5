"""Section [far_queues]: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairq_ryu.config import far_queues, loader
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FAR, FarQueue, far_name, is_far

MBIT = 125_000


def load(tmp_path: Path, *lines: str) -> loader.Config:
    file = tmp_path / "fairq.conf"
    file.write_text("\n".join(["[far_queues]", *lines]))
    return loader.load([file])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rate 10gbit buffer 1000000", FarQueue("eth0", 10_000 * MBIT, 1_000_000)),
        ("rate 10gbit buffer 1000000 share 0.95", FarQueue("eth0", 10_000 * MBIT, 1_000_000, 0.95)),
        ("share 1 buffer 1mb rate 50Mbit", FarQueue("eth0", 50 * MBIT, 1 << 20, 1.0)),
        ("rate 50000000", FarQueue("eth0", 50 * MBIT)),
        ("rate 6.25mbps", FarQueue("eth0", 50 * MBIT)),
        ("rate 1gibit buffer 64k", FarQueue("eth0", 2**30 // 8, 65536)),
        ("buffer 125000", FarQueue("eth0", 0, 125_000)),
        ("", FarQueue("eth0")),
    ],
)
def test_a_line_is_read_as_tc_reads_rates_and_sizes(tmp_path: Path, text: str, wanted: FarQueue) -> None:
    config = load(tmp_path, f"eth0 = {text}")
    assert config.far_queues() == (wanted,)
    assert load(tmp_path, f"eth0 = {far_queues.written(wanted)}").far_queues() == (wanted,)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("eth0 = speed 10gbit", "there is no 'speed' of a far queue"),
        ("eth0 = rate", "rate has no value"),
        ("eth0 = rate 1gbit rate 2gbit", "rate is there twice"),
        ("eth0 = rate fast", "rate fast: it is not a rate"),
        ("eth0 = rate 10gb", "rate 10gb: it is not a rate"),
        ("eth0 = rate 0", "rate 0: it is too little"),
        ("eth0 = rate 1tbit", "rate 1tbit: it is too much"),
        ("eth0 = buffer 1000", "buffer 1000: it is too little"),
        ("eth0 = buffer 2gb", "buffer 2gb: it is too much"),
        (f"eth0 = rate {'9' * 309}gbit", f"rate {'9' * 309}gbit: it is too much"),
        (f"eth0 = buffer {'9' * 308}gb", f"buffer {'9' * 308}gb: it is too much"),
        ("eth0 = buffer -5", "buffer -5: it is not a size"),
        ("eth0 = share 0", "share 0: it is not such a part"),
        ("eth0 = share 1.5", "share 1.5: it is not such a part"),
        ("eth0 = share nan", "share nan: it is not such a part"),
        ("eth* = rate 1gbit", "it is not the name of an interface"),
        ("averyverylongname = rate 1gbit", "it is not the name of an interface"),
    ],
)
def test_a_wrong_line_is_refused_whole(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(UserError) as refused:
        load(tmp_path, "ok0 = rate 1gbit", line)
    port = line.partition(" =")[0]
    assert refused.value.message.endswith(f"fairq.conf: [far_queues] {port}: {says}")
    assert refused.value.remedy


def test_two_far_queues_with_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        load(tmp_path, "enp131s0f0np0 =", "eth0 =", "enp131s1f0np0 =")
    assert refused.value.message.endswith(
        "[far_queues] enp131s1f0np0: its far queue and that of enp131s0f0np0 are both enp131f0np0@far"
    )
    assert "rename" in (refused.value.remedy or "")


def test_a_section_with_a_similar_name_is_no_foreign_one(tmp_path: Path) -> None:
    (tmp_path / "fairq.conf").write_text("[far_queue]\neth0 = rate 1gbit\n")
    with pytest.raises(UserError, match=r"unknown section \[far_queue\]"):
        loader.load([tmp_path / "fairq.conf"])


def test_the_last_file_with_the_section_has_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[far_queues]\neth0 = rate 1gbit\neth1 =\n")
    (tmp_path / "b").write_text("[far_queues]\neth2 =\n")
    config = loader.load([tmp_path / "a", tmp_path / "b"])
    assert config.far_queues() == (FarQueue("eth2"),)
    assert config.changed("fairq_ryu", {"lease": 3}).far_queues() == (FarQueue("eth2"),)
    assert config.as_dict()["far_queues"] == {"eth2": "share 0.98"}


def test_what_is_not_said_follows_from_the_link() -> None:
    assert FarQueue("eth0").limits(10**10 // 8) == (6_250_000, 1_225_000_000)
    assert FarQueue("eth0", rate=MBIT, buffer=9000, share=0.5).limits(10**10 // 8) == (9000, MBIT // 2)
    assert FarQueue("eth0").limits(0) == (0, 0)


@pytest.mark.parametrize(("rate", "buffer"), [(1, 1538), (307_600, 1538), (307_800, 1539), (10**12, 1 << 30)])
def test_a_buffer_that_is_not_said_is_within_the_bounds(rate: int, buffer: int) -> None:
    """They are those of a line."""
    assert FarQueue("eth0", rate=rate, share=1.0).limits(0) == (buffer, rate)


def test_numbers_and_names_of_far_queues() -> None:
    assert is_far(FAR | 1) and not is_far(1) and not is_far(0xFFFFFFFE)
    assert far_name("eth0") == "eth0@far"
    assert far_name("enp129s0f0n") == "enp129s0f0n@far"
    assert far_name("enp129s0f0np0") == "enp129f0np0@far"
    assert far_name("\N{GREEK SMALL LETTER ALPHA}" * 7) == "\N{GREEK SMALL LETTER ALPHA}" * 5 + "@far"


def test_the_ports_of_a_card_have_far_queues_with_names_of_their_own() -> None:
    ports = [f"enp{card}s0f{part}np{port}" for card in (1, 131, 132) for part in (0, 1) for port in (0, 1)]
    names = [far_name(port) for port in ports]
    assert len(set(names)) == len(ports) and max(len(name.encode()) for name in names) <= 15
