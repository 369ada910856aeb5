"""``fairq announce`` and ``fairq_ryu.announce`` against the real REST interface, served on 127.0.0.1."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.app.wsgi import WSGIApplication

import fairq_ryu
from fairq_ryu import client
from fairq_ryu.cli import announce as announcing
from fairq_ryu.cli import main
from fairq_ryu.errors import UserError
from fairq_ryu.fabric.deadlines import request
from fairq_ryu.fabric.deadlines.announcements import Announcements
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import FlowKey
from fairq_ryu.rest import announcement_rows, handler
from fairq_ryu.rest.guard import RequestGuard
from fairq_ryu.rest.operations import RestService
from fairq_ryu.rest.views import Declined
from tests.support.restsite import served

A, B = "10.0.0.2", "10.0.0.1"
TOKEN = "0123456789abcdef"


class Controller:
    """A controller that only stores announcements, behind a web server."""

    def __init__(self) -> None:
        self.table = Announcements(capacity=2)
        self.error: Exception | None = None
        service = RestService(SimpleNamespace(), self)  # type: ignore[arg-type]
        self.app = handler.register(WSGIApplication(), service, RequestGuard(TOKEN))
        self.url = ""

    def announce(self, wanted: Request) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return announcement_rows.announcement_row(self.table.add(wanted, 0.0)[0], 0.0)

    def announcements(self) -> list[dict[str, Any]]:
        return [announcement_rows.announcement_row(entry, 0.0) for entry in self.table.listed(0.0)]

    def withdraw(self, number: int) -> bool:
        return False

    def gif(self) -> list[dict[str, Any]]:
        return []


@pytest.fixture
def controller(monkeypatch) -> Iterator[Controller]:
    monkeypatch.setenv("FAIRQ_TOKEN", TOKEN)
    made = Controller()
    with served(made.app) as made.url:
        yield made


@pytest.fixture
def run(controller, capsys):
    def run(*arguments: str, url: str = controller.url) -> tuple[int, str, str]:
        code = main.main(["announce", *arguments, "--url", url])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


FLOW = ("--src", A, "--dst", B, "--dport", "5001")


# The command


def test_a_flow_is_announced(controller, run):
    code, out, err = run(*FLOW, "--size", "12MB", "--deadline", "0.8")
    assert (code, err) == (0, "")
    assert out == (
        "announcement 1: 10.0.0.2:any -> 10.0.0.1:5001, 12,000,000 bytes, within 0.8 s; "
        "waits for the flow to start\n"
    )
    (entry,) = controller.table.listed(0.0)
    assert entry.request == Request(A, B, 5001, sport=None, size=12_000_000, deadline=0.8, ttl=60.0, count=1)


def test_all_options_and_fields_are_passed(controller, run):
    run(*FLOW, "--sport", "40002", "--deadline", "300ms", "--ttl", "5")
    _, out, _ = run(*FLOW, "--size", "64KiB", "--count", "3", "--vlan", "10")
    first, second = (entry.request for entry in controller.table.listed(0.0))
    assert first == Request(A, B, 5001, sport=40002, size=None, deadline=0.3, ttl=5.0, count=1)
    assert second == Request(A, B, 5001, sport=None, size=65536, deadline=None, ttl=60.0, count=3, vlan=10)
    assert ":5001, VLAN 10, 65,536 bytes" in out


def test_a_priority_is_announced(controller, run):
    _, out, _ = run(*FLOW, "--priority", "400")
    (entry,) = controller.table.listed(0.0)
    assert entry.request == Request(A, B, 5001, priority=400)
    assert ":5001, priority 400; " in out


def test_a_flow_that_runs(controller, run):
    flow = FlowKey("fe80::2", "fe80::1", 40002, 5001)
    controller.table.flow_started(flow, flow, 0.0, 0.0)
    _, out, _ = run("--src", "fe80::2", "--dst", "fe80::1", "--dport", "5001", "--size", "1")
    assert out == "announcement 1: [fe80::2]:any -> [fe80::1]:5001, 1 bytes; a flow that runs has it\n"


def test_json(run):
    code, out, _ = run(*FLOW, "--size", "5", "--json")
    assert (code, json.loads(out)["id"]) == (0, 1)


def test_a_refusal_of_the_controller_is_shown(controller, run):
    code, out, err = run(*FLOW, "--dst", A, "--size", "5")
    assert (code, out) == (2, "")
    assert err == (
        "fairq announce: the controller refused that: src and dst are the same: "
        "such a flow does not leave its host. Remedy: see docs/announcing.md\n"
    )
    assert len(controller.table) == 0


def test_nothing_to_announce(run):
    code, _, err = run(*FLOW)
    assert code == 2
    remedy = "give --size, --deadline or --priority"
    assert err == f"fairq announce: there is nothing to announce. Remedy: {remedy}\n"


def test_no_controller(run):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        code, _, err = run(*FLOW, "--size", "5", url=url)
    assert code == 2
    assert err.startswith(
        f"fairq announce: no controller answers at {url}: Connection refused. Remedy: start it"
    )
    assert err.count("\n") == 1


def test_a_policy_without_deadlines(controller, run):
    controller.error = Declined("policy fairq knows no deadlines")
    code, _, err = run(*FLOW, "--size", "5")
    assert code == 2
    assert "409, policy fairq knows no deadlines. Remedy: start the controller with a policy that uses" in err


def test_too_many(run):
    for _ in range(2):
        run(*FLOW, "--size", "5")
    code, _, err = run(*FLOW, "--size", "5")
    assert code == 2
    assert "429, there are 2 announcements already" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--src", A, "--dst", B, "--size", "5"],
        [*FLOW, "--size", "many"],
        [*FLOW, "--deadline", "soon"],
        [*FLOW, "--sport", "x"],
    ],
)
def test_wrong_usage_is_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["announce", *arguments])
    assert ended.value.code == 2
    assert "fairq announce: error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("12000000", 12_000_000),
        ("12MB", 12_000_000),
        ("12 MB", 12_000_000),
        ("12mB", 12_000_000),
        ("1.5k", 1500),
        ("64KiB", 65536),
        ("0.5Gi", 1 << 29),
        ("2T", 2 * 10**12),
        ("7B", 7),
    ],
)
def test_sizes(text, size):
    assert announcing.byte_count(text) == size


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1.0001k" + "1" * 20, "0.5", "1e6", "12MBytes", "٣", "MB", "1_0"]
)
def test_invalid_sizes(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number of bytes"):
        announcing.byte_count(text)


@pytest.mark.parametrize(
    ("text", "large", "small"),
    [
        ("12Mb", "write 12MB for 12,000,000 bytes", "1500000 if"),
        ("12 mbit", "write 12mB for 12,000,000 bytes", "1500000 if"),
        ("64Kib", "write 64KiB for 65,536 bytes", "8192 if"),
        ("8b", "write 8B for 8 bytes", "1 if"),
        ("12MBit", "write 12MB", "1500000 if"),
    ],
)
def test_bits_are_refused_with_both_readings(text, large, small):
    with pytest.raises(argparse.ArgumentTypeError, match="are bits, and a size is in bytes") as refused:
        announcing.byte_count(text)
    assert large in str(refused.value) and small in str(refused.value)


@pytest.mark.parametrize(("text", "time"), [("0.3", 0.3), ("300ms", 0.3), ("5s", 5.0), ("1.5 s", 1.5)])
def test_times(text, time):
    assert announcing.seconds(text) == time


@pytest.mark.parametrize("text", ["", "0", "0ms", "-1", "nan", "inf", "1m", "1e3"])
def test_invalid_times(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time"):
        announcing.seconds(text)


@given(st.text(max_size=20))
def test_any_text_is_a_size_or_is_refused(text):
    for read in (announcing.byte_count, announcing.seconds):
        with contextlib.suppress(argparse.ArgumentTypeError):
            assert read(text) > 0


# The token


def test_the_token_of_a_file(controller, run, tmp_path, monkeypatch):
    monkeypatch.delenv("FAIRQ_TOKEN")
    code, _, err = run(*FLOW, "--size", "5")
    assert code == 2
    assert "401, a token is needed: Authorization: Bearer TOKEN. Remedy: give the controller's token" in err
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert run(*FLOW, "--size", "5", "--token-file", str(file))[0] == 0
    assert len(controller.table) == 1
    assert fairq_ryu.announce(A, B, 5001, size=5, url=controller.url, token=TOKEN) == 2


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"a\nb" * 8])
def test_an_invalid_token_file(run, tmp_path, content):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    code, out, err = run(*FLOW, "--size", "5", "--token-file", str(file))
    assert (code, out) == (2, "")
    assert "token" in err and err.count("\n") == 1


# The Python call


def test_the_call(controller):
    wanted = {"sport": 40002, "size": 1000, "deadline": 0.25, "vlan": 0}
    assert fairq_ryu.announce(A, B, 5001, **wanted, url=controller.url) == 1
    (entry,) = controller.table.listed(0.0)
    assert entry.request == Request(A, B, 5001, **wanted, ttl=60.0, count=1)


def test_the_call_is_refused(controller):
    with pytest.raises(client.Refused, match="dport: 0 is less than 1"):
        fairq_ryu.announce(A, B, 0, size=1000, url=controller.url)
    with pytest.raises(client.Refused, match="NaN is not a number"):
        fairq_ryu.announce(A, B, 1, deadline=float("nan"), url=controller.url)
    with pytest.raises(client.Refused, match="cannot be announced"):
        fairq_ryu.announce(A, B, 1, size=object(), url=controller.url)  # type: ignore[arg-type]
    assert issubclass(client.Refused, UserError) and issubclass(client.NoController, UserError)


def test_a_fault_of_the_controller(controller, caplog):
    controller.error = RuntimeError("oh")
    with pytest.raises(client.Refused, match="500, see the controller's log"):
        fairq_ryu.announce(A, B, 1, size=1, url=controller.url)


def test_the_address_of_the_environment(controller, capsys, monkeypatch):
    monkeypatch.setenv("FAIRQ_URL", controller.url)
    assert main.main(["announce", *FLOW, "--size", "5"]) == 0
    assert fairq_ryu.announce(A, B, 5001, size=5) == 2
    # An argument of the call has priority over it.
    with pytest.raises(client.NoController):
        fairq_ryu.announce(A, B, 5001, size=5, url="http://127.0.0.1:1")
    assert main.main(["announce", *FLOW, "--size", "5", "--url", "http://127.0.0.1:1"]) == 2
    monkeypatch.setenv("FAIRQ_URL", "nonsense")
    capsys.readouterr()
    for command in (["announce", *FLOW, "--size", "5"], ["show"]):
        assert main.main(command) == 2
        assert "FAIRQ_URL 'nonsense' is not an address" in capsys.readouterr().err
    monkeypatch.setenv("FAIRQ_URL", "")
    assert client.address(None) == client.DEFAULT_URL


def test_the_call_without_controller():
    with pytest.raises(client.NoController, match="no controller answers") as refused:
        fairq_ryu.announce(A, B, 1, size=1, url="http://127.0.0.1:1")
    assert refused.value.remedy.endswith("with url")
    with pytest.raises(UserError, match="url 'nonsense' is not an address"):
        fairq_ryu.announce(A, B, 1, size=1, url="nonsense")


def test_the_page_has_the_code_s_numbers():
    text = (Path(__file__).resolve().parents[3] / "docs/announcing.md").read_text(encoding="utf-8")
    assert f"`ttl` (by default {request.DEFAULT_TTL:g} s)" in text
    assert f"{inspect.signature(Announcements).parameters['capacity'].default:,} announcements are" in text
    assert f"waits at most {client._TIMEOUT:g} s" in text
    assert f"by default `{client.DEFAULT_URL}`" in text


def test_the_page_s_example(run):
    text = (Path(__file__).resolve().parents[3] / "docs/announcing.md").read_text(encoding="utf-8")
    command = re.search(r"^\.venv/bin/fairq announce (.*)$", text, flags=re.M)
    assert command is not None
    code, out, _ = run(*command[1].split())
    assert code == 0
    assert f"```text\n{out}```" in text


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'renounce'"):
        fairq_ryu.renounce  # type: ignore[attr-defined]  # noqa: B018


def test_the_package_loads_without_an_http_client():
    program = "import sys, fairq_ryu; print('urllib.request' in sys.modules, callable(fairq_ryu.announce))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]
