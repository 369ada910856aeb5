"""SET_FAR_QUEUES, LEASE_FAR_RATES and the list of far queues through a session."""

from __future__ import annotations

import time

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.far_table import FarTable
from fairq_ryu.channel import far_queues
from fairq_ryu.channel.far_queues import FarQueueState, RateLease, Told
from fairq_ryu.far_queue import FarQueue
from tests.support.agent_peer import Peer, bad_request, role
from tests.support.fakes import DATAPATH

ETH0 = FarQueue("eth0", 1_250_000)


class Ports:
    """A bridge with port 4, eth0."""

    def __init__(self) -> None:
        self.table = FarTable()

    def tell_far_queues(self, told: Told) -> None:
        self.table.tell(told)

    def lease_far_rates(self, lease: RateLease, now_ns: int) -> None:
        assert now_ns <= time.monotonic_ns()
        self.table.lease(lease, now_ns)

    def far_queues(self) -> list[FarQueueState]:
        return self.table.states({"eth0": 4})


def listed(peer: Peer) -> list[FarQueueState]:
    return far_queues.decode_reply(peer.one(far_queues.request(DATAPATH)).body.data)


def told(changes: Told):
    return far_queues.set_far_queues(DATAPATH, changes)


def test_far_queues_are_told_leased_and_listed(peer: Peer, switch) -> None:
    switch.far = Ports()
    assert listed(peer) == []
    assert peer.ask(told({"eth0": ETH0})) == []
    assert listed(peer) == [FarQueueState(ETH0, True, 4)]
    assert peer.ask(far_queues.lease_far_rates(DATAPATH, RateLease(2, {"eth0": 125_000}))) == []
    assert listed(peer) == [FarQueueState(ETH0, True, 4, 125_000)]
    # Another connection, without a word about them.
    peer.session.close()
    assert listed(Peer(switch)) == [FarQueueState(ETH0, True, 4, 125_000)]


def test_what_is_refused_changes_nothing(peer: Peer, switch) -> None:
    switch.far = Ports()
    peer.ask(told({"eth0": ETH0}))
    (error,) = peer.ask(told({"eth0": None, "eth1": FarQueue("eth1", rate=1)}))
    assert far_queues.refused(error) == "eth1: rate 1 bytes/s"
    role(peer, ofp.OFPCR_ROLE_SLAVE)
    assert peer.refusal(told({})) == bad_request("IS_SLAVE")
    lease = far_queues.lease_far_rates(DATAPATH, RateLease(2, {"eth0": 125_000}))
    assert peer.refusal(lease) == bad_request("IS_SLAVE")
    assert listed(peer) == [FarQueueState(ETH0, True, 4)]
