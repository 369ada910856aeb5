"""Tenants reach agents and their figures come back: a controller and a real agent's server, without sockets
and without eBPF.
"""

from __future__ import annotations

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.channel.tenants import LEFT_OUT, TenantState
from fairq_ryu.config.loader import Config
from fairq_ryu.errors import UserError
from fairq_ryu.model import PortKey
from fairq_ryu.policies.choice import PolicyChoice, make
from fairq_ryu.tenants import OTHERS, Priorities, read_tenant
from tests.support.flownet import A, B
from tests.support.law_network import Network, policy

BLUE, RED = read_tenant("", "blue", ["10.0.1.0/24"], 2), read_tenant("", "red", ["10.0.2.1"], 1)


def network(name: str = "tenants", **values: str) -> Network:
    config = Config({("tenants", key): value for key, value in values.items()}, tenants=(BLUE, RED))
    return Network(make(name, config), config)


def tend(net: Network, after: float = 0.25) -> None:
    net.now += after
    net.windows.tend_tenants(net.now)
    net.deliver()


def tables(net: Network) -> list[int]:
    return [table.number for table, _ in net.data.tenants]


def test_an_agent_gets_the_whole_table_and_renewals():
    net = network(ports="443:200")
    tend(net)
    (table, _), *_ = net.data.tenants
    assert (table.number, table.lease_ms) == (1, net.windows.lease * 1000)
    assert table.weights == {1: 2, 2: 1}
    assert table.owners == {BLUE.hosts[0]: 1, RED.hosts[0]: 2}
    assert table.priorities == Priorities({443: 200}, {})
    for _ in range(4):
        tend(net)
    assert tables(net) == [1, 1, 1]  # each half of a second


def test_without_the_policy_nobody_is_told():
    net = network("fairq")
    tend(net)
    assert not net.data.tenants
    net.read(A)
    (_, law, _) = net.data.laws[A.port]
    assert not law.flags & layout.CONSTANTS["FQ_LAW_TENANTS"]


def test_the_law_of_the_layer_below_is_asked_for_by_tenant():
    net = network(above="las")
    net.read(A, B)
    for _, law, _ in net.data.laws.values():
        assert law.flags & layout.CONSTANTS["FQ_LAW_TENANTS"]


def test_a_tenant_is_added_changed_and_removed_while_it_runs():
    net = network()
    tend(net)
    assert net.windows.tenants.put(read_tenant("", "green", ["10.0.3.0/24"], 5))
    tend(net)
    assert tables(net)[-1] == 2 and net.data.tenants[-1][0].weights == {1: 2, 2: 1, 3: 5}
    assert not net.windows.tenants.put(read_tenant("", "blue", ["10.0.1.0/24"], 3))
    tend(net)
    assert net.data.tenants[-1][0].weights == {1: 3, 2: 1, 3: 5}
    assert net.windows.tenants.remove("red") and not net.windows.tenants.remove("red")
    tend(net)
    assert net.data.tenants[-1][0].weights == {1: 3, 3: 5}
    assert RED.hosts[0] not in net.data.tenants[-1][0].owners


def test_a_wrong_change_changes_nothing():
    net = network()
    tend(net)
    with pytest.raises(UserError, match="both have"):
        net.windows.tenants.put(read_tenant("", "green", ["10.0.1.0/24"], 5))
    tend(net, 1.0)
    assert set(tables(net)) == {1}
    assert [each.name for each in net.windows.tenants.tenants()] == ["blue", "red"]


def test_a_number_of_a_tenant_that_has_gone_is_taken_again_last():
    net = network()
    net.windows.tenants.remove("blue")
    net.windows.tenants.put(read_tenant("", "green", ["10.0.3.0/24"], 5))
    tend(net)
    assert net.data.tenants[-1][0].weights == {2: 1, 3: 5}


def test_another_agent_is_told_at_once():
    net = network()
    tend(net)
    net.data.tenants.clear()
    net.connect()
    tend(net, 0.01)
    assert tables(net) == [1]


def test_a_policy_that_comes_later_brings_the_tenants():
    net = network("fairq")
    tend(net)
    net.windows.use(PolicyChoice(policy("tenants")))
    tend(net)
    assert tables(net) == [1]


