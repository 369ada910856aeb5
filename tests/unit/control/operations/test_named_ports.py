"""Bridges and ports by what requests call them; more in test_mode_control.py."""

from __future__ import annotations

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.model import PortKey
from tests.support.restsite import RestSite


def test_a_bridge_is_named_or_numbered():
    named = RestSite("fairq").modes.named
    assert [named.bridge(text) for text in ("br2", "2", "0000000000000002", "1")] == [2, 2, 2, 1]
    assert named.port("s2-eth1", 2) == named.port("1", 2) == named.port("2:1", None) == PortKey(2, 1)
    with pytest.raises(UserError, match="more than one port '1': 1:1, 2:1"):
        named.port("1", None)
