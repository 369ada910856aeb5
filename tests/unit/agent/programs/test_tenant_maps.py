"""Whose counts a new table of tenants ends."""

from __future__ import annotations

import ipaddress

import pytest

from fairq_ryu.agent.programs.tenant_maps import gone_tenants
from fairq_ryu.channel.tenants import SetTenants


def table(*tenants: str, weight: int = 1) -> SetTenants:
    """The tenants 1, 2, ... with their networks; "": none has the number."""
    owners = {
        ipaddress.ip_network(each): number
        for number, networks in enumerate(tenants, 1)
        for each in networks.split()
    }
    return SetTenants(1, 2000, dict.fromkeys(owners.values(), weight), owners)


BEFORE = table("10.0.1.0/24", "10.0.2.0/24 fd00:2::/32")


@pytest.mark.parametrize(
    ("after", "gone"),
    [
        (BEFORE, set()),
        (table("10.0.1.0/24", "10.0.2.0/24 fd00:2::/32", "10.0.3.0/24", weight=7), set()),
        (table("10.0.1.0/24"), {2}),
        (table(), {1, 2}),
        # The number is another's now.
        (table("10.0.1.0/24", "10.0.3.0/24 fd00:3::/32"), {2}),
        (table("10.0.2.0/24", "10.0.1.0/24"), {1, 2}),
        # The same number in the other family is no overlap: 10.0.1.0 begins with 0x0a00.
        (table("a00:100::/24", "fd00:2::/32"), {1}),
        # Some hosts stay.
        (table("10.0.1.0/24 10.0.9.0/24", "fd00:2::/32"), set()),
        (table("10.0.1.7/32", "fd00:2:5::/48"), set()),
        (table("10.0.0.0/23", "fd00::/8"), set()),
        (table("10.0.0.0/25", "fd00:3::/48"), {1, 2}),
    ],
)
def test_a_number_is_gone_if_no_host_of_its_tenant_keeps_it(after: SetTenants, gone: set[int]) -> None:
    assert gone_tenants(BEFORE, after) == gone


def test_the_first_table_ends_nothing() -> None:
    assert gone_tenants(None, BEFORE) == set()


def test_other_hosts_are_always_the_same_tenant() -> None:
    assert gone_tenants(SetTenants(1, 2000, {0: 3}), SetTenants(2, 2000)) == set()
