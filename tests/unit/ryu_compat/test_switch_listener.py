"""Who may connect, and who is taken for which switch."""

from __future__ import annotations

import errno
import logging
import socket
from typing import Any

import pytest
from ryu.lib import hub

from fairq_ryu.ryu_compat import switch_listener
from fairq_ryu.ryu_compat.limited_log import SparingLog
from fairq_ryu.ryu_compat.switch_listener import Doorway, Refused, host_of, peer_of


@pytest.fixture
def said(monkeypatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(switch_listener.SAID, "say", lambda _peer, text: lines.append(text))
    return lines


class Switch:
    """As much of a connection as the doorway looks at."""

    def __init__(self, number: int, alive: bool = True, place: Doorway | None = None) -> None:
        self.address = ("10.0.0.1", number)
        self.alive, self.place = alive, place
        self.ended = False
        self.reasons: list[str] = []

    def answers(self, _seconds: float) -> bool:
        return self.alive

    def end(self, reason: str) -> None:
        self.reasons.append(reason)
        self.ended = True
        if self.place is not None:  # as when its greenlet has come to its end
            self.place.by_dpid = {dpid: each for dpid, each in self.place.by_dpid.items() if each is not self}


def test_a_newcomer_does_not_displace_a_switch_that_answers(said):
    place = Doorway()
    present, newcomer = Switch(1), Switch(2)
    place.claim(present, 7)
    with pytest.raises(
        Refused,
        match=r"datapath id 0000000000000007, but that switch is connected from 10.0.0.1:1 and answers",
    ):
        place.claim(newcomer, 7)
    assert place.by_dpid == {7: present}
    assert present.reasons == []


def test_a_switch_that_has_gone_without_a_word_makes_room(said):
    place = Doorway()
    gone, anew = Switch(1, alive=False, place=place), Switch(2)
    place.claim(gone, 7)
    place.claim(anew, 7)
    assert gone.reasons == ["no answer to an echo request, and the switch has connected again"]
    assert place.by_dpid == {7: anew}


def test_the_former_connection_is_over_before_the_next_begins(monkeypatch, said):
    monkeypatch.setattr(switch_listener, "ANSWER_TIME", 0.05)
    place = Doorway()
    stuck = Switch(1, alive=False)  # it ends, and does not come to its end
    place.claim(stuck, 7)
    with pytest.raises(Refused, match="is not closed yet"):
        place.claim(Switch(2), 7)


def test_the_same_connection_may_say_who_it_is_again():
    place, switch = Doorway(), Switch(1)
    place.claim(switch, 7)
    place.claim(switch, 7)
    with place.served(switch):  # type: ignore[arg-type]
        pass
    assert place.by_dpid == {}


def enter(place: Doorway, host: str, number: int) -> Any:
    switch: Any = Switch(number)
    assert place.admit((host, number))
    place.enter((host, number), switch)
    place.guests[switch].connection = switch
    return switch


def test_the_oldest_of_an_address_makes_room(monkeypatch, said):
    monkeypatch.setattr(switch_listener, "MOST_WAITING_OF_ONE", 3)
    place = Doorway()
    other = enter(place, "10.0.0.9", 1)
    first, *rest = [enter(place, "10.0.0.1", number) for number in range(4)]
    assert first.reasons == [
        "3 connections from its address have not completed the handshake, and this is the oldest"
    ]
    assert not any(each.reasons for each in [other, *rest])


def test_the_oldest_of_all_makes_room(monkeypatch, said):
    monkeypatch.setattr(switch_listener, "MOST_WAITING", 3)
    place = Doorway()
    first, *rest = [enter(place, f"10.0.0.{number}", number) for number in range(4)]
    assert first.reasons == ["3 connections have not completed the handshake, and this is the oldest"]
    assert not any(each.reasons for each in rest)


def test_there_are_only_so_many_connections(said):
    place = Doorway()
    place.most = 2
    for number in range(2):
        enter(place, "10.0.0.1", number)
    assert not place.admit(("10.0.0.1", 5))
    assert said == ["10.0.0.1:5: 2 connections are the limit; refused"]


def test_accept_may_fail(monkeypatch, said):
    """Without a file descriptor left, Ryu's own server ends for good."""
    monkeypatch.setattr(switch_listener, "_ACCEPT_AGAIN", 0)
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
    assert said[0] == "accept failed: Too many open files; will try again"
    real.close()
    assert switch_listener.DOORWAY.guests == {}


def test_peers_are_named_as_people_write_them():
    assert peer_of(("10.0.0.1", 80)) == "10.0.0.1:80"
    assert peer_of(("fe80::1", 80, 0, 0)) == "[fe80::1]:80"
    assert peer_of("") == host_of("") == "local"


def test_a_peer_that_hammers_gets_few_lines(caplog):
    now = [0.0]
    caplog.set_level(logging.WARNING)
    log = SparingLog(logging.getLogger("test"), lambda: now[0])
    for number in range(1000):
        log.say("10.0.0.1", f"line {number}")
    log.say("10.0.0.2", "another")
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
    log.say("10.0.0.1", "later")
    assert caplog.messages == ["995 more such lines were suppressed", "later"]


def test_many_peers_that_hammer_get_few_lines_together(caplog):
    caplog.set_level(logging.WARNING)
    log = SparingLog(logging.getLogger("test"), lambda: 0.0)
    for number in range(1000):
        log.say(f"10.0.0.{number}", "line")
    assert len(caplog.messages) == 60
