"""Limits on connections and handshakes; one connection per datapath id; rate-limited log lines."""

from __future__ import annotations

import errno
import logging
import socket
from typing import Any

import pytest
from ryu.lib import hub

from fairq_ryu.ryu_compat import accepting, switch_listener
from fairq_ryu.ryu_compat.limited_log import RateLimitedLog
from fairq_ryu.ryu_compat.switch_listener import ConnectionRegistry, Refused, host_of, peer_of


class Switch:
    """The part of a connection that the registry uses."""

    def __init__(self, number: int, alive: bool = True, registry: ConnectionRegistry | None = None) -> None:
        self.address = ("10.0.0.1", number)
        self.alive, self.registry = alive, registry
        self.ended = False
        self.reasons: list[str] = []

    def answers(self, _seconds: float) -> bool:
        return self.alive

    def end(self, reason: str) -> None:
        self.reasons.append(reason)
        self.ended = True
        if self.registry is not None:  # as when its greenlet has ended
            self.registry.by_dpid = {
                dpid: each for dpid, each in self.registry.by_dpid.items() if each is not self
            }


def test_a_new_connection_does_not_replace_a_switch_that_answers(peer_warnings):
    registry = ConnectionRegistry()
    present, newcomer = Switch(1), Switch(2)
    registry.claim(present, 7)
    with pytest.raises(
        Refused,
        match=r"datapath id 0000000000000007, but that switch is connected from 10.0.0.1:1 and answers",
    ):
        registry.claim(newcomer, 7)
    assert registry.by_dpid == {7: present}
    assert present.reasons == []


def test_a_switch_that_does_not_answer_is_replaced(peer_warnings):
    registry = ConnectionRegistry()
    gone, anew = Switch(1, alive=False, registry=registry), Switch(2)
    registry.claim(gone, 7)
    registry.claim(anew, 7)
    assert gone.reasons == ["no answer to an echo request, and the switch has connected again"]
    assert registry.by_dpid == {7: anew}


def test_the_former_connection_ends_before_the_next_begins(monkeypatch, peer_warnings):
    monkeypatch.setattr(switch_listener, "ANSWER_TIME", 0.05)
    registry = ConnectionRegistry()
    stuck = Switch(1, alive=False)  # it is closed, but its greenlet does not end
    registry.claim(stuck, 7)
    with pytest.raises(Refused, match="is not closed yet"):
        registry.claim(Switch(2), 7)


def test_the_same_connection_may_report_its_dpid_again():
    registry, switch = ConnectionRegistry(), Switch(1)
    registry.claim(switch, 7)
    registry.claim(switch, 7)
    with registry.served(switch):  # type: ignore[arg-type]
        pass
    assert registry.by_dpid == {}


def enter(registry: ConnectionRegistry, host: str, number: int) -> Any:
    switch: Any = Switch(number)
    assert registry.admit((host, number))
    registry.add((host, number), switch)
    registry.accepted[switch].connection = switch
    return switch


def test_the_oldest_handshake_of_an_address_is_closed(monkeypatch, peer_warnings):
    monkeypatch.setattr(switch_listener, "MAX_PENDING_PER_HOST", 3)
    registry = ConnectionRegistry()
    other = enter(registry, "10.0.0.9", 1)
    first, *rest = [enter(registry, "10.0.0.1", number) for number in range(4)]
    assert first.reasons == [
        "3 connections from its address have not completed the handshake, and this is the oldest"
    ]
    assert not any(each.reasons for each in [other, *rest])


def test_the_oldest_handshake_of_all_is_closed(monkeypatch, peer_warnings):
    monkeypatch.setattr(switch_listener, "MAX_PENDING", 3)
    registry = ConnectionRegistry()
    first, *rest = [enter(registry, f"10.0.0.{number}", number) for number in range(4)]
    assert first.reasons == ["3 connections have not completed the handshake, and this is the oldest"]
    assert not any(each.reasons for each in rest)


def test_the_number_of_connections_is_limited(peer_warnings):
    registry = ConnectionRegistry()
    registry.max_connections = 2
    for number in range(2):
        enter(registry, "10.0.0.1", number)
    assert not registry.admit(("10.0.0.1", 5))
    assert peer_warnings == ["10.0.0.1:5: 2 connections are the limit; refused"]


def test_accept_may_fail(monkeypatch, peer_warnings):
    """Without a free file descriptor, Ryu's own server ends for good."""
    monkeypatch.setattr(accepting, "_RETRY", 0)
    served: list[Any] = []
    server = switch_listener.make_server(lambda sock, address: served.append(address))(("127.0.0.1", 0))
    failures = [OSError(errno.EMFILE, "Too many open files"), OSError(errno.ECONNABORTED, "aborted")]
    real = server.server

    class Failing:
        def accept(self) -> Any:
            if failures:
                raise failures.pop(0)
            return real.accept()

    server.server = Failing()
    with socket.create_connection(real.getsockname()):
        loop = hub.spawn(server.serve_forever)
        for _ in range(200):
            hub.sleep(0.005)
            if served:
                break
        hub.kill(loop)
    assert len(served) == 1
    assert peer_warnings[0] == "accept failed: Too many open files; will try again"
    real.close()
    assert switch_listener.CONNECTIONS.accepted == {}


def test_peers_are_shown_as_host_and_port():
    assert peer_of(("10.0.0.1", 80)) == "10.0.0.1:80"
    assert peer_of(("fe80::1", 80, 0, 0)) == "[fe80::1]:80"
    assert peer_of("") == host_of("") == "local"


def test_a_peer_that_reconnects_often_gets_few_log_lines(caplog):
    now = [0.0]
    caplog.set_level(logging.WARNING)
    limited = RateLimitedLog(logging.getLogger("test"), lambda: now[0])
    for number in range(1000):
        limited.warning("10.0.0.1", f"line {number}")
    limited.warning("10.0.0.2", "another")
    assert caplog.messages == [
        "line 0",
        "line 1",
        "line 2",
        "line 3",
        "line 4 (more lines about it are suppressed for a minute)",
        "another",
    ]
    caplog.clear()
    now[0] = 61.0
    limited.warning("10.0.0.1", "later")
    assert caplog.messages == ["995 more such lines were suppressed", "later"]


def test_many_peers_that_reconnect_often_get_few_log_lines_together(caplog):
    caplog.set_level(logging.WARNING)
    limited = RateLimitedLog(logging.getLogger("test"), lambda: 0.0)
    for number in range(1000):
        limited.warning(f"10.0.0.{number}", "line")
    assert len(caplog.messages) == 60
