"""Tenants as people write them: what is refused, and why."""

from __future__ import annotations

import ipaddress

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.tenants import MOST_TENANTS, OTHERS, check, read_priorities, read_tenant


def test_a_tenant():
    tenant = read_tenant("here", "blue", ["10.0.1.0/24", "10.0.2.7", "fd00::/64"], 4)
    assert [str(each) for each in tenant.hosts] == ["10.0.1.0/24", "10.0.2.7/32", "fd00::/64"]
    assert tenant.weight == 4


@pytest.mark.parametrize(
    ("name", "hosts", "weight", "why"),
    [
        ("", ["10.0.0.1"], 1, "is not a name"),
        ("a b", ["10.0.0.1"], 1, "is not a name"),
        ("x" * 33, ["10.0.0.1"], 1, "is not a name"),
        (OTHERS, ["10.0.0.1"], 1, "is not a name"),
        ("a", ["fe80::1%eth0"], 1, "has a zone"),
        ("a", [], 1, "no hosts"),
        ("a", ["10.0.0.300"], 1, "hosts: '10.0.0.300'"),
        ("a", ["10.0.0.1/24"], 1, "host bits set"),
        ("a", ["10.0.0.1"], 0, "weight 0"),
        ("a", ["10.0.0.1"], 1001, "weight 1001"),
        ("a", ["10.0.0.1"], True, "weight True"),
        ("a", ["10.0.0.1"], 1.5, "weight 1.5"),
    ],
)
def test_a_wrong_tenant_is_refused(name, hosts, weight, why):
    with pytest.raises(UserError, match="here") as refused:
        read_tenant("here", name, hosts, weight)
    assert why in str(refused.value)


def test_a_network_has_one_owner_and_a_smaller_one_within_it_another():
    one, other = (read_tenant("", name, ["10.0.1.0/24"], 1) for name in "ab")
    with pytest.raises(UserError, match=r"tenants a and b both have 10\.0\.1\.0/24"):
        check([one, other])
    check([one, read_tenant("", "b", ["10.0.1.7"], 1)])


def test_there_are_not_too_many():
    def tenants(count):
        return [read_tenant("", f"t{i}", [str(ipaddress.ip_address(i))], 1) for i in range(1, count + 1)]

    check(tenants(MOST_TENANTS))
    with pytest.raises(UserError, match="64 tenants"):
        check(tenants(MOST_TENANTS + 1))


def test_priorities():
    assert read_priorities("", "443:200  22:1", 65535) == {443: 200, 22: 1}
    assert read_priorities("", "", 63) == {}


@pytest.mark.parametrize("text", ["443", "443:0", "443:1001", "64:100", "x:1", "1:2:3", "-1:5", "4:1 4:2"])
def test_wrong_priorities_are_refused(text):
    with pytest.raises(UserError, match=r"dscp"):
        read_priorities("dscp", text, 63)
