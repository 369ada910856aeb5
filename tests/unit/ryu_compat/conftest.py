"""Fixtures of the tests of Ryu's patches."""

import pytest

from fairq_ryu.ryu_compat import switch_listener


@pytest.fixture
def peer_warnings(monkeypatch) -> list[str]:
    """What is logged about switches that are refused or disconnected."""
    lines: list[str] = []
    monkeypatch.setattr(switch_listener.PEER_LOG, "warning", lambda _peer, text: lines.append(text))
    return lines
