"""The command lines of the kernel's qdiscs, and what their counters mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.config import loader
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.kernel_kinds import LEAST
from fairq_ryu.experiments.kernel_qdiscs import DEFAULTS, QDISCS, red_burst
from mininet_topos.qdiscs import PortQdisc

NO_SETTINGS = loader.load([])


def made(kind: str, rate: float = 10, buffer: int = 125_000) -> PortQdisc:
    return QDISCS[kind].at(rate, buffer, NO_SETTINGS)


def settings(path: Path, text: str) -> loader.Config:
    file = path / "own.conf"
    file.write_text(text)
    return loader.load([file])


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        # 82 full frames of 1514 bytes are 124,148 bytes.
        ("fq_codel", "fq_codel limit 82 memory_limit 188928"),
        ("cake", "cake bandwidth 10000000bit memlimit 188928"),
        ("fq", "fq limit 82"),
        ("pie", "pie limit 82"),
        # The settings of our RED: min_th 0.0833 and max_th 0.25 of the buffer, weight 1 / 512.
        (
            "red",
            "red limit 125000 min 10412 max 31237 avpkt 1514 burst 58 probability 0.1 bandwidth 10000000bit",
        ),
        # Of our CoDel: the interval is twice 1 ms and the 100 ms that the buffer takes to drain.
        ("codel", "codel limit 82 target 10100us interval 202000us"),
        # The FIFO below SFB has the limit. Of our SFB: 66 / 65535 and 11 / 65535. tc rounds.
        ("sfb", "sfb limit 2083 max 25 target 20 increment 0.001007095 decrement 0.000167849"),
    ],
)
def test_the_command_line_has_the_buffer_of_the_port(kind: str, arguments: str) -> None:
    assert made(kind).arguments == arguments


@pytest.mark.parametrize(
    ("kind", "rate", "arguments", "held"),
    [
        ("fq_codel", 10, "fq_codel", 10_240 * 1514),
        # A full frame takes 2304 bytes of memory.
        ("cake", 10, "cake bandwidth 10000000bit", (4 << 20) // 2304 * 1514),
        ("cake", 200, "cake bandwidth 200000000bit", 10_000_000 // 2304 * 1514),
        ("cake", 1000, "cake bandwidth 1000000000bit", 10_240 * 1514 // 2304 * 1514),
        ("fq", 10, "fq", 10_000 * 1514),
        ("pie", 10, "pie", 1000 * 1514),
    ],
)
def test_defaults_name_no_buffer_and_tables_name_theirs(
    kind: str, rate: float, arguments: str, held: int
) -> None:
    qdisc = DEFAULTS[kind]
    made = qdisc.at(rate, 125_000, NO_SETTINGS)
    assert (made.arguments, made.fifo, made.shapes) == (arguments, 0, kind == "cake")
    assert made.commands("s1-eth3", "root") == f"qdisc add dev s1-eth3 root handle 10: {arguments}\n"
    assert qdisc.holds(rate, 125_000) == held
    assert QDISCS[kind].holds(rate, 125_000) == 125_000


def test_every_kind_can_be_asked_for() -> None:
    assert QDISCS.keys() == LEAST.keys()
    assert all(name == qdisc.kind == made(name).arguments.split()[0] for name, qdisc in QDISCS.items())


def test_only_cake_shapes_and_the_fifo_below_sfb_has_the_buffer() -> None:
    assert [kind for kind in QDISCS if made(kind).shapes] == ["cake"]
    assert {kind: made(kind).fifo for kind in QDISCS if made(kind).fifo} == {"sfb": 125_000}
    assert made("sfb", buffer=60_000).commands("s1-eth3", "1:1").splitlines()[1] == (
        "qdisc add dev s1-eth3 parent 10:1 bfifo limit 60000"
    )
    assert made("cake").commands("s1-eth3", "root").startswith("qdisc add dev s1-eth3 root handle 10: cake ")


def test_our_settings_are_the_kernel_s(tmp_path: Path) -> None:
    config = settings(
        tmp_path,
        "[red]\nlow = 0.2\nmax_p = 0.02\necn = yes\n"
        "[codel]\ndelay_target = 0.005\necn = yes\n"
        "[sfb]\nbin_packets = 8\n",
    )
    red = QDISCS["red"].at(10, 100_000, config).arguments
    assert "min 20000 max 60000" in red and "probability 0.02" in red
    # Ours drops above max_th what it could mark.
    assert red.endswith(" ecn harddrop")
    assert QDISCS["codel"].at(10, 100_000, config).arguments.endswith("target 5000us interval 100000us ecn")
    assert "max 10 target 8 " in QDISCS["sfb"].at(10, 100_000, config).arguments


@pytest.mark.parametrize("least", [3028, 10_412, 125_000, 1_000_000])
@pytest.mark.parametrize("shift", [2, 5, 9, 16])
def test_tc_finds_the_weight_of_the_mean(least: int, shift: int) -> None:
    """tc_red_eval_ewma() of iproute2, with its own loop."""
    burst, weight, wlog = red_burst(shift, least), 0.5, 1
    while burst + 1 - least / 1514 > (1 - (1 - weight) ** burst) / weight:
        weight, wlog = weight / 2, wlog + 1
    assert wlog == shift


def test_a_threshold_for_which_tc_finds_no_weight_is_refused(tmp_path: Path) -> None:
    """Below one frame, no burst fits."""
    with pytest.raises(UserError, match="tc has no burst"):
        QDISCS["red"].at(10, 125_000, settings(tmp_path, "[red]\nlow = 0.01\n"))


COUNTED: dict[str, dict[str, Any]] = {
    "red": {"drops": 12, "packets": 100, "qlen": 3, "marked": 5, "early": 8, "pdrop": 4, "other": 0},
    "sfb": {"drops": 12, "packets": 100, "qlen": 3, "marked": 5, "queuedrop": 1, "childdrop": 3},
    "codel": {"drops": 12, "packets": 100, "qlen": 3, "ecn_mark": 5, "drop_overlimit": 4},
    "fq_codel": {"drops": 12, "packets": 100, "qlen": 3, "ecn_mark": 5, "drop_overlimit": 4},
    "pie": {"drops": 12, "packets": 100, "qlen": 3, "ecn_mark": 5, "dropped": 12, "overlimit": 4},
    "cake": {"drops": 12, "packets": 100, "qlen": 3, "tins": [{"ecn_mark": 2}, {"ecn_mark": 3}]},
    "fq": {"drops": 12, "packets": 100, "qlen": 3},
}


@pytest.mark.parametrize(
    ("kind", "dropped", "marked", "full"),
    [
        ("red", 8, 5, 4),
        ("sfb", 8, 5, 4),
        ("codel", 8, 5, 4),
        ("fq_codel", 8, 5, 4),
        ("pie", 8, 5, 4),
        ("cake", 12, 5, 0),
        ("fq", 0, 0, 12),
    ],
)
def test_drops_by_the_law_and_by_the_full_buffer(kind: str, dropped: int, marked: int, full: int) -> None:
    """Every packet was sent, waits, or was dropped, by the law or because the buffer was full."""
    listed = [{"kind": "tbf", "drops": 99, "root": True}, {"kind": kind, **COUNTED[kind]}]
    assert QDISCS[kind].counts(listed) == (115, dropped, marked, full)
    with pytest.raises(LookupError):
        QDISCS[kind].counts(listed[:1])
