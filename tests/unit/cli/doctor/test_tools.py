from __future__ import annotations

import sys

import pytest

from fairq_ryu.cli.doctor import tools
from fairq_ryu.cli.doctor.check import Check
from fairq_ryu.cli.doctor.commands import Output


def test_missing_tool_names_its_package(commands: dict[str, Output]) -> None:
    by_name = {check.name: check for check in tools.check_network_tools()}
    assert {check.status for check in by_name.values()} == {"fail"}
    assert by_name["ping"].remedy == "apt-get install iputils-ping"


def test_tool_that_does_not_start(commands: dict[str, Output]) -> None:
    commands["ping"] = Output(127, "ping: error while loading shared libraries: libcap.so.2\n")
    ping = next(check for check in tools.check_network_tools() if check.name == "ping")
    assert ping.status == "fail"
    assert "libcap.so.2" in ping.found


def test_compilers_are_optional(commands: dict[str, Output]) -> None:
    commands["clang"] = Output(0, "\nclang version 14.0.6 (https://example.org/x 123)\nTarget: x86_64\n")
    by_name = {check.name: check for check in tools.check_compilers()}
    assert by_name["clang"] == Check("clang", "ok", "clang version 14.0.6")
    assert by_name["llvm-strip"].status == "warn"


def test_mininet(commands: dict[str, Output], monkeypatch: pytest.MonkeyPatch) -> None:
    assert tools.check_mininet().remedy == "apt-get install --no-install-recommends mininet"
    commands["mn"] = Output(0, "2.3.0\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "does not see it" in tools.check_mininet().found
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert tools.check_mininet() == Check("Mininet", "ok", "2.3.0")


def test_ryu_that_does_not_import(commands: dict[str, Output]) -> None:
    commands[sys.executable] = Output(1, "Traceback ...\nModuleNotFoundError: No module named 'ryu'\n")
    check = tools.check_ryu()
    assert (check.status, check.remedy) == ("fail", "make setup")
    assert check.found.endswith("No module named 'ryu'")
