"""SET_TENANTS and requests about tenants, at the agent's end of the channel."""

from __future__ import annotations

import ipaddress

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.channel import flow_priorities, framing, tenants
from fairq_ryu.channel.flow_priorities import FlowPriority
from fairq_ryu.channel.tenants import SetTenants, TenantState
from tests.support.agent_peer import Peer, bad_request, role
from tests.support.fakes import DATAPATH, FakeDatapath
from tests.support.flownet import KEY

NET = ipaddress.ip_network("10.0.1.0/24")
TABLE = SetTenants(3, 2000, {1: 2}, {NET: 1})
STATES = [TenantState(3, port, 1, 4, 100, 5000, 7, 32768, 60_000) for port in (1, 2)]


@pytest.fixture
def data():
    return FakeDatapath(1, 2)


@pytest.fixture
def peer(data):
    return Peer(OpenFlowServer("s1", 1, data, 8))


def sent(body):
    return framing.command(DATAPATH, tenants.EXP_TYPE_SET_TENANTS, body)


def test_a_table_is_set_as_a_whole(peer, data):
    assert peer.ask(tenants.set_tenants(DATAPATH, TABLE)) == []
    ((table, now),) = data.tenants
    assert table == TABLE and now > 0


def test_a_wrong_table_is_refused_with_the_reason_and_changes_nothing(peer, data):
    body = bytearray(tenants.encode(TABLE))
    body[tenants.HEAD_SIZE + tenants.TENANT_SIZE] = 2  # the owner of the network
    (error,) = peer.ask(sent(bytes(body)))
    assert (error.type, error.exp_type) == (ofp.OFPET_EXPERIMENTER, tenants.ERROR_TENANTS)
    assert error.data.endswith(b"10.0.1.0/24 belongs to tenant 2, which is not in the table")
    assert not data.tenants


def test_a_malformed_table_is_refused(peer, data):
    assert peer.refusal(sent(tenants.encode(TABLE)[:-1])) == bad_request("BAD_LEN")
    assert not data.tenants


def test_priorities_of_flows_are_set_together(peer, data):
    wanted = [FlowPriority(KEY, 400), FlowPriority(KEY.reversed, None)]
    assert peer.ask(flow_priorities.set_priorities(DATAPATH, wanted)) == []
    assert data.priorities == [wanted]


def test_a_slave_sets_no_tenants_and_no_priorities(peer, data):
    role(peer, ofp.OFPCR_ROLE_SLAVE)
    assert peer.refusal(tenants.set_tenants(DATAPATH, TABLE)) == bad_request("IS_SLAVE")
    wanted = flow_priorities.set_priorities(DATAPATH, [FlowPriority(KEY, 400)])
    assert peer.refusal(wanted) == bad_request("IS_SLAVE")
    assert not data.tenants and not data.priorities


def test_what_the_kernel_refuses_is_refused(peer, data):
    data.failure = BpfError("no room")
    assert peer.refusal(tenants.set_tenants(DATAPATH, TABLE)) == bad_request("EPERM")


def test_what_tenants_have_is_reported(peer, data):
    data.tenant_states_ = STATES

    def asked(port):
        return tenants.decode_reply(peer.one(tenants.request(DATAPATH, port)).body.data)

    assert asked(ofp.OFPP_ANY) == STATES
    assert asked(2) == STATES[1:]
    assert peer.refusal(tenants.request(DATAPATH, 9)) == bad_request("BAD_PORT")
