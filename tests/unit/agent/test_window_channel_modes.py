"""SET_PORT_MODE and port modes through a session."""

from __future__ import annotations

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.channel import oxm, port_mode, recovery
from fairq_ryu.channel.port_mode import ACT, OBSERVE, PortWindows
from tests.support.agent_peer import Peer, bad_request, role
from tests.support.fakes import DATAPATH, FakeDatapath


def set_mode(port: int, mode: int):
    return port_mode.set_port_mode(DATAPATH, port, mode)


def modes(peer: Peer, port: int = ofp.OFPP_ANY) -> list[PortWindows]:
    return port_mode.decode_reply(peer.one(port_mode.request(DATAPATH, port)).body.data)


def test_modes_are_set_read_and_kept(peer: Peer, data: FakeDatapath, switch) -> None:
    data.window_counted[2] = (9, 5, 3)
    assert modes(peer) == [PortWindows(1, ACT, 0, 0, 0), PortWindows(2, ACT, 9, 5, 3)]
    assert peer.ask(set_mode(2, OBSERVE)) == []
    assert modes(peer, 2) == [PortWindows(2, OBSERVE, 9, 5, 3)]
    # Another connection, hours later: nothing has ended.
    peer.session.close()
    switch.expire_rules(1 << 62)
    other = Peer(switch)
    assert [each.mode for each in modes(other)] == [ACT, OBSERVE]
    assert other.ask(set_mode(ofp.OFPP_ANY, OBSERVE)) == [] and data.observed == {1, 2}
    assert other.ask(set_mode(ofp.OFPP_ANY, ACT)) == [] and data.observed == set()


def test_what_is_refused_changes_nothing(peer: Peer, data: FakeDatapath) -> None:
    assert peer.refusal(set_mode(9, OBSERVE)) == bad_request("BAD_PORT")
    assert peer.refusal(port_mode.request(DATAPATH, 9)) == bad_request("BAD_PORT")
    (error,) = peer.ask(set_mode(2, 7))
    assert (error.type, error.experimenter, error.exp_type) == (
        ofp.OFPET_EXPERIMENTER,
        oxm.EXPERIMENTER_ID,
        port_mode.ERROR_MODE,
    )
    assert error.data.endswith(b"mode 7")
    data.failure = BpfError("no")
    assert peer.refusal(set_mode(2, OBSERVE)) == bad_request("EPERM")
    assert data.observed == set()


def test_a_slave_may_not_set_a_mode(peer: Peer, data: FakeDatapath) -> None:
    role(peer, ofp.OFPCR_ROLE_SLAVE)
    assert peer.refusal(set_mode(2, OBSERVE)) == bad_request("IS_SLAVE")
    assert data.observed == set()


def test_a_recovery_ends_when_its_port_is_observed(peer: Peer, switch) -> None:
    wanted = recovery.SetRecovery(2, recovery.REINJECT, 1 << 20, 1000, 30_000, 2)
    assert peer.ask(recovery.set_recovery(DATAPATH, wanted)) == []
    assert peer.ask(set_mode(2, OBSERVE)) == []
    assert switch.recovery.settings(2) is None
