"""The dispatch tables of the channel: a number selects the decoder and the handler, in both ends."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from fairq_ryu import channel
from fairq_ryu.channel.dispatch import DispatchTable, Incoming, MalformedBody


def length_of(body: bytes) -> int:
    if not body:
        raise ValueError("an empty body")
    return len(body)


LENGTH = Incoming(7, "length", length_of)


def test_the_handler_gets_the_context_and_the_decoded_body():
    table: DispatchTable[str, str] = DispatchTable()
    table.add(LENGTH, lambda context, body: f"{context} {body}")
    route = table.get(7)
    assert route is not None
    assert route("agent", b"abc") == "agent 3"
    assert route.incoming.name == "length"
    assert table.get(8) is None


def test_a_malformed_body_does_not_reach_the_handler():
    called = []
    table: DispatchTable[str, None] = DispatchTable()
    table.add(LENGTH, lambda _, body: called.append(body))
    route = table.get(7)
    assert route is not None
    with pytest.raises(MalformedBody, match="an empty body"):
        route("agent", b"")
    assert called == []


def test_an_error_in_the_handler_is_not_reported_as_a_malformed_body():
    def handler(_context: str, _body: int) -> None:
        raise ValueError("a fault of the handler")

    table: DispatchTable[str, None] = DispatchTable()
    table.add(LENGTH, handler)
    route = table.get(7)
    assert route is not None
    with pytest.raises(ValueError, match="a fault of the handler") as caught:
        route("agent", b"abc")
    assert not isinstance(caught.value, MalformedBody)


def test_a_number_has_one_handler():
    table: DispatchTable[str, None] = DispatchTable()
    table.add(LENGTH, lambda *_: None)
    with pytest.raises(ValueError, match="message 7 has two handlers"):
        table.add(LENGTH, lambda *_: None)


def test_the_numbers_of_the_messages_are_distinct_and_documented():
    """They are documented too. The request and the reply of a multipart have the same number and module."""
    module_of: dict[int, str] = {}
    for found in pkgutil.iter_modules(channel.__path__):
        module = importlib.import_module(f"fairq_ryu.channel.{found.name}")
        for number in {each.number for each in vars(module).values() if isinstance(each, Incoming)}:
            assert number not in module_of, (number, found.name, module_of[number])
            module_of[number] = found.name
    page = (Path(__file__).parents[3] / "docs/window-channel.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| (\d+) \| (?:message|multipart) \|", page, re.M)
    # A message and a multipart about the same subject may have the same number.
    assert sorted({*map(int, documented)}) == sorted(module_of)
