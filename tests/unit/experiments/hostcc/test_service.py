"""The options of ``fairq host``, and what it refuses before it changes anything."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.cli import main
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.hostcc import service
from fairq_ryu.experiments.hostcc.coupling import Membership


def test_the_options_of_the_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "blue").touch()
    monkeypatch.setattr(service, "_NAMED", tmp_path)
    served: list[Any] = []
    monkeypatch.setattr(service, "serve", lambda chosen: served.append(chosen) or 0)
    words = "host --cc ctrl_reno --tenant a --netns blue --priority 7 --port 443=300 --port 80=1 --shared"
    assert main.main(words.split()) == 0
    assert main.main(["host", "--cc", "ctrl_cubic", "--tenant", "b"]) == 0
    assert served == [
        service.HostOptions("ctrl_reno", Membership("a", 7, True, {443: 300, 80: 1}), tmp_path / "blue"),
        service.HostOptions("ctrl_cubic", Membership("b")),
    ]


def test_a_namespace_is_a_name_a_pid_or_a_path(tmp_path: Path) -> None:
    (tmp_path / "net").touch()
    assert service.options("ctrl_reno", "a", str(tmp_path / "net")).netns == tmp_path / "net"
    ours = os.getpid()
    assert service.options("ctrl_reno", "a", str(ours)).netns == Path(f"/proc/{ours}/ns/net")
    for text, path in (("no-such", "/run/netns/no-such"), ("99999999", "/proc/99999999/ns/net")):
        with pytest.raises(UserError, match=f"--netns {text}: there is no {path}"):
            service.options("ctrl_reno", "a", text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"control": "dctcp"}, "--cc dctcp: .*use ctrl_reno or ctrl_cubic"),
        ({"tenant": ""}, "--tenant '': no name"),
        ({"tenant": "a b"}, "--tenant 'a b': no name"),
        ({"tenant": "x" * 65}, "no name of a tenant"),
        ({"priority": 0}, "--priority 0: a priority is from 1 to 1000"),
        ({"priority": 1001}, "--priority 1001"),
        ({"ports": ["443"]}, "--port 443: .*PORT=PRIORITY"),
        ({"ports": ["0=1"]}, "--port 0=1"),
        ({"ports": ["65536=1"]}, "--port 65536=1"),
        ({"ports": ["443=1001"]}, "--port 443=1001: a priority is"),
        ({"ports": ["x=1"]}, "--port x=1"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        service.options(**{"control": "ctrl_reno", "tenant": "a", **arguments})


def test_without_root_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(service.os, "geteuid", lambda: 1000)
    assert main.main(["host", "--cc", "ctrl_reno", "--tenant", "a"]) == 2
    error = capsys.readouterr().err
    assert (
        error.startswith("fairq host: a congestion control is loaded by root only") and error.count("\n") == 1
    )


def test_on_an_old_kernel_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(service.os, "geteuid", lambda: 0)
    monkeypatch.setattr(service, "refusal", lambda: UserError("no bpf_struct_ops_link", "boot 6.4"))
    assert main.main(["host", "--cc", "ctrl_reno", "--tenant", "a"]) == 2
    assert capsys.readouterr().err == "fairq host: no bpf_struct_ops_link. Remedy: boot 6.4\n"
