"""What an agent tells systemd, as sd_notify(3) and sd_listen_fds(3) describe it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from fairq_ryu.agent import service_manager
from tests.support.documents import ROOT


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """The socket of a service manager."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(path))
        server.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        yield server


def received(server):
    """The messages that have arrived, and the file descriptors with each."""
    found = []
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(server, 4096, 8)
        except BlockingIOError:
            return found
        found.append((data.decode(), fds))


def test_an_agent_is_ready(manager):
    service_manager.ready()
    assert received(manager) == [("READY=1", [])]


def test_file_descriptors_replace_those_with_the_same_names(manager):
    reading, writing = os.pipe()
    service_manager.keep({"flows": reading, "silent": writing})
    messages = received(manager)
    assert [text for text, _ in messages] == [
        "FDSTOREREMOVE=1\nFDNAME=flows",
        "FDSTOREREMOVE=1\nFDNAME=silent",
        "FDSTORE=1\nFDNAME=flows\nFDPOLL=0",
        "FDSTORE=1\nFDNAME=silent\nFDPOLL=0",
    ]
    assert [len(fds) for _, fds in messages] == [0, 0, 1, 1]
    os.write(messages[3][1][0], b"x")
    assert os.read(messages[2][1][0], 1) == b"x"
    for fd in (reading, writing, messages[2][1][0], messages[3][1][0]):
        os.close(fd)


def test_without_a_service_manager_nothing_happens(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    service_manager.ready()
    service_manager.forget(["flows"])


def test_a_service_manager_that_has_gone_is_a_warning(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    service_manager.ready()
    assert "systemd cannot be told READY=1: No such file or directory" in caplog.text


def test_an_abstract_address(monkeypatch):
    name = f"fairq-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(f"\0{name}")
        server.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        service_manager.ready()
        assert received(server) == [("READY=1", [])]


def started_with(environment):
    """What ``kept()`` returns, twice, in a program whose descriptors 3 and 4 are open."""
    code = (
        "import os\n"
        "from fairq_ryu.agent import service_manager\n"
        "os.dup2(0, 3), os.dup2(0, 4)\n"
        f"os.environ.update({environment})\n"
        "found = service_manager.kept()\n"
        "print(found, [os.get_inheritable(fd) for fd in found.values()], service_manager.kept())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_descriptors_that_were_kept_are_taken_once():
    given = "LISTEN_PID=str(os.getpid()), LISTEN_FDS='2', LISTEN_FDNAMES='flows:silent'"
    assert started_with(given) == "{'flows': 3, 'silent': 4} [False, False] {}"


@pytest.mark.parametrize(
    "given",
    [
        "",
        "LISTEN_PID='1', LISTEN_FDS='2', LISTEN_FDNAMES='a:b'",
        "LISTEN_PID=str(os.getpid()), LISTEN_FDS='no'",
    ],
)
def test_descriptors_of_another_process_are_left_alone(given):
    assert started_with(given) == "{} [] {}"
