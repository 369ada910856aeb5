"""What is said of published faults holds: of what is pinned, of Ryu's decoder, and of what protects."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from packaging.version import Version
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import framing, wellformed
from fairq_ryu.channel.layouts import Malformed
from packages import known_faults, lock
from tests.support.endless_messages import ENDLESS
from tests.support.fakes import DATAPATH

ROOT = Path(__file__).resolve().parents[3]
FAULTS = known_faults.read()
# Ryu decodes each of these messages in fewer than 400 lines, or never.
_LINES = 20_000


def pinned() -> dict[str, set[Version]]:
    """The versions that are installed or build something, by the names of advisories."""
    found: dict[str, set[Version]] = {}
    for source in lock.LOCKS:
        for pin in lock.pins((ROOT / source).read_text(encoding="utf-8")):
            name, version = known_faults.COPIES.get(pin.key, (pin.key, pin.version))
            found.setdefault(name, set()).add(Version(version))
    return found


class Endless(Exception):
    """More lines than a message of this size can need."""


def decode(data: bytes) -> None:
    """By Ryu, without the checks; raises :class:`Endless` after as many lines as no message needs."""
    lines = 0

    def count(*_: object) -> object:
        nonlocal lines
        lines += 1
        if lines > _LINES:
            raise Endless
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        parser.msg_parser(DATAPATH, *framing.HEADER.unpack_from(data), data)
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.package}-{fault.ids[0]}")
def test_what_is_pinned_is_fixed_or_shielded(fault):
    assert fault.package in pinned()
    if fault.fixed:
        assert min(pinned()[fault.package]) >= Version(fault.fixed)
    else:
        assert fault.shield


@pytest.mark.parametrize("name", sorted({name for fault in FAULTS for name in fault.messages}))
def test_ryu_never_ends_on_the_message_and_the_controller_refuses_it(name):
    with pytest.raises(Endless):
        decode(ENDLESS[name])
    with pytest.raises(Malformed):
        wellformed.check(ENDLESS[name], wellformed.Phase.JOINED)


@pytest.mark.parametrize("fault", [each for each in FAULTS if each.test], ids=lambda fault: fault.ids[0])
def test_the_tests_that_are_named_exist(fault):
    path, _, name = fault.test.partition("::")
    assert callable(getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), name))


def test_no_fault_is_listed_twice():
    names = [(fault.package, each) for fault in FAULTS for each in fault.ids]
    assert len(names) == len(set(names))
