"""Recovery in the agent: SET_RECOVERY, what is dropped, and when it is put back. Time is an argument."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent import port_recovery
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.channel import congestion, recovery, segment_counts, waking
from fairq_ryu.channel.recovery import DUPACK, REINJECT, SetRecovery
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.segment_counts import SegmentCounts
from fairq_ryu.model import FlowKey, SegmentState, Thresholds
from fairq_ryu.packet.tcp_build import Addressing
from tests.support.agent_peer import Peer, bad_request, queue_state, role
from tests.support.fakes import DATAPATH, FakeDatapath, ryu_decode, wire
from tests.switch import packets
from tests.switch.packets import Segment

MS, S = 1_000_000, 1_000_000_000
BELOW, LIMIT, RATE = 30_000, 125_000, 25_000_000
KEY = FlowKey("10.0.0.1", "10.0.0.2", 40000, 80)
WANTED = SetRecovery(2, REINJECT, 1 << 20, 1000, BELOW, 2)


class Bridge:
    """An agent's server with two ports; data leaves by port 2, ACKs by port 1."""

    def __init__(self, **wanted: int) -> None:
        self.data = FakeDatapath(1, 2)
        self.server = OpenFlowServer("s1", 1, self.data, rule_capacity=8)
        self.recovery = self.server.recovery
        if wanted:
            self.recovery.set(WANTED._replace(**wanted), 0)

    def lose(self, *seqs: int, now: int = 0, sport: int = KEY.sport, **what: Any) -> list[bytes]:
        frames = [segment(seq, sport, **what) for seq in seqs]
        self.recovery.dropped([(2, frame, len(frame)) for frame in frames], now)
        return frames

    def receiver(self, ack: int, **values: Any) -> None:
        state = SegmentState(KEY.reversed, True, 1, 901, ack, 500, 7, **values)
        self.data.segments[KEY.reversed] = state

    def backlog(self, size: int) -> None:
        self.data.queues[2] = queue_state(size)

    @property
    def sent(self) -> list[bytes]:
        return [frame for port, frame in self.data.frames if port == 2]

    def run(self, until: int) -> list[int]:
        """Call it when it is due, up to a time; the times."""
        times = []
        while (due := self.recovery.next_ns) is not None and due <= until:
            self.recovery.work(due)
            times.append(due)
        return times


def segment(seq: int, sport: int = KEY.sport, **what: Any) -> bytes:
    return Segment(sport=sport, seq=seq, ack=901, **({"payload": b"x" * 1000} | what)).frame()


def words(refused: Any) -> tuple[int, int]:
    return refused.value.type, refused.value.code


# SET_RECOVERY


def test_drops_are_watched_while_a_recovery_lasts_and_not_sent_to_controllers():
    bridge = Bridge(port=2)
    peer = Peer(bridge.server)
    assert bridge.data.thresholds == {2: Thresholds(0, 0, True)}
    frame = segment(1)
    bridge.server.congestion.report_drops([(2, frame, len(frame))], 1)
    assert peer.taken() == []
    drops = bridge.server.congestion.drops
    assert (drops.sent, drops.ignored, drops.suppressed) == (0, 0, 0)
    bridge.recovery.set(WANTED._replace(flags=0), 1)
    assert bridge.data.thresholds == {} and bridge.recovery.settings(2) is None


def test_thresholds_and_recovery_do_not_disturb_each_other():
    bridge = Bridge(port=2)
    bridge.server.congestion.set_thresholds(congestion.SetThresholds(2, 1000, 500, 0), 1)
    assert bridge.data.thresholds[2] == Thresholds(1000, 500, True)
    assert bridge.server.congestion.thresholds[2] == Thresholds(1000, 500, False)
    bridge.recovery.expire(2 * S)
    assert bridge.data.thresholds[2] == Thresholds(1000, 500, False)


