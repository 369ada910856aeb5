"""``fairq cluster``: the file and the commands that it prints, and the table of owners."""

import json
import shlex
import subprocess

import pytest

from fairq_ryu import client
from fairq_ryu.cli import cluster
from fairq_ryu.cli.main import main
from fairq_ryu.errors import UserError
from fairq_ryu.rest.schema.state import Cluster

ANSWER = {
    "controller": "a",
    "database": True,
    "controllers": [
        {"name": "a", "rest": "http://10.0.0.1:8080", "alive": True, "bridges": 1, "load": 14},
        {"name": "b", "rest": "http://10.0.0.2:8080", "alive": False, "bridges": 0, "load": 0},
    ],
    "bridges": [{"dpid": "0000000000000001", "owner": "a", "generation": 3, "load": 14}],
}


def commands(text):
    return [shlex.split(line) for line in text.splitlines() if line.startswith("    ovsdb-server")]


def test_a_file_is_made_and_the_command_that_serves_it_works(tmp_path, capsys):
    file = tmp_path / "fairq.db"
    assert main(["cluster", "init", str(file)]) == 0
    said = capsys.readouterr().out
    (command,) = commands(said)
    assert command[:3] == ["ovsdb-server", str(file), f"--remote=punix:{tmp_path / 'fairq.sock'}"]
    assert f"database = unix:{tmp_path / 'fairq.sock'}" in said
    name = subprocess.run(["ovsdb-tool", "db-name", str(file)], check=True, capture_output=True, text=True)
    assert name.stdout == "Fairq\n"
    assert main(["cluster", "init", str(file)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_servers_of_a_cluster(tmp_path, capsys):
    first, second = tmp_path / "1.db", tmp_path / "2.db"
    cluster.init(str(first), "tcp:[::1]:6650", "tcp:127.0.0.1:6660", [])
    assert commands(capsys.readouterr().out)[0][2] == "--remote=ptcp:6650:[::1]"
    cluster.init(str(second), "tcp:127.0.0.1:6651", "tcp:127.0.0.1:6661", ["tcp:127.0.0.1:6660"])
    assert "database = tcp:127.0.0.1:6651,..." in capsys.readouterr().out
    for file in (first, second):
        subprocess.run(["ovsdb-tool", "db-is-clustered", str(file)], check=True)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("tcp:host:1", None, []), "no server of a database"),
        (("tcp:10.0.0.1:1,tcp:10.0.0.2:1", None, []), "more than one"),
        ((None, None, ["tcp:10.0.0.1:1"]), "--join needs --raft"),
        ((None, "tcp:10.0.0.1:1", []), "needs --listen"),
    ],
)
def test_what_is_refused_makes_no_file(tmp_path, words, reason):
    file = tmp_path / "fairq.db"
    with pytest.raises(UserError, match=reason):
        cluster.init(str(file), *words)
    assert not file.exists()


def test_a_folder_that_is_missing(tmp_path):
    with pytest.raises(UserError, match=r"ovsdb-tool create: .*No such file"):
        cluster.init(str(tmp_path / "none" / "fairq.db"), None, None, [])


def test_owners_are_shown(monkeypatch, capsys):
    Cluster.model_validate(ANSWER)
    monkeypatch.setattr(client, "ask", lambda *_, **__: ANSWER)
    assert cluster.show("http://x") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "(asked)", "alive", "1", "14", "http://10.0.0.1:8080"] in lines
    assert ["b", "silent", "0", "0", "http://10.0.0.2:8080"] in lines
    assert ["0000000000000001", "a", "3", "14"] in lines
    monkeypatch.setattr(client, "ask", lambda *_, **__: {**ANSWER, "database": False})
    cluster.show("http://x")
    assert "the database cannot be reached" in capsys.readouterr().out
    cluster.show("http://x", json_output=True)
    assert json.loads(capsys.readouterr().out)["controller"] == "a"


def test_an_answer_of_something_else(monkeypatch):
    monkeypatch.setattr(client, "ask", lambda *_, **__: {"controllers": []})
    with pytest.raises(UserError, match="a cluster without 'bridges'"):
        cluster.show("http://x")


@pytest.mark.parametrize("file", ["/", "x" * 300])
def test_what_can_be_no_file_is_refused_in_words(file, capsys):
    assert main(["cluster", "init", file]) == 2
    assert "name a file that can be made" in capsys.readouterr().err
