"""What is inferred about hidden queues, through a session."""

from __future__ import annotations

from dataclasses import replace

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.far_ports import with_far_queues
from fairq_ryu.channel import hidden_queue
from fairq_ryu.far_queue import FAR, FarQueue
from tests.support.agent_peer import Peer, bad_request
from tests.support.fakes import DATAPATH, FakeDatapath


def asked(peer: Peer, port: int = ofp.OFPP_ANY) -> list[int]:
    """The ports that the reply has records of."""
    body = peer.one(hidden_queue.request(DATAPATH, port)).body.data
    return [each.port for each in hidden_queue.decode_reply(body)]


def test_only_far_queues_have_hidden_queues(peer: Peer, data: FakeDatapath) -> None:
    one = data.ports[1]
    _, far = with_far_queues([one], {one.name: FarQueue(one.name)})
    data.ports[FAR | 1] = replace(far)
    assert asked(peer) == asked(peer, FAR | 1) == [FAR | 1]
    assert asked(peer, 2) == []
    assert peer.refusal(hidden_queue.request(DATAPATH, 9)) == bad_request("BAD_PORT")
