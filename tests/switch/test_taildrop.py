"""Tail drop, packet by packet, against the kernel's own word: real packets through a real htb and bfifo."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from fairq_ryu.agent.programs.taildrop import start_taildrop
from fairq_ryu.experiments.measure.queues import Losses, read_losses
from tests.switch.rig import make_port, namespace, run
from tests.switch.test_queue import kernels_word, send, shape, wait_empty


@pytest.fixture
def port() -> Iterator[str]:
    with namespace():
        run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", "net.ipv6.conf.all.disable_ipv6=1")
        make_port(1, "p1")
        shape("p1", "40kbit", 20_000)  # five packets of 1000 bytes a second
        yield "p1"


def kernels_losses(name: str) -> Losses:
    return read_losses(json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", name)))


def test_the_packet_that_does_not_fit_is_dropped_and_its_sender_hears_nothing(port: str) -> None:
    drop = start_taildrop({port: 20_000})
    before = kernels_losses(port)
    send(port, 60, 1000)
    word = kernels_word(port)
    assert word["drops"] == 0 and 19_000 <= word["backlog"] <= 20_000
    lost = kernels_losses(port).since(before)
    assert lost.refused == 0 and lost.taken == drop.dropped(socket.if_nametoindex(port))
    # The rest of it is in the queue or on the wire.
    assert drop.dropped(socket.if_nametoindex(port)) == 60 - word["packets"] - word["qlen"] > 30
    shape(port, "100mbit", 20_000)
    wait_empty(port)
    seen = drop.dropped(socket.if_nametoindex(port))
    send(port, 20, 1000)  # what fits goes on
    assert drop.dropped(socket.if_nametoindex(port)) == seen
    drop.close()


def test_a_packet_that_just_fits_goes_on(port: str) -> None:
    drop = start_taildrop({port: 20_000})
    shape(port, "8kbit", 20_000)
    send(port, 1, 1500)  # on the wire at once, and the next waits for a second and a half
    room = 20_000 - kernels_word(port)["backlog"]
    sizes = [1000] * ((room - 1000) // 1000)
    sizes.append(room - sum(sizes))
    for size in sizes:
        send(port, 1, size)
    assert kernels_word(port)["backlog"] == 20_000 and drop.dropped(socket.if_nametoindex(port)) == 0
    send(port, 1, 60)
    assert kernels_word(port)["drops"] == 0 and drop.dropped(socket.if_nametoindex(port)) == 1
    drop.close()


def test_when_it_is_closed_the_queue_refuses_again(port: str) -> None:
    drop = start_taildrop({port: 20_000})
    drop.close()
    drop.close()
    send(port, 60, 1000)
    assert kernels_losses(port).refused > 30


def test_an_interface_that_is_not_there_is_an_error_and_leaves_nothing(port: str) -> None:
    with pytest.raises(OSError, match="no interface"):
        start_taildrop({port: 20_000, "nobody": 1})
    assert "filter" not in run("tc", "filter", "show", "dev", port, "egress")
