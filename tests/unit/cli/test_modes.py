"""``fairq disable`` and ``fairq enable`` against the real REST interface, served on 127.0.0.1."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from fairq_ryu import client
from fairq_ryu.cli import main
from tests.support.restsite import TOKEN, RestSite, served


@pytest.fixture
def site(monkeypatch) -> Iterator[RestSite]:
    monkeypatch.setenv("FAIRQ_TOKEN", TOKEN)
    made = RestSite("fairq")
    with served(made.app) as url:
        monkeypatch.setenv("FAIRQ_URL", url)
        yield made


@pytest.fixture
def run(site, capsys):
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.main(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_what_has_changed_is_printed(run):
    code, out, err = run("disable", "--bridge", "br2", "--for", "60s")
    assert (code, err) == (0, "")
    heading, columns, _line, *rows = out.splitlines()
    assert heading == "bridge br2 (2): disabled for 60 s"
    assert columns.split() == ["port", "name", "mode", "rules"]
    assert [row.split() for row in rows] == [
        ["2:1", "s2-eth1", "act", "->", "disabled", "1", "->", "0"],
        ["2:2", "s2-eth2", "act", "->", "disabled", "1", "->", "0"],
    ]
    code, out, _ = run("show")
    assert "disabled 1m00s" in out or "disabled 59s" in out
    code, out, _ = run("disable", "--port", "2:1")
    assert out == "s2-eth1 (2:1): disabled; no port has another mode now\n"
    code, out, _ = run("enable", "--json")
    assert [row["after"] for row in json.loads(out)["ports"]] == ["act", "act"]


def test_an_unknown_port_is_one_line(run):
    code, out, err = run("disable", "--port", "tap9")
    assert (code, out) == (2, "")
    assert err.startswith(
        "fairq disable: the controller refused that: there is no port 'tap9' here; known are"
    )
    assert err.count("\n") == 1 and err.count("Remedy: ") == 1


@pytest.mark.parametrize("text", ["60x", "0", "-5", "forever"])
def test_a_wrong_time_is_a_wrong_argument(text, capsys, monkeypatch):
    with pytest.raises(SystemExit) as ended:
        main.main(["disable", "--for", text])
    assert ended.value.code == 2


def test_a_change_may_take_longer_than_an_answer(monkeypatch, run):
    waited = []

    def opened(_opener, request, timeout):
        waited.append((request.get_method(), timeout))
        raise TimeoutError("timed out")

    monkeypatch.setattr(client.urllib.request.OpenerDirector, "open", opened)
    for command in (["disable"], ["enable"], ["far", "remove", "br1", "eth0"], ["show"]):
        assert run(*command)[0] == 2
    changes = [(method, client.CHANGE_TIMEOUT) for method in ("POST", "POST", "DELETE")]
    assert waited == [*changes, ("GET", client._TIMEOUT)]
