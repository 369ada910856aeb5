"""Settings that several policies declare, and the values of a section as typed parameters of a port law."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints

from fairq_ryu.law_spec import FIRST_WINDOW, LawSpec
from fairq_ryu.policies.base import Parameters
from fairq_ryu.setting import Setting


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=_Dataclass)


def typed_parameters(kind: type[T], settings: Parameters) -> T:
    """A dataclass made from the settings of a section. Its fields have the names of the settings, and each
    value is converted to the type of its field.
    """
    return kind(**{name: convert(settings[name]) for name, convert in get_type_hints(kind).items()})


def initial_window(section: str) -> Setting:
    """The initial window of the hosts, for laws that predict what new flows send."""
    return Setting(
        section,
        "initial_window",
        FIRST_WINDOW,
        "segments",
        "Initial window of the hosts: what a new flow sends before it receives an ACK. Set it where hosts "
        "do not begin with ten segments.",
        1,
        1000,
    )


def base_rtt(section: str, what: str) -> Setting:
    """The round-trip time with empty queues, of a law that runs in the switch."""
    return Setting(section, "base_rtt", LawSpec.usual("base_rtt_us") / 1e6, "s", what, 0, 1)


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


def turns(section: str) -> Setting:
    """Whether new connections take turns."""
    return Setting(
        section,
        "turns",
        "off",
        "",
        "New connections wait (at most 5 s) while the flows of a port, with the minimum window each, and "
        "the first windows of new flows exceed its buffer. Set it where more connections begin at a time "
        "than the buffer holds segments.",
        choices=("off", "on"),
    )
