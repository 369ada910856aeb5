"""The workers of the controller, run step by step: SYN admission and flow tracking on a :class:`Site`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.control import worker
from fairq_ryu.control.flows import flow_tracking, syn_admission
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.flows.syn_admission import SynAdmission
from fairq_ryu.packet.parse import Frame
from tests.support.flownet import KEY, A, B, segment
from tests.support.site import CLIENT_MAC, SERVER_MAC, Site


class Idle(Exception):
    """The worker is idle: instead of waiting for ever it returns to the test."""


class WakeEvent:
    """The event that wakes the worker."""

    def __init__(self) -> None:
        self.rung = False

    def is_set(self) -> bool:
        return self.rung

    def set(self) -> None:
        self.rung = True

    def clear(self) -> None:
        self.rung = False

    def wait(self) -> None:
        if not self.rung:
            raise Idle


class Workers:
    """The workers of a site with two known hosts; ``meanwhile`` is called whenever a worker yields to other
    greenlets.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site = Site()
        self.meanwhile: Callable[[], Any] = lambda: None
        self.now = 11.0
        self.clock: Callable[[], float] = lambda: self.now
        monkeypatch.setattr(worker, "hub", SimpleNamespace(Event=WakeEvent))
        for module in (flow_tracking, syn_admission):
            monkeypatch.setattr(module, "hub", SimpleNamespace(sleep=lambda _: self.meanwhile()))
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.clock()))
        site.fabric.tick(10.0)
        for mac, port in ((CLIENT_MAC, A), (SERVER_MAC, B)):
            site.fabric.host_seen(site.bridge, Frame(mac, "ff:ff:ff:ff:ff:ff", ()), port, 10.0)
        site.fabric.refresh()
        site.log.clear()
        log = logging.getLogger(__name__)
        self.tracker = FlowTracker(site.fabric, site.flows, site.windows, log)
        self.admission = SynAdmission(site.fabric, site.windows, self.tracker, log)

    def queue_syn(self, number: int, now: float = 11.0) -> None:
        """The first SYN of a connection arrives; its frame is the number as bytes."""
        key = KEY._replace(sport=KEY.sport + number)
        frame = Frame(CLIENT_MAC, SERVER_MAC, (), KEY.src, None, segment(key, "S", seq=100), 0)
        self.admission.hold(self.site.bridge, frame, bytes([number]), A, now)

    def admit(self) -> None:
        with pytest.raises(Idle):
            self.admission.run()

    def copy(self, number: int, now: float = 11.0) -> None:
        """A copy of the first SYN of a connection arrives."""
        key = KEY._replace(sport=KEY.sport + number)
        syn = segment(key, "S", seq=100)
        self.tracker.copied(Frame(CLIENT_MAC, SERVER_MAC, (), KEY.src, None, syn, 0), syn, A, now)

    def fail_with(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Processing that connection raises an error."""
        path = self.site.fabric.assign_path

        def bad(key: Any, *about: Any) -> Any:
            if key.sport == KEY.sport + number:
                raise RuntimeError("a bad day")
            return path(key, *about)

        monkeypatch.setattr(self.site.fabric, "assign_path", bad)

    def process_copies(self) -> None:
        with pytest.raises(Idle):
            self.tracker.run()

    @property
    def forwarded(self) -> list[int]:
        """The SYNs that were forwarded, by number."""
        outs = (message for message in self.site.bridge.sent if type(message).__name__ == "OFPPacketOut")
        return [message.data[0] for message in outs]

    @property
    def counted(self) -> list[int]:
        """The connections in the flow table, by number."""
        return sorted(each.forward.sport - KEY.sport for each in self.site.flows)
