"""Sockets over netlink, compared with what the sockets say themselves. Needs no root: the own namespace."""

import os
import socket
import struct

import pytest

from fairq_ryu.experiments.measure.backlog import Backlog
from fairq_ryu.experiments.measure.sock_diag import SocketList


@pytest.fixture
def connections():
    listener = socket.create_server(("127.0.0.1", 0))
    pairs = []
    for _ in range(70):  # more than are asked for at once
        client = socket.create_connection(listener.getsockname())
        pairs.append((client, listener.accept()[0]))
    yield pairs
    for each in (listener, *(sock for pair in pairs for sock in pair)):
        each.close()


def mine(found, pairs):
    ports = {(here.getsockname()[1], here.getpeername()[1]) for here, _there in pairs}
    return [each for each in found if each.ports in ports]


def test_every_connection_is_found_with_what_tcp_info_has(connections):
    with SocketList(None) as sockets:
        found = mine(sockets.all(), connections)
    assert len(found) == len({each.key for each in found}) == len(connections)
    sock = connections[0][0]
    sock.send(b"x" * 1000)
    with SocketList(None) as sockets:
        (one,) = mine(sockets.all(), connections[:1])
    own = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    assert one.info[:8] == own[:8]  # states and options
    for place in (16, 80, 228):  # MSS, congestion window, receive window
        assert struct.unpack_from("=I", one.info, place) == struct.unpack_from("=I", own, place)


def test_connections_that_are_known_are_asked_for_one_by_one_until_they_end(connections):
    with SocketList(None) as sockets:
        keys = [each.key for each in mine(sockets.all(), connections)]
        assert [each.key for each in sockets.those(keys)] == keys
        gone, there = connections[0]
        (key,) = (each.key for each in mine(sockets.all(), connections[:1]))
        there.close()
        gone.close()
        assert key not in {each.key for each in sockets.those(keys)}
        assert len(sockets.those(keys)) == len(keys) - 1
        assert sockets.those([]) == []
        connections.pop(0)


def test_a_handshake_is_found_and_stays_the_same_connection():
    with socket.create_server(("127.0.0.1", 0)) as listener, SocketList(None) as sockets:
        # The kernel waits for data, as it waits for an ACK that was lost.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 30)
        with socket.create_connection(listener.getsockname()) as client:
            here = (listener.getsockname()[1], client.getsockname()[1])
            (waiting,) = (each for each in sockets.all() if each.ports == here)
            assert waiting.info == b"" and waiting.syn_acks_again == 0
            assert sockets.those([waiting.key]) == [waiting]
            client.send(b"x")
            with listener.accept()[0]:
                (there,) = (each for each in sockets.all() if each.ports == here)
                assert there.key == waiting.key and there.info


def test_an_interface_without_a_queue_has_no_backlog():
    with Backlog("lo") as backlog:
        assert backlog.read() == 0
    with pytest.raises(OSError):
        Backlog(f"none{os.getpid()}")