def report(net: Network, **values: int) -> None:
    state = TenantState(1, A.port, 1, 2, 10, 0, 3, 32768, 30_000)._replace(**values)
    net.data.tenant_states_ = [state, TenantState(1, B.port, 0, 0, 5, 50, 0, 65536, 60_000)]
    tend(net, 1.0)


def test_what_tenants_have_is_read_each_second():
    net = network()
    tend(net)
    report(net, bytes=1000)
    report(net, bytes=251_000)
    (port, share), *more = net.windows.tenants.shares("blue").items()
    assert port == PortKey(1, A.port) and not more
    assert share.goodput == pytest.approx(250_000)
    assert (share.share, share.pool, share.flows, share.floored) == (0.5, 30_000, 2, 3)
    idle = net.windows.tenants.shares(OTHERS)[PortKey(1, B.port)]
    assert (idle.goodput, idle.share, idle.pool, idle.bytes) == (0, 0, 0, 50)
    assert net.windows.tenants.shares("red") == {} == net.windows.tenants.shares("nobody")


def test_an_agent_that_begins_again_gives_no_goodput_below_zero():
    net = network()
    tend(net)
    report(net, bytes=251_000)
    report(net, bytes=10)
    assert net.windows.tenants.shares("blue")[PortKey(1, A.port)].goodput == 0


def test_figures_of_an_earlier_table_are_not_used():
    net = network()
    tend(net)
    report(net, table=0, bytes=1000)
    assert net.windows.tenants.shares("blue") == {}


def test_an_agent_that_has_gone_is_forgotten():
    net = network()
    tend(net)
    report(net, bytes=1000)
    net.windows.agent_disconnected(net.site.link)
    assert list(net.windows.tenants.due(net.now)) == []
    assert net.windows.tenants.shares("blue") == {}


def test_what_is_not_reported_any_more_is_not_shown():
    """The port has gone, or another policy is in force."""
    net = network()
    tend(net)
    report(net, bytes=1000)
    net.data.tenant_states_ = []
    tend(net, 4.0)
    assert net.windows.tenants.shares("blue")
    tend(net, 1.1)
    assert net.windows.tenants.shares("blue") == {}
    report(net, bytes=1000)
    net.windows.use(PolicyChoice(policy("fairq")))
    tend(net, 5.1)
    assert net.windows.tenants.shares("blue") == {}


def test_a_number_that_is_taken_again_begins_without_the_figures_of_its_last_tenant():
    net = network()
    tend(net)
    report(net, bytes=1000)
    net.windows.tenants.remove("blue")
    assert not [key for key in net.windows.tenants._seen if key[1] == 1]


def test_a_share_that_breaks_is_reported_once_and_when_it_holds_again():
    net = network()
    heard: list[tuple[PortKey, str, bool]] = []
    net.windows.tenants._report_share = lambda *each: heard.append(each)
    tend(net)
    port = PortKey(1, A.port)
    # The counts of an agent that is older than the controller are no news.
    for floored in (3, 3):
        report(net, floored=floored)
    assert heard == []
    for floored in (4, 9, 9, 9, 9, 10):
        report(net, floored=floored)
    assert heard == [(port, "blue", True)]
    for _ in range(4):
        report(net, floored=10)
    assert len(heard) == 1
    for _ in range(6):
        report(net, floored=10)
    assert heard == [(port, "blue", True), (port, "blue", False)]
    report(net, floored=11)
    assert heard[2:] == [(port, "blue", True)]


def test_counts_that_begin_again_break_no_share():
    net = network()
    heard: list[tuple[PortKey, str, bool]] = []
    net.windows.tenants._report_share = lambda *each: heard.append(each)
    tend(net)
    report(net, bytes=1000, floored=1)
    report(net, bytes=10, floored=7)
    net.connect()
    report(net, bytes=20, floored=9)
    assert heard == []
    report(net, bytes=20, floored=10, tenant=0)
    report(net, bytes=20, floored=11, tenant=0)
    assert heard == [(PortKey(1, A.port), OTHERS, True)]


def test_what_met_no_share_is_no_tenant():
    net = network()
    tend(net)
    report(net, tenant=LEFT_OUT, acks=18)
    assert net.windows.tenants.left_out() == {PortKey(1, A.port): 18}
    names = [OTHERS, *(each.name for each in net.windows.tenants.tenants())]
    assert [len(net.windows.tenants.shares(name)) for name in names] == [1, 0, 0]
