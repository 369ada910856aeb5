"""The host table: the latest observation counts, and no entry is left of a forgotten host."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.model import PortKey

A, B, GROUP = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "01:00:5e:00:00:01"
FIRST, SECOND, FAR = PortKey(1, 1), PortKey(1, 2), PortKey(2, 1)


def test_a_new_host_and_a_moved_host_are_changes():
    hosts = HostTable()
    assert hosts.seen(A, FIRST, "10.0.0.1")
    assert not hosts.seen(A, FIRST, "10.0.0.1")
    assert hosts.seen(A, SECOND)
    host = hosts.by_ip("10.0.0.1")
    assert host is not None
    assert (host.mac, host.port) == (A, SECOND)


def test_an_added_address_is_no_change():
    hosts = HostTable()
    hosts.seen(A, FIRST)
    assert not hosts.seen(A, FIRST, "10.0.0.1")
    assert not hosts.seen(A, FIRST, "fe80::1")
    assert hosts.by_ip("10.0.0.1") is hosts.by_ip("fe80::1") is hosts.by_mac(A)


def test_group_addresses_are_ignored():
    hosts = HostTable()
    assert not hosts.seen(GROUP, FIRST, "10.0.0.1")
    assert not hosts.seen("ff:ff:ff:ff:ff:ff", FIRST)
    assert len(hosts) == 0
    assert hosts.by_ip("10.0.0.1") is None


def test_an_address_belongs_to_the_host_seen_with_it_last():
    hosts = HostTable()
    hosts.seen(A, FIRST, "10.0.0.1")
    hosts.seen(B, SECOND, "10.0.0.1")
    assert hosts.by_ip("10.0.0.1") is hosts.by_mac(B)
    assert not hosts.by_mac(A).addresses
    hosts.forget(A)  # the host that has lost it does not remove it
    assert hosts.by_ip("10.0.0.1") is hosts.by_mac(B)


def test_the_number_of_addresses_of_a_host_is_bounded():
    hosts = HostTable()
    for n in range(1000):
        hosts.seen(A, FIRST, f"10.0.{n >> 8}.{n & 255}")
    assert len(hosts.by_mac(A).addresses) == 64
    assert hosts.by_ip("10.0.0.0") is None
    assert hosts.by_ip("10.0.3.231") is hosts.by_mac(A)


def test_a_connection_adds_an_address_of_a_family_without_one():
    hosts = HostTable()
    hosts.seen(A, FIRST, "fe80::1")
    hosts.address_seen(A, FIRST, "10.0.0.1")
    assert list(hosts.by_mac(A).addresses) == ["fe80::1", "10.0.0.1"]
    assert hosts.by_ip("10.0.0.1") is hosts.by_mac(A)
    hosts.address_seen(A, FIRST, "2001:db8::1")  # the link-local address does not count
    assert hosts.by_ip("2001:db8::1") is hosts.by_mac(A)


def test_forged_addresses_of_connections_are_ignored():
    hosts = HostTable()
    hosts.seen(A, FIRST, "10.0.0.1")
    hosts.seen(B, SECOND)
    hosts.address_seen(B, SECOND, "10.0.0.1")  # another host's
    hosts.address_seen(A, FIRST, "10.0.0.7")  # it has one already
    hosts.address_seen(B, FIRST, "10.0.0.2")  # not from the port of the host
    hosts.address_seen("02:00:00:00:00:0c", FIRST, "10.0.0.3")  # no host is known
    hosts.address_seen(B, SECOND, "0.0.0.0")
    assert list(hosts.by_mac(A).addresses) == ["10.0.0.1"]
    assert not hosts.by_mac(B).addresses
    assert hosts.by_ip("10.0.0.1") is hosts.by_mac(A)
    assert len(hosts) == 2


def test_forgetting():
    hosts = HostTable()
    hosts.seen(A, FIRST, "10.0.0.1")
    hosts.seen(B, FAR, "10.0.0.2")
    assert hosts.forget("02:00:00:00:00:0c") is None
    assert hosts.forget_port(SECOND) == []
    assert [host.mac for host in hosts.forget_port(FIRST)] == [A]
    assert hosts.by_mac(A) is None
    assert hosts.by_ip("10.0.0.1") is None
    assert hosts.behind(1) == []
    assert [host.mac for host in hosts.behind(2)] == [B] == [host.mac for host in hosts]


def test_no_port_takes_the_table_from_others():
    hosts = HostTable(8)

    def bring(port, count):
        """New hosts at a port, and how many of them are stored."""
        name = 10 * port.dpid + port.port
        return sum(hosts.seen(f"02:00:00:00:{name}:{each:02x}", port) for each in range(count))

    assert bring(FIRST, 20) == 4
    assert bring(SECOND, 20) == 2
    assert hosts.seen(B, FAR) and not hosts.seen(A, FAR)
    assert len(hosts) == 7
    assert hosts.seen(B, FIRST)  # known ones move
    hosts.forget(B)
    hosts.forget_port(SECOND)
    assert bring(FAR, 20) == 2


MACS, PORTS = st.sampled_from([A, B, GROUP]), st.sampled_from([FIRST, SECOND, FAR])
IPS = st.sampled_from([None, "10.0.0.1", "10.0.0.2", "fe80::1"])
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("seen"), MACS, PORTS, IPS),
        st.tuples(st.just("forget"), MACS),
        st.tuples(st.just("forget_port"), PORTS),
    )
)


@given(ACTIONS)
def test_both_views_of_the_table_agree(actions):
    hosts = HostTable()
    for name, *arguments in actions:
        getattr(hosts, name)(*arguments)
    for ip in ("10.0.0.1", "10.0.0.2", "fe80::1"):
        holders = [mac for mac in (A, B) if (host := hosts.by_mac(mac)) and ip in host.addresses]
        found = hosts.by_ip(ip)
        assert holders == ([found.mac] if found else [])
