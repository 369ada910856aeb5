"""What runs at tc egress of an interface before the agent's programs, and may end the chain there: it then
lets a packet leave, or redirects it, and they never see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairq_ryu.agent import tcx
from fairq_ryu.agent.bpf_info import program_name
from fairq_ryu.agent.programs.program import TURN_PRIORITY
from fairq_ryu.agent.rtnetlink import egress_filters, filter_qdisc
from fairq_ryu.errors import plain


def programs_before(lib: Any, ifindex: int, own: int = 0) -> tuple[str, ...]:
    """The programs and filters of others, in the order in which they run. ``own``: the id of the agent's
    program, if that may be at tcx.
    """
    ids = tcx.programs(lib, ifindex)
    at_tcx = ids[: ids.index(own)] if own in ids else ids
    found = [f"tcx program {plain(program_name(lib, each) or each)}" for each in at_tcx]
    if own not in ids and filter_qdisc(ifindex) == "clsact":
        for each in egress_filters(ifindex):
            if each.priority < TURN_PRIORITY:
                name = f" {plain(each.name)}" if each.name else ""
                found.append(f"{plain(each.kind)} filter{name} (pref {each.priority})")
    return tuple(found)


def place_for(lib: Any, ifindex: int) -> str:
    """Where an agent would attach its window program at egress of an interface: ``clsact``, ``tcx``, or "",
    for the reason :data:`~fairq_ryu.agent.tc.NO_PLACE`.
    """
    if filter_qdisc(ifindex) != "ingress":
        return "clsact"
    return "tcx" if tcx.is_available(lib) else ""


def said(before: Sequence[str]) -> str:
    """Who is before the agent, in a sentence; "": nobody."""
    return f"{', '.join(before)} runs before the agent's programs at tc egress" if before else ""
