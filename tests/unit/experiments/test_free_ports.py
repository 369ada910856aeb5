"""Ports for programs that are about to be started."""

import itertools
import os
import socket

from fairq_ryu.experiments import free_ports


def test_a_process_names_all_its_ports_before_it_names_one_again() -> None:
    own = list(itertools.islice(free_ports.ports_of(1000, 12_345), 199))
    assert len(set(own)) == 199
    assert list(itertools.islice(free_ports.ports_of(1000, 12_345), 398)) == own * 2


def test_processes_name_different_ports_unless_their_ids_are_alike() -> None:
    named = [set(itertools.islice(free_ports.ports_of(pid, pid), 199)) for pid in range(1000, 1064)]
    assert sum(map(len, named)) == len(set().union(*named)) == 64 * 199
    assert named[0] == set(itertools.islice(free_ports.ports_of(1064, 3), 199))


def test_they_are_not_those_of_outgoing_connections() -> None:
    """Linux gives those from 32768 on, as a rule (net.ipv4.ip_local_port_range)."""
    own = (itertools.islice(free_ports.ports_of(pid, 0), 200) for pid in range(64))
    assert max(map(max, own)) < 32768


def test_a_port_that_is_in_use_is_not_named(monkeypatch) -> None:
    # Both are this process's own: the port beside one may be another's.
    taken, free = free_ports.free_port(), free_ports.free_port()
    with socket.create_server(("127.0.0.1", taken)):
        monkeypatch.setattr(free_ports, "_ports", {os.getpid(): iter([taken, taken, free])})
        assert free_ports.free_port() == free
