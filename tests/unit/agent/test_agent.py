"""On which bridges one agent runs."""

from __future__ import annotations

import logging

import pytest

from fairq_ryu.agent.agent import carry_out, check_joined
from fairq_ryu.agent.options import parse_bridges
from fairq_ryu.agent.ovsdb import BridgeView
from fairq_ryu.errors import UserError


def view(name: str, *joined: str) -> BridgeView:
    return BridgeView(name, 1, "netdev", (), (), (), joined=frozenset(joined))


@pytest.mark.parametrize("texts", [["br-int:br-ex"], ["br-int", "br-ex"]])
def test_names_of_bridges(texts):
    assert parse_bridges(texts) == ("br-int", "br-ex")


def test_a_name_as_systemd_writes_it():
    assert parse_bridges([r"br\x2bex:br-int"]) == ("br+ex", "br-int")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["s1:s2", "s1"], "s1 is named twice"),
        (["s1:"], "no name"),
        ([""], "no name"),
        (["::"], "no name"),
        (["br\0"], "no name of a bridge"),
        (["../x"], "no name of a bridge"),
    ],
)
def test_names_that_cannot_be(texts, words):
    with pytest.raises(UserError, match=words):
        parse_bridges(texts)


def test_bridges_that_are_not_joined_need_an_agent_each():
    with pytest.raises(UserError, match="s1 and s3 are not joined by patch ports") as error:
        check_joined([view("s1", "s2"), view("s2", "s1"), view("s3")])
    assert "--bridge s1, and --bridge s3" in error.value.remedy


def test_joined_bridges_that_are_left_out_are_named(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        check_joined([view("s1", "s2"), view("s2", "s1")])
        assert caplog.messages == []
        check_joined([view("s1", "s2", "s3")])
    (message,) = caplog.messages
    assert "lead to s2 and s3:" in message and message.endswith("fairq agent --bridge s1:s2:s3")


def test_each_step_of_the_clean_up_is_carried_out_and_a_failure_is_raised():
    done: list[str] = []

    def failing() -> None:
        done.append("failed")
        raise OSError("no descriptor")

    with pytest.raises(OSError, match="no descriptor"):
        carry_out([lambda: done.append("a"), failing, lambda: done.append("b")])
    assert done == ["a", "failed", "b"]