def test_the_lease_ends_unless_it_is_renewed():
    bridge = Bridge(port=2)
    bridge.recovery.set(WANTED._replace(below=40_000), 1 * S)
    bridge.server.expire_rules(2 * S)
    assert bridge.recovery.settings(2) == WANTED._replace(below=40_000)
    bridge.lose(1, now=2 * S)
    bridge.server.expire_rules(3 * S)
    assert bridge.recovery.settings(2) is None and bridge.data.thresholds == {}
    assert bridge.recovery.outcomes["forgotten"] == 1 and bridge.recovery.next_ns is None


def test_nothing_is_stored_after_the_lease():
    bridge = Bridge(port=2)
    bridge.lose(1, now=2 * S)
    assert bridge.recovery.stored == bridge.recovery.outcomes["lost"] == 0


def test_a_renewal_keeps_the_losses_and_another_mode_forgets_them():
    bridge = Bridge(port=2)
    bridge.lose(1)
    bridge.recovery.set(WANTED, 1)
    assert bridge.recovery.stored == 1
    bridge.recovery.set(WANTED._replace(flags=DUPACK), 2)
    assert bridge.recovery.stored == 0
    assert (bridge.recovery.outcomes["tracked"], bridge.recovery.outcomes["forgotten"]) == (1, 1)


def test_a_port_that_goes_takes_its_recovery_along():
    bridge = Bridge(port=2)
    bridge.lose(1)
    bridge.server.forget_port(2, 1)
    assert bridge.recovery.settings(2) is None and bridge.recovery.stored == 0
    bridge.recovery.set(WANTED, 2)
    assert bridge.data.thresholds == {2: Thresholds(0, 0, True)}


REFUSED = [
    ({"port": 9}, bad_request("BAD_PORT")),
    ({"flags": 4}, (0xFFFF, congestion.ERROR_FLAGS)),
    ({"bytes": (1 << 31) + 1}, (0xFFFF, recovery.ERROR_LIMIT)),
    ({"age_ms": 0}, (0xFFFF, recovery.ERROR_LIMIT)),
    ({"age_ms": 60_001}, (0xFFFF, recovery.ERROR_LIMIT)),
    ({"below": 0}, (0xFFFF, recovery.ERROR_LIMIT)),
    ({"lease": 0}, (0xFFFF, recovery.ERROR_LIMIT)),
    ({"lease": 65_536}, (0xFFFF, recovery.ERROR_LIMIT)),
]


@pytest.mark.parametrize(("wrong", "error"), REFUSED)
def test_what_is_refused_changes_nothing(wrong, error):
    bridge = Bridge(port=2)
    with pytest.raises(OpenFlowError) as refused:
        bridge.recovery.set(WANTED._replace(**wrong), 1)
    assert words(refused) == error
    assert bridge.recovery.settings(2) == WANTED and list(bridge.data.thresholds) == [2]


def test_a_kernel_that_reports_no_drops():
    bridge = Bridge()
    bridge.data.reports_drops = False
    with pytest.raises(OpenFlowError) as refused:
        bridge.recovery.set(WANTED, 0)
    assert words(refused) == (0xFFFF, congestion.ERROR_NO_DROPS)
    bridge.recovery.set(WANTED._replace(flags=0), 0)


def test_a_recovery_that_the_kernel_refuses_is_not_there():
    bridge = Bridge()
    bridge.data.failure = BpfError("no")
    with pytest.raises(BpfError):
        bridge.recovery.set(WANTED, 0)
    bridge.data.failure = None
    assert bridge.recovery.settings(2) is None
    bridge.server.congestion.set_thresholds(congestion.SetThresholds(2, 10, 5, 0), 1)
    assert bridge.data.thresholds[2] == Thresholds(10, 5, False)


# Recovery


def test_a_segment_is_put_back_as_soon_as_the_queue_can_have_room():
    bridge = Bridge(port=2)
    bridge.data.limits[2] = QueueLimits("bfifo", LIMIT, RATE)
    bridge.backlog(LIMIT)
    (frame,) = bridge.lose(1001)
    # 95,000 bytes above the threshold take 3.8 ms at this rate.
    assert bridge.run(1 * MS) == [500_000] and bridge.sent == []
    assert bridge.recovery.next_ns == 500_000 + 3_800_000
    bridge.backlog(BELOW - 1)
    bridge.run(5 * MS)
    assert bridge.sent == [frame]
    assert bridge.recovery.outcomes["reinjected"] == 1
    assert bridge.server.injector.counts == {"reinject": 1}


