"""``fairq far`` against the real REST interface, served on 127.0.0.1."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from fairq_ryu.agent.far_table import FarTable
from fairq_ryu.cli import main
from fairq_ryu.cli.far import fields
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FAR, FarQueue
from tests.support.far_agent import FarAgent
from tests.support.restsite import TOKEN, RestSite, served


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[RestSite]:
    made = RestSite("fairq")
    with served(made.app) as url:
        monkeypatch.setenv("FAIRQ_URL", url)
        yield made


def test_without_far_queues_it_says_where_they_come_from(
    site: RestSite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["far"]) == 0
    assert capsys.readouterr().out.startswith("no far queues: add one with fairq far add, or in section")


def test_only_far_queues_are_listed(site: RestSite, capsys: pytest.CaptureFixture[str]) -> None:
    FarAgent(site.link, {"s2-eth2": 2}, FarTable([FarQueue("s2-eth2", 125_000_000)]))
    site.link.ports[FAR | 2].name = "s2-eth2@far"
    assert main.main(["far"]) == 0
    *_, row, policy, told = capsys.readouterr().out.splitlines()
    assert told == "s2-eth2 of bridge br2: rate 1000000000bit share 0.98, by configuration"
    assert row.split()[:3] == [f"2:{FAR | 2}", "s2-eth2@far", "far"] and policy == "policy fairq"
    assert main.main(["far", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["ports"]
    assert (found["port"], found["far_of"], found["name"]) == (FAR | 2, 2, "s2-eth2@far")


def test_a_far_queue_is_added_and_removed(
    site: RestSite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRQ_TOKEN", TOKEN)
    agent = FarAgent(site.link, {"s2-eth2": 2}, FarTable())
    words = ["rate", "10gbit", "buffer", "1000000", "share", "0.95"]
    assert main.main(["far", "add", "br2", "s2-eth2", *words]) == 0
    first, note = capsys.readouterr().out.splitlines()
    assert first == "s2-eth2 of bridge br2: rate 10000000000bit buffer 1000000 share 0.95"
    assert note == "to keep it for good, write it into the configuration of the agent as well"
    assert agent.table.queues == {"s2-eth2": FarQueue("s2-eth2", 10**10 // 8, 1_000_000, 0.95)}
    assert main.main(["far", "--json", "add", "br2", "s2-eth2"]) == 0
    assert json.loads(capsys.readouterr().out)["rate_bps"] is None
    assert main.main(["far", "remove", "br2", "s2-eth2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "s2-eth2"
    assert agent.table.queues == {}
    assert main.main(["far", "remove", "br2", "s2-eth2"]) == 2
    assert "s2-eth2 has no far queue; fairq far lists those that there are" in capsys.readouterr().err


def test_a_change_needs_the_token(site: RestSite, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["far", "add", "br2", "s2-eth2"]) == 2
    assert "401" in capsys.readouterr().err and site.windows.far_orders.of(2) == {}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["speed", "10gbit"], "there is no 'speed' of a far queue"),
        (["rate"], "rate has no value"),
        (["rate", "1gbit", "rate", "2gbit"], "rate is there twice"),
        (["share", "much"], "share much: it is not a number"),
    ],
)
def test_words_that_no_controller_needs_to_see(words: list[str], why: str) -> None:
    with pytest.raises(UserError, match=why):
        fields(words)
