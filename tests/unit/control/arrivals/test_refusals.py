"""Messages that switches refuse are counted and logged; a bridge without meters is no fault."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import far_queues, oxm
from fairq_ryu.control.arrivals.refusals import Refusals
from fairq_ryu.control.reports.counters import Counts
from tests.support.fakes import DATAPATH, wire
from tests.support.site import Site


class Made:
    """Bridge 1 and its agent, which refuse messages; logged lines are in ``lines``."""

    def __init__(self) -> None:
        self.site, self.counts, self.lines = Site(), Counts(), []
        log = logging.getLogger(__name__)
        self.refusals = Refusals(
            self.site.fabric,
            self.site.windows,
            self.counts,
            log,
            lambda who, line: self.lines.append((who, line)),
        )

    def refuse(self, datapath: Any, kind: int, **about: Any) -> None:
        message = {"datapath": datapath, "type": kind, "code": 1, "xid": 1, "data": b""} | about
        self.refusals.refused(SimpleNamespace(**message))


def test_refusals_are_counted_except_those_of_meters():
    made = Made()
    made.refuse(made.site.agent, ofp.OFPET_FLOW_MOD_FAILED)
    made.refuse(made.site.bridge, ofp.OFPET_FLOW_MOD_FAILED)
    made.refuse(made.site.bridge, ofp.OFPET_METER_MOD_FAILED)
    assert made.counts.refused == {"agent": 1, "bridge": 1}
    assert [who for who, _ in made.lines] == ["agent of bridge 0000000000000001", "bridge 0000000000000001"]
    made.site.log.clear()
    made.site.fabric.request_meter_counters()
    assert not made.site.log


def test_why_an_agent_refuses_far_queues_is_logged_and_kept(caplog):
    made = Made()
    far, peer = made.site.link.far_queues, made.site.agent
    number = far.asked

    def refuse(message, kind, code, text=b"", **own):
        made.refuse(peer, kind, code=code, data=wire(message)[:64] + text, **own)

    own = {"experimenter": oxm.EXPERIMENTER_ID, "exp_type": far_queues.ERROR_FAR_QUEUE}
    told = far_queues.set_far_queues(DATAPATH, {"eth0": None, "eth1": None})
    with caplog.at_level(logging.WARNING):
        refuse(told, ofp.OFPET_EXPERIMENTER, far_queues.ERROR_FAR_QUEUE, b"eth0: no room", **own)
    assert far.refusal(number) == "eth0: no room"
    assert caplog.messages == ["agent of bridge 0000000000000001: far queues: eth0: no room"]
    refuse(far_queues.request(DATAPATH), ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)
    assert far.acknowledged(number, 0.001), "no answer will come"
