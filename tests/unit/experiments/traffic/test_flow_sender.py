"""The sockets of flows that start together, before they start."""

import contextlib
import os
import socket

import pytest

from fairq_ryu.experiments.traffic import flow_sender
from fairq_ryu.experiments.traffic.flow_sender import Source


@pytest.mark.parametrize(("order", "tos"), [({}, 0), ({"dscp": 0}, 0), ({"dscp": 46}, 0xB8)])
def test_the_packets_of_a_flow_have_its_dscp(monkeypatch, order, tos):
    monkeypatch.setattr(flow_sender, "entered", lambda _pid: contextlib.nullcontext())
    monkeypatch.setattr(flow_sender, "answer", lambda *_, **__: None)
    monkeypatch.setattr(flow_sender.gc, "disable", lambda: None)
    source = Source(None)
    flow = {"id": 7, "pid": os.getpid(), "address": "127.0.0.1", "port": 9, "size": 100, "seed": 1}
    source.command({"cmd": "open", "flows": [{**flow, **order}]})
    with source._flows[7].sock as sock:
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == tos
