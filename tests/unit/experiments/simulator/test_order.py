"""The order of a simulated run: the network, and the laws as an agent installs them."""

from __future__ import annotations

import pytest

from fairq_ryu.agent import law_table, layout
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.config.loader import Config
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.simulator import order
from fairq_ryu.experiments.simulator.laws import Laws, laws_of
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.mark import MarkLaw
from tests.support.lab import ROOT

NONE = Laws(None, None)


def incast(**changes: object) -> IncastScenario:
    found = scenario.load("incast", {name: str(value) for name, value in changes.items()})
    assert isinstance(found, IncastScenario)
    return found


def lines(chosen: IncastScenario, laws: Laws = NONE) -> list[list[str]]:
    text = order.order(chosen, laws, order.Hosts(100), seed=7, active_timeout_s=0.2)
    return [line.split() for line in text.splitlines()]


def of(name: str, chosen: IncastScenario, laws: Laws = NONE) -> list[list[str]]:
    return [words for first, *words in lines(chosen, laws) if first == name]


def test_an_incast_has_one_switch_whose_port_to_the_receiver_is_limited():
    chosen = incast(senders=2)
    assert of("switch", chosen) == [["s1"]]
    assert of("link", chosen) == [
        ["s1", "r", "25000000", "125000"],
        ["s1", "h1", "100000000", "0"],
        ["s1", "h2", "100000000", "0"],
    ]
    assert of("bottleneck", chosen) == [["s1", "r"]] and of("senders", chosen) == [["h1", "h2"]]
    assert of("seed", chosen) == [["7"]] and of("bucket_ns", chosen) == [["25000000"]]


@pytest.mark.parametrize(("topology", "links"), [("incast", 2), ("dumbbell", 3), ("leafspine", 4)])
def test_the_links_of_a_path_make_up_the_round_trip(topology: str, links: int):
    (delay,) = of("link_delay_ns", incast(topology=topology, senders=4, rtt_ms=0.024))
    assert int(delay[0]) * 2 * links == 24_000


def test_in_a_leaf_spine_senders_are_on_the_leaves_before_the_receivers():
    chosen = incast(topology="leafspine", senders=4, leaves=3, spines=2, uplink_mbit=40)
    links = of("link", chosen)
    assert [words[:2] for words in links if words[1].startswith(("h", "r"))] == [
        ["leaf3", "h5"],
        ["leaf1", "h1"],
        ["leaf2", "h3"],
        ["leaf1", "h2"],
        ["leaf2", "h4"],
    ]
    between = [words for words in links if words[1].startswith("spine")]
    assert len(between) == 6 and {tuple(words[2:]) for words in between} == {("40000000", "125000")}
    laws = laws_of("fairq", Config(), 25, 0.3)
    assert len(of("law", chosen, laws)) == 1 + 2 * 6, "the bottleneck, and both ends between switches"


def test_links_between_switches_that_are_not_limited_have_no_law():
    chosen = incast(topology="leafspine", senders=4)
    assert of("law", chosen, laws_of("fairq", Config(), 25, 0.3)) == [
        ["leaf3", "h5", of("law", chosen, laws_of("fairq", Config(), 25, 0.3))[0][2]]
    ]


def test_a_law_has_the_bytes_that_an_agent_would_install():
    spec = FairQLaw(base_rtt_us=300)
    ((at, towards, text),) = of("law", incast(), Laws(spec, None))
    expected = law_table.parameters(spec, QueueLimits("", 125_000, 3_125_000))
    assert (at, towards, bytes.fromhex(text)) == ("s1", "r", bytes(expected))
    made = layout.fq_law.from_buffer_copy(bytes.fromhex(text))
    assert (made.limit, made.rate, made.base_rtt_ns) == (125_000, 3_125_000, 300_000)


def test_a_queue_law_as_well():
    ((*_, text),) = of("queue_law", incast(), Laws(None, MarkLaw(mark_bytes=30_280)))
    made = layout.fq_queue_law.from_buffer_copy(bytes.fromhex(text))
    assert (made.limit_bytes, made.kind) == (125_000, MarkLaw.kind)
    assert layout.own("mark_law", made).mark_bytes == 30_280


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cc": "bbr"}, "no TCP 'bbr'"),
        ({"sender_cc": '["cubic","reno"]'}, "sender_cc"),
        ({"capture": "true"}, "capture is not simulated"),
        ({"syn": "hold"}, "syn is not simulated"),
        ({"controller_stopped_s": 1}, "controller_stopped_s is not simulated"),
        ({"topology": "tor", "receivers": 2}, "receivers is not simulated"),
        ({"requests": 2, "round_interval_s": 1}, "requests is not simulated"),
        ({"udp_mbit": 10}, "udp_mbit is not simulated"),
        ({"host_rate_mbit": 50}, "host_rate_mbit is not simulated"),
        ({"hosts": "period"}, "hosts is not simulated"),
    ],
)
def test_what_is_not_simulated_is_refused(changes: dict[str, object], words: str):
    with pytest.raises(UserError, match=words):
        order.check(incast(**changes))


def test_all_faults_are_named_together():
    with pytest.raises(UserError) as raised:
        order.check(incast(cc="bbr", capture="true"))
    assert len(raised.value.faults) == 2


def test_a_fat_tree_is_refused():
    with pytest.raises(UserError, match="'fattree' is not simulated"):
        lines(incast(topology="fattree", senders=4))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "simulator/scenarios").glob("*.toml")), ids=lambda path: path.stem
)
def test_the_scenarios_of_the_simulator_are_simulated(path):
    chosen = scenario.load(str(path))
    assert isinstance(chosen, IncastScenario)
    order.check(chosen)
    volley = chosen.senders * chosen.mice_per_sender * 8 * 1514
    if chosen.source:
        assert chosen.scale == 1, "the paper's own rate"
    else:
        assert 3.0 < volley / chosen.buffer_bytes < 3.2, "as on the bench"
