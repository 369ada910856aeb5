"""The rows of `make bench attacks`."""

from bench import attacks
from bench.attacks import Measured


def row(name, own, base):
    return attacks.Row(attacks.Attack(name, (), forwarded=True), own, base)


def test_a_row_compares_with_bridges_that_forward_alone():
    own = [Measured(0.9, 100.0, 90.0, 0.005, 0.5, True), Measured(1.0, 100.0, 100.0, 0.02, 0.7, True)]
    base = [Measured(0.9, 100.0, 100.0, 0.001, 0.4, True), Measured(0.8, 100.0, 100.0, 0.003, 0.6, True)]
    assert attacks.describe(row("RST", own, base)) == (
        "attacks, RST          sent 100 (100 to 100) a second of 0, flow keeps 0.95 (0.90 to 1.00) of its "
        "rate, wanted 0.90; bridges alone: sent 100 (100 to 100), flow keeps 0.85 (0.80 to 0.90), ratio 1.12 "
        "(1.00 to 1.25); slowest ARP answer 20 ms, wanted 100 at most, bridges alone 3; hosts, links and "
        "ports as before; Open vSwitch 0.60 of a core, alone 0.50; forwarded 95 %, alone 100 %"
    )


def test_a_flow_that_stands_still_without_fairq_has_no_ratio():
    stopped = [Measured(0.0, 100.0, -1, float("inf"), 0.4, True)]
    text = attacks.describe(row("ARP", [Measured(1.0, 100.0, -1, 0.005, 0.5, False)], stopped))
    assert "flow keeps 0.00 (0.00 to 0.00), ratio without limit" in text
    assert "hosts, links and ports CHANGED" in text and "bridges alone inf" in text
    assert "forwarded" not in text


def test_forged_discovery_frames_have_other_ports_and_other_tags():
    genuine = bytes(range(80))
    frames = attacks._discovery(None, [genuine])
    assert frames[0] == genuine and len(set(frames)) == len(frames) == 32
    assert {len(each) for each in frames} == {80}