@pytest.mark.parametrize("rate", [0, 1000])
def test_a_queue_of_unknown_or_low_rate_is_read_often_enough(rate):
    bridge = Bridge(port=2)
    bridge.data.limits[2] = QueueLimits("bfifo", LIMIT, rate)
    bridge.backlog(LIMIT)
    bridge.lose(1001)
    times = bridge.run(100 * MS)
    gaps = {after - before for before, after in itertools.pairwise(times)}
    assert gaps == {500_000 if rate == 0 else 10 * MS}


def test_segments_are_put_back_up_to_half_of_the_buffer_flows_in_turns():
    bridge = Bridge(port=2)
    bridge.data.limits[2] = QueueLimits("bfifo", LIMIT, RATE)
    frames = bridge.lose(1, 1001, 2001, 3001) + bridge.lose(1, sport=41000)
    bridge.backlog(LIMIT // 2 - 2 * len(frames[0]))
    bridge.recovery.set(WANTED._replace(below=LIMIT), 0)
    bridge.run(500_000)
    first, *others, second = frames
    # All of them: the threshold is more than half of the buffer here.
    assert bridge.sent == [first, second, *others]
    bridge = Bridge(port=2)
    bridge.data.limits[2] = QueueLimits("bfifo", LIMIT, RATE)
    many = bridge.lose(*range(1, 100_000, 1000))
    bridge.backlog(BELOW - 1)
    bridge.run(500_000)
    room = LIMIT // 2 - (BELOW - 1)
    assert bridge.sent == many[: room // len(many[0])]


def test_the_receiver_s_state_is_read_before_a_stamped_segment_is_put_back():
    """Its timestamp is renewed, and no answer of a controller is waited for."""
    bridge = Bridge(port=2)
    bridge.receiver(1001, tsval=70, tsecr=65, has_timestamps=True)
    old, new = (packets.NOP * 2 + packets.timestamps(value, 70) for value in (50, 65))
    bridge.lose(1001, options=old)
    bridge.run(500_000)
    assert bridge.sent == [segment(1001, options=new)]


def test_what_the_receiver_has_is_not_put_back():
    bridge = Bridge(port=2)
    bridge.receiver(2001, tsval=70, tsecr=65, has_timestamps=True)
    bridge.lose(1001, options=packets.NOP * 2 + packets.timestamps(50, 70))
    bridge.run(10 * MS)
    assert bridge.sent == [] and bridge.recovery.outcomes["acked"] == 1
    assert bridge.recovery.stored == 0 and bridge.recovery.next_ns is None


def test_what_the_receiver_does_not_acknowledge_is_put_back_again():
    """After the 5 ms in which a full buffer drains, and 10 ms."""
    bridge = Bridge(port=2)
    bridge.receiver(1001, has_timestamps=False)
    (frame,) = bridge.lose(1001)
    bridge.run(15 * MS)
    assert bridge.sent == [frame]
    bridge.run(25 * MS)
    assert bridge.sent == [frame] * 2 and bridge.recovery.outcomes["unanswered"] == 1
    bridge.receiver(2001, has_timestamps=False)
    bridge.run(1 * S)
    assert len(bridge.sent) == 2 and bridge.recovery.outcomes["acked"] == 1
    assert bridge.recovery.stored == 0 and bridge.recovery.next_ns is None


def test_in_a_slow_queue_the_acknowledgement_takes_longer():
    bridge = Bridge(port=2)
    bridge.data.limits[2] = QueueLimits("bfifo", LIMIT, LIMIT * 10)  # 100 ms
    bridge.receiver(1001, has_timestamps=False)
    bridge.lose(1001)
    bridge.run(110 * MS)
    assert len(bridge.sent) == 1
    bridge.run(120 * MS)
    assert len(bridge.sent) == 2


def test_a_segment_that_the_port_did_not_take_is_sent_later():
    bridge = Bridge(port=2)
    bridge.receiver(1001, has_timestamps=False)
    bridge.data.full = {2}
    (frame,) = bridge.lose(1001)
    bridge.run(10 * MS)
    assert bridge.sent == [] and bridge.server.injector.counts == {f"reinject: {segment_counts.NOT_SENT}": 1}
    bridge.data.full = set()
    bridge.run(25 * MS)
    assert bridge.sent == [frame]


def test_a_receiver_that_the_switch_does_not_see_gets_one_copy():
    bridge = Bridge(port=2)
    (frame,) = bridge.lose(1001)
    bridge.run(1 * S)
    assert bridge.sent == [frame] and bridge.recovery.outcomes["unanswered"] == 0


def test_the_queue_is_read_again_because_the_bridge_fills_it_meanwhile(monkeypatch):
    bridge = Bridge(port=2)
    frames = bridge.lose(*range(1, 20_000, 1000))
    send = bridge.data.send_frame

    def busy(port: int, frame: bytes) -> bool:
        bridge.backlog(LIMIT)
        return send(port, frame)

    monkeypatch.setattr(bridge.data, "send_frame", busy)
    bridge.run(500_000)
    assert bridge.sent == frames[: port_recovery._SEGMENTS]


def test_other_work_has_its_turn():
    bridge = Bridge(port=2)
    frames = [frame for sport in range(100) for frame in bridge.lose(1, sport=41000 + sport, payload=b"x")]
    most = port_recovery._SEGMENTS * port_recovery._READINGS
    assert bridge.run(500_000) == [500_000] and bridge.sent == frames[:most]
    assert bridge.run(1 * MS) == [1 * MS] and bridge.sent == frames


def test_a_new_loss_does_not_wait_until_receivers_are_looked_at():
    bridge = Bridge(port=2)
    bridge.lose(1001)
    bridge.run(500_000)
    assert bridge.recovery.next_ns == 5_500_000
    bridge.lose(2001, now=2 * MS)
    assert bridge.recovery.next_ns == 2_500_000
    bridge.backlog(LIMIT)
    bridge.run(2_500_000)
    # 95,000 bytes above the threshold take 3.8 ms.
    assert bridge.recovery.next_ns == 6_300_000
    bridge.lose(3001, now=3 * MS)
    assert bridge.recovery.next_ns == 6_300_000


def test_duplicates_are_sent_while_the_dropped_packet_is_handled():
    bridge = Bridge(port=2, flags=DUPACK)
    bridge.receiver(1001, has_timestamps=False)
    bridge.lose(1001, 2001)
    assert [port for port, _ in bridge.data.frames] == [1, 1, 1]
    (frame,) = {frame for _, frame in bridge.data.frames}
    found = packets.view(frame)
    assert found is not None and int.from_bytes(frame[found.tcp + 8 : found.tcp + 12], "big") == 1001
    # As the lost segment, in the other direction.
    assert (frame[:6], frame[6:12]) == (packets.MACS[6:], packets.MACS[:6])
    assert bridge.server.injector.counts == {"dupack": 1}
    bridge.receiver(2001, has_timestamps=False)
    bridge.run(10 * MS)
    assert bridge.server.injector.counts == {"dupack": 2}


def test_both_remedies():
    bridge = Bridge(port=2, flags=DUPACK | REINJECT)
    bridge.receiver(1001, has_timestamps=False)
    (frame,) = bridge.lose(1001)
    bridge.run(10 * MS)
    assert bridge.sent == [frame] and bridge.server.injector.counts == {"dupack": 1, "reinject": 1}


def test_an_old_segment_is_forgotten():
    bridge = Bridge(port=2, age_ms=20)
    bridge.backlog(LIMIT)
    bridge.lose(1001)
    bridge.run(1 * S)
    assert bridge.sent == [] and bridge.recovery.outcomes["expired"] == 1
    assert bridge.recovery.next_ns is None


def test_a_port_stores_no_more_than_its_bytes():
    bridge = Bridge(port=2, bytes=10_000)
    bridge.backlog(LIMIT)
    bridge.lose(*range(1, 20_000, 1000))
    assert 0 < bridge.recovery.stored <= 10_000 // 1310
    assert bridge.recovery.outcomes["overflow"] == 20 - bridge.recovery.stored


MD5, AO = b"\1\1\x13\x12" + bytes(16), b"\x1d\x10" + bytes(14)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0" * 60,
        segment(1)[:30],
        Segment(flags="A").frame(),
        Segment(flags="R").frame(),
        segment(1, options=MD5),
        segment(1, flags="S", options=AO),
    ],
)
def test_other_frames_are_counted_and_forgotten(frame):
    bridge = Bridge(port=2)
    bridge.recovery.dropped([(2, frame, len(frame)), (1, frame, len(frame)), (7, frame, 60)], 0)
    assert (bridge.recovery.outcomes["lost"], bridge.recovery.outcomes["ignored"]) == (1, 1)
    assert bridge.recovery._ports[2].links == {}
    assert bridge.recovery.next_ns is None


