"""Messages that switches refuse are counted and logged; a bridge without meters is no fault."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import congestion, flowmod, oxm, segment_copies
from fairq_ryu.control.arrivals.refusals import Refusals
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.model import Thresholds
from tests.support.fakes import wire
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


def test_drop_reports_are_not_requested_again_from_an_agent_without_them():
    made = Made()
    link, wanted = made.site.link, Thresholds(1000, 500, True)
    link.send(link.drops.set_thresholds(2, wanted))
    made.refuse(
        made.site.agent,
        ofp.OFPET_EXPERIMENTER,
        experimenter=oxm.EXPERIMENTER_ID,
        exp_type=congestion.ERROR_NO_DROPS,
    )
    made.site.log.clear()
    link.send(link.drops.set_thresholds(2, wanted))
    link.send(link.drops.set_thresholds(2, wanted))
    (sent,) = made.site.agent.sent
    assert congestion.decode_set(bytes(sent.data)) == (2, wanted.cng, wanted.nom, 0)
    assert sent.experimenter == oxm.EXPERIMENTER_ID and made.lines == []


def test_an_agent_that_refuses_to_copy_segments_is_of_an_earlier_version():
    made = Made()
    request, *_ = segment_copies.requests(made.site.agent, 30)
    other = flowmod.clear(made.site.agent)
    begin = wire(request)[:64]
    for data in (wire(other)[:64], begin, begin):
        made.refuse(made.site.agent, ofp.OFPET_BAD_MATCH, data=data)
    assert not made.site.link.copies
    assert len(made.lines) == 1  # of the message that is none of these requests
