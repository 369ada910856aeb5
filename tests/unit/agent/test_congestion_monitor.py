"""When the agent sends congestion messages, and which dropped packets it reports."""

from __future__ import annotations

import errno
import itertools
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent.congestion_monitor import NoticeSchedule, TokenBucket
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.channel import congestion, dropped_packet, oxm
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.model import Congestion, Thresholds
from fairq_ryu.openflow import pipeline
from tests.support.agent_peer import Peer, bad_request, queue_state, role
from tests.support.fakes import DATAPATH, FakeDatapath, wire
from tests.switch.packets import Segment

CNG, NOM = Congestion.CNG, Congestion.NOM
GAP = 2_000_000_000_000  # ns: longer than any test runs, since requests are handled by the real clock


# The schedule of notices


def test_one_notice_at_most_per_gap_and_always_the_last_state():
    notices = NoticeSchedule(GAP)
    notices.mark([1])
    assert notices.due(1000) == [1] and notices.take(1, CNG, 1000)
    assert notices.next_ns is None
    notices.mark([1])
    assert notices.due(1001) == [] and notices.next_ns == 1000 + GAP
    notices.mark([1])
    assert notices.due(1000 + GAP) == [1] and notices.take(1, NOM, 1000 + GAP)
    notices.mark([1])
    assert notices.due(1000 + 2 * GAP) == [1]
    assert not notices.take(1, NOM, 1000 + 2 * GAP), "the state was already reported"
    assert notices.due(10**12) == [] and notices.next_ns is None


def test_the_gap_counts_for_each_port_alone():
    notices = NoticeSchedule(GAP)
    notices.mark([1])
    notices.take(1, CNG, 0)
    notices.mark([1, 2])
    assert notices.due(5) == [2]
    assert notices.next_ns == 0, "port 2 is due already"


@given(st.lists(st.tuples(st.integers(1, GAP), st.sampled_from(Congestion)), max_size=60))
def test_a_flapping_queue_is_reported_once_per_gap(flaps):
    notices, now, sent, current = NoticeSchedule(GAP), 0, [], NOM

    def send() -> None:
        for port in notices.due(now):
            if notices.take(port, current, now):
                sent.append((now, current))

    for wait, following in flaps:
        end = now + wait
        while notices.next_ns is not None and notices.next_ns <= end:
            now = max(now, notices.next_ns)
            send()
        now, current = end, following
        notices.mark([1])
        send()
    now += GAP
    send()
    assert [what for _, what in sent][-1:] == [current] if sent else current is NOM
    times = [when for when, _ in sent]
    assert all(b - a >= GAP for a, b in itertools.pairwise(times))
    assert all(a is not b for (_, a), (_, b) in itertools.pairwise(sent))


# The agent


@pytest.fixture
def switch(data: FakeDatapath) -> OpenFlowServer:
    return OpenFlowServer("s1", 0x1234, data, 8, congestion_gap=GAP / 1e9, drop_rate=100)


def set_to(port: int = 1, cng: int = 1000, nom: int = 500, drops: bool = False) -> Any:
    return congestion.set_thresholds(DATAPATH, port, Thresholds(cng, nom, drops))


def raw_set(*fields: int) -> Any:
    return parser.OFPExperimenter(
        DATAPATH,
        oxm.EXPERIMENTER_ID,
        congestion.EXP_TYPE_SET_THRESHOLDS,
        struct.pack(f"!{len(fields)}I", *fields),
    )


def notice(message: Any) -> CongestionNotice:
    """Read a congestion message as a controller does."""
    assert message.msg_type == ofp.OFPT_EXPERIMENTER
    assert (message.experimenter, message.exp_type) == (oxm.EXPERIMENTER_ID, congestion.EXP_TYPE_CONGESTION)
    return congestion.decode_notice(bytes(message.data))


def own_error(peer: Peer, message: Any) -> int:
    """The code of the experimenter error that answers the message."""
    data = wire(message, 77)
    (answer,) = peer.ask(data)
    assert (answer.msg_type, answer.type) == (ofp.OFPT_ERROR, ofp.OFPET_EXPERIMENTER)
    assert (answer.experimenter, answer.data) == (oxm.EXPERIMENTER_ID, data[:64])
    return int(answer.exp_type)


def test_thresholds_are_set_changed_and_removed(peer, data):
    assert peer.ask(set_to(drops=True)) == []
    assert data.thresholds == {1: Thresholds(1000, 500, True)}
    assert peer.ask(set_to(cng=7, nom=0)) == []
    assert data.thresholds == {1: Thresholds(7, 0, False)}
    assert peer.ask(set_to(2, 0, 0, drops=True)) == []
    assert peer.ask(set_to(cng=0, nom=0)) == []
    assert data.thresholds == {2: Thresholds(0, 0, True)}


def test_a_refused_message_changes_nothing(switch, peer, data):
    peer.ask(set_to())
    before = dict(data.thresholds)
    assert own_error(peer, raw_set(1, 500, 500, 0)) == congestion.ERROR_ORDER
    assert own_error(peer, raw_set(1, 0, 1, 0)) == congestion.ERROR_ORDER
    assert own_error(peer, raw_set(1, 9, 8, 2)) == congestion.ERROR_FLAGS
    assert peer.refusal(raw_set(9, 9, 8, 0)) == bad_request("BAD_PORT")
    assert peer.refusal(raw_set(ofp.OFPP_ANY, 9, 8, 0)) == bad_request("BAD_PORT")
    for wrong in (raw_set(1, 9, 8), raw_set(1, 9, 8, 0, 0)):
        assert peer.refusal(wrong) == bad_request("BAD_LEN")
    data.reports_drops = False
    assert own_error(peer, set_to(drops=True)) == congestion.ERROR_NO_DROPS
    role(peer, ofp.OFPCR_ROLE_SLAVE, 1)
    assert peer.refusal(set_to(cng=3, nom=2)) == bad_request("IS_SLAVE")
    assert data.thresholds == switch.congestion.thresholds == before


