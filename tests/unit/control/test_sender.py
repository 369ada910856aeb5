"""Messages are sent in their order and in one place; actions wait for barrier replies."""

from __future__ import annotations

import ast
from pathlib import Path

from fairq_ryu.control.sender import Sender, to_switch
from fairq_ryu.openflow import pipeline
from tests.support.fakes import FakeSwitch

ROOT = Path(__file__).parents[3]
# AgentLink is the connection to an agent, as Sender is that to bridges.
SENDERS = {"sender.py", "agent_link.py"}


def sends(path: Path) -> bool:
    """Whether a module calls Ryu's methods that send to a datapath."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    methods = [each for each in calls if isinstance(each, ast.Attribute)]
    return any(
        each.attr == "send_msg" or (each.attr == "send" and ast.unparse(each.value).endswith("datapath"))
        for each in methods
    )


def test_only_these_modules_send():
    paths = [path for room in ("control", "apps") for path in (ROOT / "fairq_ryu" / room).rglob("*.py")]
    assert {path.name for path in paths if sends(path)} == SENDERS


def returning_messages(path: Path) -> set[str]:
    """The names of the methods that return messages."""
    methods = (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.FunctionDef))
    return {
        each.name for each in methods if each.returns is not None and "Message" in ast.unparse(each.returns)
    }


def test_no_message_for_an_agent_is_made_and_then_lost():
    """What a method of a link, or of a part of it, returns, is used."""
    control = ROOT / "fairq_ryu/control"
    names = set().union(*map(returning_messages, (control / "agents").glob("*.py")))
    assert {"ensure", "end", "request", "set_thresholds", "change_rule", "wake"} <= names
    lost = [
        f"{path.name}:{node.lineno}"
        for path in control.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        for called in [ast.unparse(node.value.func).split(".")]
        if "link" in called[:-1] and called[-1] in names
    ]
    assert lost == []


def test_messages_are_sent_in_their_order_to_several_switches():
    log = []
    one, two = FakeSwitch(1, log), FakeSwitch(2, log)
    messages = [pipeline.barrier(one), pipeline.barrier(two), pipeline.barrier(one)]
    Sender.send((message.datapath, message) for message in messages)
    assert log == [(1, messages[0]), (2, messages[1]), (1, messages[2])]
    Sender.send(to_switch(two, messages[:0]))
    assert len(log) == 3


def test_an_action_waits_for_all_switches_and_runs_once():
    sender, done = Sender(0.5), []
    one, two = FakeSwitch(1), FakeSwitch(2)
    sender.after_barriers([one, two], lambda: done.append(1))
    (first,), (second,) = one.sent, two.sent
    sender.barriers.answered((1, first.xid))
    assert not done
    sender.barriers.answered((2, second.xid))
    sender.barriers.answered((2, second.xid))
    assert done == [1]


def test_without_switches_it_runs_at_once():
    sender, done = Sender(0.5), []
    sender.after_barriers([], lambda: done.append(1))
    assert done == [1] and len(sender.barriers) == 0
