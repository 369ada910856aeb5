"""Settings that several policies have, and the values of settings as typed parameters of a port law.

What belongs to the network, and not to a policy, is set once for all policies, in section ``[fairq_ryu]``
(`SHARED`). A policy that uses such a setting has it among its ``settings``.
"""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints

from fairq_ryu.law_spec import FIRST_WINDOW, LawSpec
from fairq_ryu.policies.base import Parameters
from fairq_ryu.setting import Setting


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=_Dataclass)

BASE_RTT = Setting(
    "fairq_ryu",
    "base_rtt",
    LawSpec.usual("base_rtt_us") / 1e6,
    "s",
    "Round-trip time of the network with empty queues. FairQ, FairSwitch, LAS and SED use it as long as they "
    "have measured no other one; the upper limits of FairQ and FairSwitch, and the times of CoDel and AFCD, "
    "are worked out from it. Set it where round trips are not about 1 ms.",
    0.00001,
    1,
)

TURNS = Setting(
    "fairq_ryu",
    "turns",
    "off",
    "",
    "on: under FairQ, FairSwitch and LAS, new connections wait (at most 5 s) while the flows of a port, with "
    "the minimum window each, and the first windows of new flows exceed its buffer. Set it where more "
    "connections begin at a time than the buffer holds segments.",
    choices=("off", "on"),
)

INITCWND = Setting(
    "fairq_ryu",
    "initcwnd",
    FIRST_WINDOW,
    "segments",
    "Initial window of the hosts, as in their routes: what IQM and SED expect of a new flow before it "
    "receives an ACK. Set it where hosts do not begin with ten segments.",
    1,
    1000,
)

SHARED = (BASE_RTT, TURNS, INITCWND)
"""Settings that policies share."""


def typed_parameters(kind: type[T], settings: Parameters) -> T:
    """A dataclass made from the settings of a section. Its fields have the names of the settings, and each
    value is converted to the type of its field.
    """
    return kind(**{name: convert(settings[name]) for name, convert in get_type_hints(kind).items()})


def target_queue(section: str, default: float) -> Setting:
    """The queue length that a law with a pool aims at."""
    return Setting(
        section,
        "alpha",
        default,
        "",
        "Target queue as a fraction of the buffer. Lower it where volleys still overflow the buffer; raise "
        "it where long flows do not fill the link.",
        0.01,
        1,
    )