def test_a_kernel_that_refuses(switch, peer, data):
    data.failure = BpfError("no room")
    assert peer.refusal(set_to()) == bad_request("EPERM")
    assert data.thresholds == switch.congestion.thresholds == {}


def test_every_controller_is_notified(switch, peer, data):
    other, slave = Peer(switch), Peer(switch)
    role(slave, ofp.OFPCR_ROLE_SLAVE, 1)
    peer.ask(set_to())
    data.congested[1], data.queues[1] = CNG, queue_state(backlog=1234)
    switch.congestion.mark_crossed([1, 2])
    switch.congestion.send_due(10**18)
    for listener in (peer, other, slave):
        (message,) = listener.taken()
        assert notice(message) == CongestionNotice(1, CNG, 1234, 99)
    data.congested[1] = NOM
    switch.congestion.mark_crossed([1])
    switch.congestion.send_due(10**18 + 1)
    assert peer.taken() == [] and switch.congestion.next_ns == 10**18 + GAP
    switch.congestion.send_due(10**18 + GAP)
    assert notice(*peer.taken()).state is NOM


def test_existing_congestion_is_reported_at_once_to_a_new_listener(switch, peer, data):
    data.congested[1] = CNG
    assert notice(*peer.ask(set_to())).state is CNG
    # Another controller sets thresholds: it may not know the state. Within the gap the notice waits.
    other = Peer(switch)
    assert other.ask(set_to()) == []
    switch.congestion.send_due(10**18)
    assert notice(*other.taken()).state is CNG


def test_an_unchanged_state_is_not_reported(switch, peer):
    peer.ask(set_to())
    switch.congestion.mark_crossed([1])
    switch.congestion.send_due(10**18)
    assert peer.taken() == []


def test_thresholds_end_with_the_last_controller(switch, peer, data):
    other, silent = Peer(switch), Peer(switch, greet=False)
    peer.ask(set_to(drops=True))
    peer.session.close()
    assert data.thresholds
    other.session.close()
    assert data.thresholds == switch.congestion.thresholds == {}
    assert not silent.session.closed


@pytest.mark.parametrize("error", [BpfError("the interface has gone"), OSError(errno.EMFILE, "too many")])
def test_a_kernel_that_refuses_at_the_end_is_only_logged(switch, peer, data, caplog, error):
    """The programs of others go on: nobody hears of thresholds now."""
    for port in 1, 2:
        peer.ask(set_to(port))
        switch.congestion.watch_drops(port, True)  # for recovery, which goes on
    data.failure = error
    peer.session.close()
    assert switch.congestion.thresholds == {} and caplog.text.count("cannot be removed") == 2


def test_a_removed_port_is_forgotten(switch, peer, data):
    peer.ask(set_to())
    switch.congestion.mark_crossed([1])
    switch.congestion.forget_port(1)
    switch.congestion.send_due(10**18)
    assert peer.taken() == [] and switch.congestion.thresholds == {}


# Dropped packets

DATA = Segment(payload=b"x" * 100).frame()


def test_a_dropped_packet_is_a_packet_in(switch, peer):
    peer.ask(set_to(drops=True))
    switch.congestion.report_drops([(1, DATA, 9000)], 0)
    (message,) = peer.taken()
    assert message.msg_type == ofp.OFPT_PACKET_IN
    assert (message.buffer_id, message.reason, message.table_id) == (ofp.OFP_NO_BUFFER, ofp.OFPR_ACTION, 0)
    assert (message.cookie, message.match["in_port"]) == (dropped_packet.COOKIE_DROPPED, 1)
    assert (bytes(message.data), message.total_len) == (DATA, 9000)
    assert not pipeline.is_ours(message.cookie)


def test_drop_reports_are_limited_to_the_rate(switch, peer):
    peer.ask(set_to(drops=True))
    switch.congestion.report_drops([(1, DATA, 1)] * 50, 10**9)
    switch.congestion.report_drops([(1, DATA, 1)] * 50, 10**9 + 50_000_000)
    counts = switch.congestion.drops
    # the amount of a tenth of a second at once, then 100 a second
    assert len(peer.taken()) == counts.sent == 10 + 5
    assert counts.suppressed == 85


def test_drops_that_were_not_requested_or_cost_nothing_are_not_reported(switch, peer):
    peer.ask(set_to())
    bare = Segment().frame()
    switch.congestion.report_drops([(1, DATA, 1), (2, DATA, 1)], 0)
    peer.ask(set_to(drops=True))
    switch.congestion.report_drops([(1, bare, 54)], 0)
    assert peer.taken() == [] and switch.congestion.drops.ignored == 3


def test_drops_are_not_sent_to_slaves_or_slow_readers(switch):
    peer, slave = Peer(switch), Peer(switch)
    role(slave, ofp.OFPCR_ROLE_SLAVE, 1)
    peer.ask(set_to(drops=True))
    peer.session._unread = lambda: 1 << 21
    switch.congestion.report_drops([(1, DATA, 1)], 0)
    assert peer.taken() == slave.taken() == []
    assert switch.congestion.drops.suppressed == 1


@given(st.floats(1, 1e6), st.lists(st.integers(0, 10**8), max_size=200))
def test_the_token_bucket_never_exceeds_its_rate(rate, waits):
    allowance, now, passed = TokenBucket(rate), 10**9, 0
    allowance.take(now)
    start = now
    for wait in waits:
        now += wait
        passed += allowance.take(now)
    assert passed <= max(1, rate / 10) + (now - start) * rate / 1e9 + 1e-6
