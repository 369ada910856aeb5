"""Whose connections are, as the kernel is told, and what it says of groups."""

from __future__ import annotations

import ctypes
from ipaddress import ip_address
from typing import Any

import pytest

from fairq_ryu.experiments.hostcc import coupling, layout
from fairq_ryu.experiments.hostcc.coupling import Coupling, Membership, tenant_number


class Entries:
    """In place of a map: by the bytes of keys."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.found: dict[bytes, Any] = {}

    def set(self, key: Any, value: Any) -> None:
        self.found[bytes(key)] = value

    def keys(self) -> list[Any]:
        return [self.key.from_buffer_copy(key) for key in self.found]

    def items(self) -> list[tuple[Any, Any]]:
        return [(self.key.from_buffer_copy(key), value) for key, value in self.found.items()]

    def delete(self, key: Any) -> bool:
        return self.found.pop(bytes(key), None) is not None


@pytest.fixture
def members() -> Entries:
    return Entries(layout.fq_cc_member_key)


@pytest.fixture
def groups() -> Entries:
    return Entries(layout.fq_cc_group_key)


@pytest.fixture
def coupled(members: Any, groups: Any) -> Coupling:
    return Coupling(members, groups)


def test_a_namespace_has_an_entry_and_one_for_each_port(coupled: Coupling, members: Entries) -> None:
    coupled.enter(5, Membership("a", priority=200, shared=True, ports={443: 900}))
    coupled.enter(6, Membership("b"))
    found = {
        (key.netns, key.port): (value.tenant, value.priority, value.shared) for key, value in members.items()
    }
    a, b = tenant_number("a"), tenant_number("b")
    assert found == {(5, 443): (a, 900, 1), (5, 0): (a, 200, 1), (6, 0): (b, 100, 0)}
    coupled.enter(6, Membership("b", ports={80: 1}))
    coupled.enter(6, Membership("b", ports={81: 1}))
    assert {key.port for key, _ in members.items() if key.netns == 6} == {0, 81}, "the one before was killed"
    coupled.enter(6, Membership("b"))
    coupled.withdraw(5)
    assert [key.netns for key, _ in members.items()] == [6]


def test_a_named_tenant_is_no_namespace() -> None:
    """Namespaces without a tenant are their own, by the kernel's cookie, which is small."""
    assert tenant_number("a") == tenant_number("a") != tenant_number("b")
    assert all(1 << 63 <= tenant_number(name) < 1 << 64 for name in "abcdef")


def add(groups: Entries, tenant: str, address: str, used_ns: int = 0, **fields: Any) -> None:
    packed = ip_address(address).packed.rjust(16, b"\0") if address else bytes(16)
    if len(ip_address(address or "::").packed) == 4:
        packed = bytes(10) + b"\xff\xff" + packed[12:]
    destination = (ctypes.c_uint32 * 4).from_buffer_copy(packed)
    group = layout.fq_cc_group(used_ns=used_ns, **fields)
    groups.set(layout.fq_cc_group_key(tenant_number(tenant), destination), layout.LockedGroup(0, 0, group))


def test_groups_are_those_of_the_tenant(coupled: Coupling, groups: Entries) -> None:
    add(groups, "a", "10.0.0.1", flows=2, window=65536 * 3 // 2, cuts=7)
    add(groups, "a", "2001:db8::1")
    add(groups, "a", "")
    add(groups, "b", "10.0.0.1")
    assert coupled.groups("a") == [
        coupling.Group(ip_address("10.0.0.1"), 2, 1.5, 7),
        coupling.Group(ip_address("2001:db8::1"), 0, 0, 0),
        coupling.Group(None, 0, 0, 0),
    ]


def test_groups_that_were_not_used_for_a_minute_are_removed(coupled: Coupling, groups: Entries) -> None:
    minute = 60 * 10**9
    for name, used_ns in (("a", 0), ("b", 1), ("c", minute)):
        add(groups, name, "10.0.0.1", used_ns)
    assert coupled.sweep(minute + 1) == 1
    assert [len(coupled.groups(name)) for name in "abc"] == [0, 1, 1]
