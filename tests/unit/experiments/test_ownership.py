"""Files that root creates under sudo belong to the caller, and no other file is changed. The kernel's owners
are faked.
"""

import os
import time
from pathlib import Path

import pytest

from fairq_ryu.cli import main
from fairq_ryu.experiments import ownership, runner

CALLER = (1234, 2345)


@pytest.fixture
def given(monkeypatch):
    """The paths whose owner was changed; every file counts as root's."""
    paths = []

    def fchown(handle, uid, gid):
        assert (uid, gid) == CALLER
        paths.append(os.readlink(f"/proc/self/fd/{handle}"))

    class Found:
        def __init__(self, real):
            self.real, self.st_uid = real, 0

        def __getattr__(self, name):
            return getattr(self.real, name)

    fstat = os.fstat
    monkeypatch.setattr(ownership, "caller", lambda: CALLER)
    monkeypatch.setattr(ownership.os, "fstat", lambda handle: Found(fstat(handle)))
    monkeypatch.setattr(ownership.os, "fchown", fchown)
    return paths


@pytest.mark.parametrize(
    ("uid", "environment", "expected"),
    [
        (0, {"SUDO_UID": "1234", "SUDO_GID": "2345"}, CALLER),
        (0, {"SUDO_UID": "0", "SUDO_GID": "0"}, None),
        (0, {"SUDO_UID": "1234"}, None),
        (0, {"SUDO_UID": "me", "SUDO_GID": "2345"}, None),
        (0, {"SUDO_UID": "-1", "SUDO_GID": "2345"}, None),
        (0, {}, None),
        (1234, {"SUDO_UID": "1234", "SUDO_GID": "2345"}, None),
    ],
)
def test_the_caller_is_the_user_of_sudo(monkeypatch, uid, environment, expected):
    monkeypatch.setattr(ownership.os, "geteuid", lambda: uid)
    assert ownership.caller(environment) == expected


def test_new_files_and_directories_get_the_caller_as_owner(given, tmp_path):
    out = tmp_path / "a" / "b"
    with ownership.given_to_caller(out, ["result.json", "logs"]):
        (out / "logs" / "fairq").mkdir(parents=True)
        for name in ("result.json", "logs/fairq/controller.log"):
            (out / name).write_text("x")
    names = ("a", "a/b", "a/b/result.json", "a/b/logs", "a/b/logs/fairq", "a/b/logs/fairq/controller.log")
    assert sorted(given) == sorted(str(tmp_path / name) for name in names)


def test_nothing_else_is_changed(given, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "old").write_text("not ours")
    (tmp_path / "other").write_text("not ours")
    (tmp_path / "secret").write_text("not ours")
    while os.stat(tmp_path / "secret").st_ctime_ns >= time.clock_gettime_ns(ownership._FILES_CLOCK):
        time.sleep(0.001)
    with ownership.given_to_caller(tmp_path, ["result.json", "logs"]):
        (tmp_path / "result.json").symlink_to(tmp_path / "secret")
        (tmp_path / "logs" / "link").symlink_to(tmp_path / "secret")
        os.link(tmp_path / "secret", tmp_path / "logs" / "second-name")
        (tmp_path / "logs" / "new").write_text("ours")
        (tmp_path / "unnamed").write_text("not what a run makes")
        (tmp_path / "logs" / "link to what is new").symlink_to(tmp_path / "unnamed")
    assert sorted(given) == [str(tmp_path / "logs"), str(tmp_path / "logs" / "new")]


def test_a_file_of_another_owner_is_not_changed(monkeypatch, given, tmp_path):
    monkeypatch.setattr(
        ownership.os, "fstat", lambda handle: os.stat_result((0o100644, 0, 0, 1, 7, *[0] * 5))
    )
    with ownership.given_to_caller(tmp_path, ["file"]):
        (tmp_path / "file").write_text("x")
    assert given == []


def test_an_interrupted_run_leaves_no_files_of_root(given, tmp_path):
    with pytest.raises(KeyboardInterrupt), ownership.given_to_caller(tmp_path / "out", ["logs"]):
        (tmp_path / "out" / "logs").mkdir(parents=True)
        raise KeyboardInterrupt
    assert sorted(given) == [str(tmp_path / "out"), str(tmp_path / "out" / "logs")]


def test_without_sudo_no_owner_is_changed(monkeypatch, given, tmp_path):
    monkeypatch.setattr(ownership, "caller", lambda: None)
    with ownership.given_to_caller(tmp_path / "out", ["logs"]):
        (tmp_path / "out" / "logs").mkdir(parents=True)
    assert given == []


@pytest.mark.parametrize(("code", "reported"), [(0, True), (1, True), (130, False)])
def test_a_run_ends_with_the_next_command(monkeypatch, capsys, tmp_path, code, reported):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "main", lambda *_: code)
    monkeypatch.setattr(main.sys, "argv", [str(Path.cwd() / ".venv/bin/fairq")])
    assert main.main(["run", "incast", "--out", "results/my demo"]) == code
    expected = "next: .venv/bin/fairq report 'results/my demo'\n"
    assert capsys.readouterr().err == (expected if reported else "")
