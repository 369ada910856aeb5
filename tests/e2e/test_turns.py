"""Volleys of more connections than the buffer holds segments, with and without turns, on a real switch.

The assertions compare the two, on any machine: with turns the queue overflows less often.
"""

import json

import pytest

from tests.support.lab import fairq

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
SENDERS, MICE = 8, 32
SETTINGS = (f"senders={SENDERS}", f"mice_per_sender={MICE}", "rate_mbit=50", "rounds=1", "floor=no")


def volleys(out, config):
    words = [word for each in SETTINGS for word in ("--set", each)]
    answer = fairq(
        *f"run volley --policy fairq --out {out} --config-file {config}".split(), *words, timeout=400
    )
    assert answer.returncode == 0, answer.stderr
    print(answer.stdout)
    (found,) = json.loads((out / "result.json").read_text())["policies"]
    assert found["mice"]["count"] >= SENDERS * MICE
    return found["mice"]


def test_a_volley_with_turns_loses_less_than_without(tmp_path):
    """Without turns, three times as many first segments come at once as the buffer holds."""
    found = {}
    for turns in ("off", "on"):
        config = tmp_path / f"{turns}.conf"
        config.write_text(f"[fairq_ryu]\nturns = {turns}\n")
        found[turns] = volleys(tmp_path / turns, config)
    assert found["on"]["unfinished"] == 0
    assert found["on"]["segments_dropped"] < found["off"]["segments_dropped"]
    assert found["on"]["rto_timeouts"] <= found["off"]["rto_timeouts"]
