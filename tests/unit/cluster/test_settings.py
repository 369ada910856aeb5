"""The section [cluster]."""

import pytest

from fairq_ryu.config.loader import load
from fairq_ryu.errors import UserError


def read(tmp_path, text):
    path = tmp_path / "fairq.conf"
    path.write_text(f"[cluster]\n{text}\n")
    return load([path]).section("cluster")


@pytest.mark.parametrize(
    "database", ["unix:/run/fairq.sock", "tcp:10.0.0.1:6650", "tcp:10.0.0.1:6650,tcp:[fd00::1]:6650"]
)
def test_databases(tmp_path, database):
    found = read(tmp_path, f"database = {database}\nname = rack1\nrest = http://10.0.0.1:8080")
    assert (found["database"], found["name"]) == (database, "rack1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("database = unix:/x", "no name"),
        ("name = a", "no database"),
        ("database = tcp:10.0.0.1,\nname = a", "no server of a database"),
        ("database = tcp:10.0.0.1:70000\nname = a", "no server of a database"),
        ("database = tcp:[fd00::1]:0\nname = a", "no server of a database"),
        ("database = ssl:10.0.0.1:1\nname = a", "no server of a database"),
        ("database = unix:/x\nname = a/b", "no name of a controller"),
        ("database = unix:/x\nname = a\nrest = https://x", "no address of a REST interface"),
        ("database = unix:/x\nname = a\nrest = http://x:99999", "no address of a REST interface"),
        ("database = unix:/x\nname = a\nrest = http://x/v1", "no address of a REST interface"),
        ("data = 1", "no setting data"),
    ],
)
def test_what_is_refused(tmp_path, text, words):
    with pytest.raises(UserError, match=words):
        read(tmp_path, text)


def test_without_it_a_controller_is_alone(tmp_path):
    assert load([]).section("cluster") == {"database": "", "name": "", "rest": ""}
