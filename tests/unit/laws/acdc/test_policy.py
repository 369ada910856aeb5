"""The policy AC/DC: what it asks of the switch."""

from __future__ import annotations

from fairq_ryu.config.loader import Config
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.acdc import AcdcLaw
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import switch_law
from fairq_ryu.policies.choice import make

PORT = PortKey(1, 2)


def asked(**settings: object) -> LawSpec:
    made = switch_law(make("acdc", Config({("acdc", name): value for name, value in settings.items()})), PORT)
    assert made is not None and made.wrong() is None
    return made


def test_the_defaults_are_those_of_marking_and_of_rfc_8257() -> None:
    spec = asked()
    assert spec.kind == AcdcLaw.kind
    assert (spec.mark_packets, spec.weight_shift, spec.first_window, spec.floor_segments) == (20, 4, 10, 2)


def test_settings_reach_the_law() -> None:
    spec = asked(threshold=65)
    assert (spec.mark_packets, spec.weight_shift) == (65, 4)
