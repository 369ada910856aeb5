"""SET_TENANTS, and the multipart about tenants, on the wire."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import tenants
from fairq_ryu.channel.tenants import SetTenants, TenantState
from fairq_ryu.tenants import Priorities

NET, HOST = ipaddress.ip_network("10.0.1.0/24"), ipaddress.ip_network("fd00::7/128")
TABLE = SetTenants(3, 2000, {1: 2, 2: 1}, {NET: 1, HOST: 2}, Priorities({443: 200}, {46: 400}))
NETWORKS = st.builds(
    lambda address, bits: ipaddress.ip_network((address, min(bits, address.max_prefixlen)), strict=False),
    st.ip_addresses(),
    st.integers(0, 128),
)
TABLES = st.builds(
    lambda number, weights, networks, ports, dscp: SetTenants(
        number,
        2000,
        dict(enumerate(weights)),
        {network: i % len(weights) for i, network in enumerate(networks)},
        Priorities(ports, dscp),
    ),
    st.integers(1, 2**32 - 1),
    st.lists(st.integers(1, 1000), min_size=1, max_size=64),
    st.lists(NETWORKS, max_size=8, unique=True),
    st.dictionaries(st.integers(0, 65535), st.integers(1, 1000), max_size=4),
    st.dictionaries(st.integers(0, 63), st.integers(1, 1000), max_size=4),
)
STATE = TenantState(3, 2, 1, 4, 100, 5000, 7, 32768, 60_000)


def test_a_table_on_the_wire():
    assert tenants.encode(TABLE).hex() == (
        "00000003000007d0" "0002000200020000" "0100000000000002" "0200000000000001"
        "01041800" "0a000100" + "00" * 12 + "02068000" "fd" + "00" * 14 + "07"
        "000001bb00c80000" "0001002e01900000"
    )  # fmt: skip


@given(TABLES)
def test_tables_round_trip(table):
    assert tenants.decode(tenants.encode(table)) == table


@given(st.lists(st.builds(lambda n: STATE._replace(bytes=n), st.integers(0, 2**64 - 1)), max_size=3))
def test_states_round_trip(states):
    assert tenants.decode_reply(tenants.encode_reply(states)) == states


def test_requests_round_trip():
    assert tenants.decode_request(tenants.encode_request(7)) == 7


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (SetTenants(0, 2000), "a number from 1"),
        (SetTenants(1, 99), "lease 99 ms"),
        (SetTenants(1, 600_001), "lease 600001 ms"),
        (SetTenants(1, 2000, {64: 1}), "tenant 64 is above 63"),
        (SetTenants(1, 2000, {1: 0}), "weight 0 of tenant 1"),
        (SetTenants(1, 2000, {1: 1001}), "weight 1001 of tenant 1"),
        (SetTenants(1, 2000, {1: 1}, {NET: 2}), "10.0.1.0/24 belongs to tenant 2, which is not"),
        (SetTenants(1, 2000, priorities=Priorities({80: 0})), "priority 0 of port 80"),
        (SetTenants(1, 2000, priorities=Priorities({}, {64: 1})), "priority 1 of DSCP 64"),
        (SetTenants(1, 2000, priorities=Priorities(dict.fromkeys(range(257), 1))), "more than 256"),
    ],
)
def test_a_wrong_table_is_not_sent(table, why):
    assert why in str(table.wrong())
    with pytest.raises(ValueError, match=why):
        tenants.encode(table)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "at least 16 bytes, not 0"),
        (tenants.encode(TABLE)[:-1], "by its counts, not 87"),
        (tenants.encode(TABLE) + b"\0", "by its counts, not 89"),
        (tenants.encode(TABLE).replace(b"\x02\x06\x80", b"\x02\x05\x80"), "IP version 5"),
        (tenants.encode(TABLE).replace(b"\x01\x04\x18", b"\x01\x04\x08"), "host bits"),
        (tenants.encode(TABLE).replace(b"\x01\x04\x18", b"\x01\x04\x21"), "33"),
        (tenants.encode(TABLE).replace(b"\x02\0\0\0", b"\x01\0\0\0"), "tenant 1 is there twice"),
    ],
)
def test_malformed_messages(body, why):
    with pytest.raises(ValueError, match=why):
        tenants.decode(body)
    with pytest.raises(ValueError, match="reply about tenants"):
        tenants.decode_reply(bytes(tenants.STATE_SIZE + 1))
    with pytest.raises(ValueError, match="request about tenants"):
        tenants.decode_request(bytes(3))