def test_a_segment_that_is_cut_short_is_not_put_back():
    bridge = Bridge(port=2)
    bridge.recovery.dropped([(2, segment(1)[:500], 1054)], 0)
    bridge.run(10 * MS)
    assert bridge.sent == [] and bridge.recovery.outcomes["truncated"] == 1


def test_addresses_are_kept_for_flows_with_losses_only():
    bridge = Bridge(port=2, flags=DUPACK, age_ms=20)
    bridge.lose(1001)
    (port,) = bridge.recovery._ports.values()
    assert list(port.links) == [KEY]
    bridge.run(1 * S)
    assert port.links == {}


# Messages


def test_the_messages_through_a_session():
    bridge = Bridge()
    peer = Peer(bridge.server)
    assert peer.ask(recovery.set_recovery(DATAPATH, WANTED)) == []
    assert bridge.recovery.settings(2) == WANTED
    bridge.receiver(1001, has_timestamps=False)
    known = Addressing(KEY.reversed, "02:00:00:00:00:02", "02:00:00:00:00:01")
    assert peer.ask(waking.wake(DATAPATH, [known])) == []
    assert [port for port, _ in bridge.data.frames] == [1]
    bridge.lose(1001)
    answer = peer.one(segment_counts.request(DATAPATH))
    assert segment_counts.decode_reply(bytes(answer.body.data)) == SegmentCounts(
        {"lost": 1, "tracked": 1}, {"wake": 1}, 1
    )


