"""Bridges and ports by what requests call them; more in test_mode_control.py."""

from __future__ import annotations

import pytest

from fairq_ryu.control.operations.named_ports import NamedPorts, NotHere
from fairq_ryu.errors import UserError
from fairq_ryu.model import PortKey
from tests.support.restsite import RestSite


def test_a_bridge_is_named_or_numbered():
    named = RestSite("fairq").modes.named
    assert [named.bridge(text) for text in ("br2", "2", "0000000000000002", "1")] == [2, 2, 2, 1]
    assert named.port("s2-eth1", 2) == named.port("1", 2) == named.port("2:1", None) == PortKey(2, 1)
    with pytest.raises(UserError, match="more than one port '1': 1:1, 2:1"):
        named.port("1", None)


def test_where_others_have_bridges_a_port_is_named_with_its_own() -> None:
    """The only one of that name here may not be the one that was meant."""
    alone = RestSite("fairq").modes.named
    shared = NamedPorts(alone.fabric, alone.windows, shared=True)
    assert alone.port("s2-eth1", None) == PortKey(2, 1)
    for text in ("s2-eth1", "7", "no such port"):
        with pytest.raises(UserError, match="more than one may have a port") as refused:
            shared.port(text, None)
        assert not isinstance(refused.value, NotHere)
    assert shared.port("s2-eth1", 2) == shared.port("2:1", None) == PortKey(2, 1)
    with pytest.raises(NotHere):
        shared.port("3:1", None)
