"""Steps of the fair share: Eq. 1 (5) of the AFCD paper, worked out by hand."""

from __future__ import annotations

import pytest

from fairq_ryu.policies.parts import fair_share_steps as steps

FRAME = 1514
TARGET = 20 * FRAME


def fair(samples: float) -> int:
    return int(samples * 65536)


def test_the_mean_of_the_samples() -> None:
    assert steps.share_of_samples(30, 4) == fair(7.5)
    assert steps.share_of_samples(0, 0) == 0


@pytest.mark.parametrize(
    ("old", "now", "moved"),
    [
        (20, 20, 0),  # at the target
        (30, 30, -1),  # 10 packets above: (1.7 - 1.8) * 10
        (10, 10, 1),
        (20, 30, -18),  # it grows by 10: -1.8 * 10
        (30, 20, 17),
    ],
)
def test_the_fair_share_follows_the_queue(old: int, now: int, moved: int) -> None:
    """Eq. 1 with alpha = 1.7 and beta = 1.8, in packets of 1,514 bytes."""
    assert steps.move(old * FRAME, now * FRAME, TARGET) == fair(moved)


def test_the_fair_share_has_bounds() -> None:
    assert steps.bounded(-1, 100, 2) == fair(100 / 16)
    assert steps.bounded(fair(100) + 1, 100, 2) == fair(100)
    assert steps.bounded(fair(50), 100, 2) == fair(50)


def test_updates_in_the_switch_do_not_let_the_queue_swing() -> None:
    """1514 * 50 / (2 * 1.7 * 25e6) s for 50 samples at 25 MB/s."""
    assert steps.step_ns(fair(50), 25_000_000, 10**9) == 1514 * 50 * 10**9 // 85_000_000
    assert steps.step_ns(fair(50), 25_000_000, 100_000) == 100_000
    assert steps.step_ns(fair(50), 0, 100_000) == 0