def short(message: Any) -> bytes:
    """The message without its last byte."""
    data = wire(message)[:-1]
    return data[:2] + len(data).to_bytes(2, "big") + data[4:]


KNOWN = Addressing(KEY.reversed, "02:00:00:00:00:02", "02:00:00:00:00:01")


@pytest.mark.parametrize(
    "made",
    [lambda: recovery.set_recovery(DATAPATH, WANTED), lambda: waking.wake(DATAPATH, [KNOWN])],
    ids=["SET_RECOVERY", "WAKE"],
)
def test_malformed_messages_and_those_of_a_slave(made):
    bridge = Bridge()
    peer = Peer(bridge.server)
    assert peer.refusal(short(made())) == bad_request("BAD_LEN")
    role(peer, ofp.OFPCR_ROLE_SLAVE)
    assert peer.refusal(made()) == bad_request("IS_SLAVE")
    assert bridge.data.frames == [] and bridge.recovery.settings(2) is None


def test_a_limit_that_is_refused_is_named():
    peer = Peer(Bridge().server)
    data = wire(recovery.set_recovery(DATAPATH, WANTED._replace(lease=0)))
    peer.session.receive(data)
    (answer,) = [ryu_decode(bytes(peer.sent))]
    assert (answer.type, answer.exp_type) == (ofp.OFPET_EXPERIMENTER, recovery.ERROR_LIMIT)
    assert bytes(answer.data)[len(data) :] == b"lease 0 is not in 1 to 65535"
