"""Volleys of more connections than the buffer holds segments, with and without turns, on a real switch.

The assertions compare the two, on any machine: with turns the queue overflows less often.
"""

import json

import pytest

from tests.support.lab import fairq

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
# Connections in a volley: senders, and mice of each.
VOLLEYS = {16: (16, 1), 64: (16, 4), 128: (16, 8), 256: (16, 16), 512: (16, 32), 1000: (20, 50)}
# At 50 Mbit/s, half a second is enough for 270 flows; the larger volleys would wait too long there.
RATE = {512: 100, 1000: 200}


def volleys(out, config, flows, policy="fairq"):
    senders, mice = VOLLEYS[flows]
    settings = [
        f"senders={senders}",
        f"mice_per_sender={mice}",
        f"rate_mbit={RATE.get(flows, 50)}",
        "rounds=3",
    ]
    words = [word for each in settings for word in ("--set", each)]
    answer = fairq(
        *f"run volley --policy {policy} --out {out} --config-file {config}".split(), *words, timeout=400
    )
    assert answer.returncode == 0, answer.stderr
    print(answer.stdout)
    (found,) = json.loads((out / "result.json").read_text())["policies"]
    assert found["mice"]["count"] >= 3 * flows and found["mice"]["unfinished"] == 0
    return found["mice"]


@pytest.mark.parametrize("flows", VOLLEYS)
def test_a_volley_with_turns_loses_no_more_than_without(tmp_path, flows):
    found = {}
    for turns in ("off", "on"):
        config = tmp_path / f"{turns}.conf"
        config.write_text(f"[fairq]\nturns = {turns}\n")
        found[turns] = volleys(tmp_path / turns, config, flows)
    assert found["on"]["segments_dropped"] <= found["off"]["segments_dropped"]
    assert found["on"]["rto_timeouts"] <= found["off"]["rto_timeouts"]
    if flows > 82 * 2:
        # Without turns, more first segments come at once than the buffer holds.
        assert found["on"]["segments_dropped"] < found["off"]["segments_dropped"]
