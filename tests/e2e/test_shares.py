"""Parts of a link by flow and by tenant, while each flow sends: these need the machine for themselves."""

import pytest

from tests.support.small_runs import run

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


def test_unequal_flows_at_one_port(tmp_path):
    """Two Reno flows, one of DCTCP, and UDP that starts later and sends more than the link carries. Three of
    the four short flows of this seed are due in the measured phase, the first before it.
    """
    settings = [
        "topology=incast",
        "rate_mbit=20",
        "buffer_bytes=50000",
        "rtt_ms=10",
        'groups=["reno", "dctcp", "udp"]',
        "group_flows=[2, 1, 1]",
        "group_starts_s=[0, 0, 0.5]",
        "udp_mbit=30",
        "short_rate=3",
        "short_most_bytes=20000",
        "seed=44",
        "warmup_s=0.2",
        "measured_s=0.7",
    ]
    found = run(tmp_path, "mixed", *settings, policy="mark", config="")
    figures = found["heterogeneous"]
    assert (set(found["tcp"]), found["queue"]["law"]) == ({"reno", "dctcp", "cubic"}, "mark")
    reno, dctcp, udp = figures["groups"]
    assert [(each["kind"], each["flows"]) for each in figures["groups"]] == [
        ("reno", 2), ("dctcp", 1), ("udp", 1)
    ]  # fmt: skip
    assert [(stage["from_s"], stage["flows"]) for stage in figures["stages"]] == [(0.2, 3), (0.5, 4)]
    assert len(figures["goodput_mbit"]) == 4  # of TCP's, UDP may starve one until the end
    assert figures["goodput_sum_mbit"] == pytest.approx(sum(figures["goodput_mbit"]))
    assert reno["least_mbit"] <= reno["most_mbit"] and dctcp["least_mbit"] is None
    # No relation to the 30: a reading may be late, and a source that was late sends the rest in one go.
    assert udp["goodput_sum_mbit"] > 0 and udp["lost_share"] == pytest.approx(
        max(0, 1 - udp["goodput_sum_mbit"] / udp["sent_mbit"])
    )
    delay = figures["delay_ms"]
    assert 0 < delay["p50"] <= delay["p99"] <= delay["max"] <= 50_000 * 8 / 20_000
    assert found["queue"]["rounds"]["law"]["judged"] > 0
    assert figures["short"]["count"] == 3 and figures["short"]["fct_ms"]["count"] > 0
    # A probe from each of the two senders, too.
    assert found["integrity"]["flows"] >= 2 + 4 + 4
    assert (tmp_path / "throughput.png").exists()


def test_tenants_stage_after_stage(tmp_path):
    """Two hosts of one tenant, three flows of it, one more in each stage."""
    settings = [
        "senders=3",
        "tenant_hosts=[1, 2]",
        "tenant_flows=[1, 3]",
        "rtt_ms=5",
        "buffer_bytes=40000",
        "stage_s=1.2",
        "settle_s=0.4",
    ]
    found = run(tmp_path, "tenants", *settings, policy="fairq")
    figures = found["tenants"]
    assert [stage["flows"] for stage in figures["stages"]] == [[1, 1], [1, 2], [1, 3]]
    assert [stage["from_s"] for stage in figures["stages"]] == [0.0, 1.2, 2.4]
    assert all(0 < stage["seconds"] < 1.2 for stage in figures["stages"])
    assert all(min(stage["goodput_mbit"]) > 0 for stage in figures["stages"])
    one, two = figures["members"]
    assert (one["hosts"], two["hosts"]) == (["h1"], ["h2", "h3"])
    assert sum(figures["flow_goodput_mbit"]) == pytest.approx(figures["goodput_sum_mbit"])
    assert one["goodput_mbit"] < two["goodput_mbit"]  # a policy that shares by flows
    assert figures["jain"] < figures["jain_flows"]
    assert figures["short"] is None and 0 <= figures["lost_share"] < 1
    assert found["queue"]["rounds"]["acks_rewritten"] > 0
    written = [(tmp_path / "logs/fairq/scenario.conf").read_text()]
    assert all("[tenant.tenant2]\nhosts = 10.0.0.2 10.0.0.3\n" in text for text in written)
    assert (tmp_path / "tenants.png").exists() and (tmp_path / "fairness.png").exists()
