"""``fairq show`` with a web server that sends stored answers."""

from __future__ import annotations

import io
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer  # Ryu replaces http.server by another module
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fairq_ryu import client
from fairq_ryu.cli import columns, main, show, show_tables
from fairq_ryu.errors import UserError
from fairq_ryu.rest.schema import rows
from tests.support import rest_answers

S1, S2 = f"{1:016x}", f"{0xA2B4C6D8E0F1:016x}"

PORT = rest_answers.row(
    rows.PortRow,
    {
        "dpid": S1,
        "port": 3,
        "name": "s1-eth3",
        "role": "host",
        "flows": 2,
        "active": 2,
        "queue_bytes": 30466,
        "peak_bytes": 48448,
        "limit_bytes": 125000,
        "rate_bps": 50_000_000,
        "drops": 7,
        "pool_bytes": 38747,
        "flow_windows": 0,
        "mode": "act",
        "lowered": 70,
        "would_lower": 0,
        "policy": "fairq",
        "target_bytes": 31250,
    },
)
IDLE = {
    **PORT,
    "dpid": S2,
    "port": 12,
    "name": "s2-eth12",
    "role": "undecided",
    "active": None,
    "limit_bytes": 0,
    "rate_bps": 0,
    "pool_bytes": None,
}
FLOW = rest_answers.row(
    rows.FlowRow,
    {
        "src": "10.0.0.2",
        "dst": "10.0.0.1",
        "sport": 40002,
        "dport": 5001,
        "vlan": 0,
        "state": "half-closed",
        "ports": [[f"{2:016x}", 3], [S1, 1]],
        "back_ports": [[S1, 9], [f"{2:016x}", 4]],
        "wscale": 9,
        "mss": 1460,
        "bytes": 247_000_000,
        "back_bytes": 999,
        "age_s": 3723.4,
        "idle_s": 0.05,
        "pinned": False,
    },
)
SWITCH = {"dpid": S2, "connected": True, "agent": False, "ports": 12, "way": "paths", "limits": []}
SWITCHES = {"switches": [SWITCH]}
HOST = {"mac": "02:00:00:00:00:01", "vlan": 0, "at": [S1, 9], "addresses": ["10.0.0.1", "fe80::1"]}
HOSTS = {"hosts": [HOST]}
LINKS = {"links": [{"a": [S1, 9], "b": [S2, 3]}]}


def flows(
    *rows: dict[str, Any], total: int | None = None, limit: int = 100, offset: int = 0
) -> dict[str, Any]:
    return {
        "flows": list(rows),
        "total": len(rows) if total is None else total,
        "limit": limit,
        "offset": offset,
    }


class Controller:
    """A web server on 127.0.0.1; ``answers`` are (status, content type, body) in turn; the last is
    repeated. Each is held to the schema of the REST interface, unless it is said to be invalid.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: list[tuple[int, str, bytes]] = []
        self.valid = True
        self.faults: list[str] = []
        controller = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                controller.asked.append(self.path)
                answers = controller.answers
                status, kind, body = answers.pop(0) if len(answers) > 1 else answers[0]
                path = self.path.removeprefix("/behind")
                if controller.valid and (fault := rest_answers.fault(path, json.loads(body), status)):
                    controller.faults.append(fault)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}).start()

    def say(self, answer: object, status: int = 200, kind: str = "application/json") -> None:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.answers.append((status, kind, body))

    def say_invalid(self, answer: object, status: int = 200, kind: str = "application/json") -> None:
        self.valid = False
        self.say(answer, status, kind)

    def refuse(self, status: int, detail: str) -> None:
        problem = {"type": "about:blank", "title": "No", "status": status, "detail": detail}
        self.say(problem, status, "application/problem+json")

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def controller() -> Iterator[Controller]:
    made = Controller()
    yield made
    made.close()
    assert made.faults == []


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(controller: Controller, capsys: pytest.CaptureFixture[str]) -> Run:
    """``fairq show`` with arguments; returns code, output and error output."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.main(["show", *arguments, "--url", controller.url])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def lines(run: Run) -> Callable[..., list[str]]:
    """The lines that a successful ``fairq show`` prints, without trailing blanks."""

    def lines(*arguments: str) -> list[str]:
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        return [line.rstrip() for line in out.splitlines()]

    return lines


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """The line that a failing ``fairq show`` prints."""

    def refused(*arguments: str) -> str:
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("fairq show: ")
        assert err.count("\n") == 1
        assert "Remedy: " in err
        return err

    return refused


def words(line: str) -> str:
    """A line of a table, with one blank between its words."""
    return " ".join(line.split())


# Tables


def test_ports(controller, lines):
    controller.say({"ports": [PORT, IDLE]})
    header, rule, first, second, footer = lines()
    assert words(header) == "port name role flows active queue B peak B limit B Mbit/s drops window B"
    assert set(rule) == {"─"}
    assert words(first) == "1:3 s1-eth3 host 2 2 30466 48448 125000 50 7 pool 38747"
    assert words(second) == "a2b4c6d8e0f1:12 s2-eth12 undecided 2 - 30466 48448 - - 7 -"
    assert footer == "policy fairq"
    assert controller.asked == ["/v1/ports"]


def test_ports_are_the_default_view(controller, lines):
    controller.say({"ports": [PORT]})
    assert lines() == lines("ports")


def test_ports_of_several_policies(controller, lines):
    controller.say({"ports": [PORT, {**PORT, "policy": "fixed"}]})
    header, _, first, second = lines()
    assert words(header).endswith("window B policy")
    assert words(first).endswith("pool 38747 fairq")
    assert words(second).endswith("pool 38747 fixed")


def test_laws_that_the_switch_should_run_and_does_not(controller, lines):
    fallen = {**PORT, "law": None, "law_missing": "it has no window laws"}
    fine = {**PORT, "law": "switch", "law_missing": None}
    controller.say({"ports": [fallen, fine, {**fallen, "port": 4}]})
    assert lines()[-2:] == ["policy fairq", "no windows on 1:3, 1:4: it has no window laws"]
    controller.answers.clear()
    controller.say({"ports": [fallen, {**PORT, "policy": "fixed"}]})
    assert lines()[-1] == "no windows on 1:3: it has no window laws"


def test_ports_that_do_not_act(controller, lines):
    act = {**PORT, "mode": "act", "disabled_s": None, "lowered": 70, "would_lower": 0}
    others = [
        {**act, "port": 4, "mode": "observe", "would_lower": 12345},
        {**act, "port": 5, "mode": "observe", "would_lower": 0, "limit_bytes": 0},  # no queue: no news
        {**act, "port": 6, "mode": "disabled", "disabled_s": 59.7},
        {**act, "port": 7, "mode": "disabled"},
    ]
    controller.say({"ports": [act, *others]})
    header, _, *rows, policy, note = lines()
    assert words(header).endswith("window B mode")
    assert [words(row).split("pool 38747 ")[1] for row in rows] == [
        *("act", "observe", "observe", "disabled 1m00s", "disabled")
    ]
    assert policy == "policy fairq"
    assert note == "observed on 1:4: 12,345 ACKs would have been lowered"
    controller.answers.clear()
    controller.say({"ports": [act]})
    assert words(lines()[0]).endswith("window B")


def test_ports_whose_new_connections_take_turns(controller, lines):
    counts = {"waiting": 12, "held": 1256, "released": 1240, "overdue": 3, "overflowed": 1}
    taken = {f"turns_{name}": count for name, count in counts.items()}
    controller.say({"ports": [{**PORT, **taken}, {**PORT, **dict.fromkeys(taken)}]})
    assert lines()[-2:] == [
        "policy fairq",
        "turns on 1:3: 12 wait, 1,240 had room, 3 waited too long, 1 were too many",
    ]


@pytest.mark.parametrize(
    ("fields", "printed"),
    [
        ({}, "-"),
        ({"pool_bytes": 0}, "pool 0"),
        ({"window_bytes": 5840}, "each 5840"),
        ({"flow_windows": 1}, "1 flow"),
        ({"pool_bytes": 9, "flow_windows": 12}, "pool 9, 12 flows"),
    ],
)
def test_windows(controller, lines, fields, printed):
    controller.say({"ports": [{**PORT, "pool_bytes": None, **fields}]})
    assert words(lines()[2]).endswith(f" 7 {printed}")


def test_flows(controller, lines):
    controller.say(flows(FLOW, {**FLOW, "ports": [], "back_ports": [[S1, 9]], "wscale": 0}))
    header, _, first, second, footer = lines("flows")
    assert words(header) == "from to state leaves by back by sent B back B age idle scale"
    ends = "10.0.0.2:40002 10.0.0.1:5001 half-closed"
    assert words(first) == f"{ends} 2:3 1:1 1:9 2:4 247M 999 1h02m 0.1s 9/-"
    assert words(second) == f"{ends} - 1:9 247M 999 1h02m 0.1s 0/-"
    assert footer == "2 flows"


def test_pinned_flows_are_marked_where_there_are_any(controller, lines):
    controller.say(flows({**FLOW, "pinned": True}, FLOW))
    assert [line.split()[-1] for line in lines("flows")[2:]] == ["yes", "-", "flows"]


def test_vlans_are_shown_where_there_are_any(controller, lines):
    controller.say(flows({**FLOW, "vlan": 10}, FLOW))
    controller.say(flows(FLOW))
    for vlan in (10, 0):
        controller.say({"hosts": [{**HOST, "vlan": vlan}]})
    header, _, *rows = lines("flows")
    assert header.split()[-1] == "VLAN" and [row.split()[-1] for row in rows] == ["10", "-", "flows"]
    assert "VLAN" not in lines("flows")[0]
    assert [words(lines("hosts")[0]) for _ in range(2)] == ["mac vlan at addresses", "mac at addresses"]


def test_ipv6(controller, lines):
    controller.say(flows({**FLOW, "src": "fe80::2", "dst": "fe80::1"}))
    assert words(lines("flows")[2]).startswith("[fe80::2]:40002 [fe80::1]:5001 half-closed ")


@pytest.mark.parametrize(
    ("answer", "footer"),
    [
        (flows(), "no flows"),
        (flows(*[FLOW] * 2), "2 flows"),
        (flows(*[FLOW] * 100, total=4210), "showing 100 of 4,210: use --limit"),
        (flows(*[FLOW] * 1000, total=4210, limit=1000), "showing 1,000 of 4,210: use --offset"),
        (flows(*[FLOW] * 10, total=4210, offset=4200), "showing 10 of 4,210, after the first 4,200"),
        (flows(total=7, offset=10), "showing 0 of 7, after the first 10"),
    ],
)
def test_the_footer_has_the_total(controller, lines, answer, footer):
    controller.say(answer)
    assert lines("flows")[-1] == footer


def test_switches_links_and_hosts(controller, lines):
    controller.say(SWITCHES)
    controller.say(LINKS)
    controller.say(HOSTS)
    header, _, row = lines("switches")
    assert words(header) == "dpid connected agent ports way"
    assert words(row) == "a2b4c6d8e0f1 yes no 12 paths"
    header, _, row = lines("links")
    assert (words(header), words(row)) == ("a b", "1:9 a2b4c6d8e0f1:3")
    header, _, row = lines("hosts")
    assert (words(header), words(row)) == ("mac at addresses", "02:00:00:00:00:01 1:9 10.0.0.1 fe80::1")


@pytest.mark.parametrize("kind", ["ports", "flows", "gif", "announcements", "switches", "hosts", "links"])
def test_nothing_to_show(controller, lines, kind):
    paged = kind in ("flows", "gif", "announcements")
    controller.say({kind: [], **(PAGE if paged else {})})
    (line,) = lines(kind)
    assert line.startswith(f"no {kind}")


def test_fields_of_later_versions_do_no_harm(controller, lines):
    controller.say_invalid({"ports": [{**PORT, "colour": "red"}], "next": None})
    assert "red" not in "".join(lines())


LONG_PORT = {
    **PORT,
    "dpid": S2,
    "port": 65279,
    "name": "veth0123456789a",
    "role": "undecided",
    **dict.fromkeys(("flows", "active"), 12345),
    **dict.fromkeys(("queue_bytes", "peak_bytes", "limit_bytes"), 12_345_678),
    "rate_bps": 400_000_000_000,
    "drops": 123_456_789,
    "flow_windows": 1234,
}
LONG_FLOW = {
    **FLOW,
    **dict.fromkeys(("src", "dst"), "2001:db8:1234:5678:9abc:def0:1234:5678"),
    "ports": [[S2, 48]] * 3,
    "back_ports": [[S2, 48]] * 3,
    "back_wscale": 14,
    "pinned": True,
}


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("ports", {"ports": [PORT, LONG_PORT]}),
        ("ports", {"ports": [PORT, {**LONG_PORT, "policy": "fixed"}]}),
        ("flows", flows(FLOW, LONG_FLOW)),
    ],
)
def test_tables_fit_100_columns_without_loss(controller, lines, kind, answer):
    controller.say(answer)
    printed = lines(kind)
    assert max(map(len, printed)) <= 100
    text = "".join(printed)
    assert "…" not in text
    if kind == "ports":
        # Figures are not broken, whatever else is shortened.
        figures = " ".join(printed).split()
        assert figures.count("12345678") == 3
        assert {"400000", "123456789"} <= set(figures)


@pytest.mark.parametrize("width", [20, 60, 80])
def test_no_number_is_cut_in_a_narrow_terminal(controller, lines, monkeypatch, width):
    """Its lines are longer than the terminal then."""
    monkeypatch.setattr(columns, "WIDTH", width)
    controller.say({"ports": [PORT, LONG_PORT]})
    printed = lines("ports")
    assert "…" not in "".join(printed) and max(map(len, printed)) > width
    assert " ".join(printed).split().count("12345678") == 3


def test_what_fits_a_narrow_terminal_stays_within(controller, lines, monkeypatch):
    monkeypatch.setattr(columns, "WIDTH", 60)
    controller.say(LINKS)
    assert max(map(len, lines("links"))) <= 60


def test_usual_rows_take_one_line_each(controller, lines):
    rows = [{**PORT, "port": number, "pool_bytes": 1_250_000} for number in range(1, 49)]
    controller.say({"ports": [*rows, IDLE]})
    assert len(lines()) == 2 + 49 + 1
    controller.answers.clear()
    rows = [{**FLOW, "src": "192.168.100.100", "sport": 54321} for _ in range(9)]
    controller.say(flows(*rows))
    assert len(lines("flows")) == 2 + 9 + 1


def test_paths_are_shortened_before_addresses(controller, lines):
    path = [[S2, 48], [S1, 7], [S2, 47]]
    ends = {"src": "192.168.100.100", "dst": "192.168.100.101", "sport": 54321, "dport": 50001}
    controller.say(flows({**FLOW, **ends, "ports": path, "back_ports": path}))
    printed = lines("flows")
    assert any(
        line.startswith("192.168.100.100:54321 192.168.100.101:50001 half-closed ") for line in printed
    )
    assert max(map(len, printed)) <= 100


# JSON and filters


def test_json_is_passed_through_unchanged(controller, run):
    controller.say(flows(FLOW))
    code, out, err = run("flows", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == flows(FLOW)
    assert out.count("\n") == 1


def test_filters_are_passed_to_the_controller(controller, lines):
    controller.say(flows())
    lines(
        *("flows", "--src", "fe80::1%eth0", "--dst", "10.0.0.1", "--port", "1:3", "--state", "a&b"),
        *("--limit", "7", "--offset", "0"),
    )
    (asked,) = controller.asked
    assert urlsplit(asked).path == "/v1/flows"
    assert parse_qs(urlsplit(asked).query, strict_parsing=True) == {
        "src": ["fe80::1%eth0"],
        "dst": ["10.0.0.1"],
        "port": ["1:3"],
        "state": ["a&b"],
        "limit": ["7"],
        "offset": ["0"],
    }


def test_filters_are_for_flows(refused):
    assert "--src, --limit: ports cannot be filtered by that" in refused("--src", "::1", "--limit", "1")


def test_an_address_with_a_path_and_a_slash(controller, capsys):
    controller.say(LINKS)
    assert main.main(["show", "links", "--url", f"{controller.url}/behind/"]) == 0
    assert controller.asked == ["/behind/v1/links"]


def test_proxies_are_not_used(controller, lines, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    controller.say(LINKS)
    assert lines("links")


def test_show_offers_every_table():
    (action,) = (each for each in main.command_line()._actions if each.dest == "command")
    (what,) = (each for each in action.choices["show"]._actions if each.dest == "what")
    assert list(what.choices) == list(show_tables._TABLES)


# Errors


@pytest.mark.parametrize(
    "url",
    [
        *("", "127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://:8080", "http://127.0.0.1:port"),
        *("http://127.0.0.1:65536", "http://127.0.0.1:0", "http://[::1", "http://127.0.0.1/?a=b"),
        *("http://127.0.0.1/#a", "http://a b", "http://a\n", "file:///etc/passwd", "http://ü"),
    ],
)
def test_an_invalid_address(capsys, url):
    assert main.main(["show", "--url", url]) == 2
    assert "is not an address. Remedy: write http://HOST:PORT" in capsys.readouterr().err


def test_no_controller(capsys):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        assert main.main(["show", "--url", url]) == 2
    assert capsys.readouterr().err == (
        f"fairq show: no controller answers at {url}: Connection refused. Remedy: start it "
        "(ryu-manager fairq_ryu.apps.fairq), or give its address with --url\n"
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x04\x06\x00\x08 no HTTP at all \x1b[2J\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{",
        b"HTTP/1.1 2000000000000000000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
    ],
)
def test_a_server_that_does_not_speak_http(capsys, answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as client:
                client.recv(65536)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert main.main(["show", "--url", f"http://127.0.0.1:{server.getsockname()[1]}"]) == 2
        thread.join(5)
    printed = capsys.readouterr().err
    assert "answers" in printed
    assert printed.count("\n") == 1
    assert "\x1b" not in printed


def test_a_controller_that_never_answers(capsys, monkeypatch):
    monkeypatch.setattr(client, "_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert main.main(["show", "--url", f"http://127.0.0.1:{server.getsockname()[1]}"]) == 2
    assert "timed out" in capsys.readouterr().err


def test_a_refusal_is_shown(controller, refused):
    controller.refuse(400, "limit: 5000 is more than 1000")
    assert "the controller refused that: limit: 5000 is more than 1000" in refused("flows", "--limit", "5000")


@pytest.mark.parametrize(
    ("status", "remedy"), [(404, "the version of the controller"), (500, "the controller's log")]
)
def test_other_problems(controller, refused, status, remedy):
    controller.refuse(status, "so it is\x1b[2J")
    printed = refused()
    assert f"/v1/ports: {status}, so it is\ufffd[2J" in printed
    assert remedy in printed


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"detail": 1}', b"[" * 100_000, b"\xff"])
@pytest.mark.parametrize("kind", ["text/html", "application/problem+json"])
def test_problem_documents_of_other_servers(controller, refused, body, kind):
    controller.say_invalid(body, 403, kind)
    assert "answers, but not as fairq_ryu's controller does: HTTP status 403" in refused()


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize(
    "row", [without(PORT, "drops"), without(PORT, "state"), {**PORT, "colour": "red"}, {**PORT, "flows": "2"}]
)
def test_the_answers_of_these_tests_are_held_to_the_schema(controller, run, row):
    controller.say({"ports": [row]})
    run("ports", "--json")
    (fault,) = controller.faults
    assert fault.startswith("Ports: ports.0.")
    controller.faults.clear()


@pytest.mark.parametrize(
    ("kind", "answer", "why"),
    [
        ("ports", b"", "no JSON"),
        ("ports", b"<html>", "no JSON"),
        ("ports", b"\xff", "no JSON"),
        ("ports", b"[" * 100_000, "no JSON"),
        ("ports", [], "no JSON object"),
        ("ports", {}, "no list of ports"),
        ("ports", {"ports": {}}, "no list of ports"),
        ("ports", {"ports": [1]}, "no list of ports"),
        ("ports", {"ports": [without(PORT, "drops")]}, "ports without 'drops'"),
        ("ports", {"ports": [{**PORT, "dpid": "x"}]}, "make no sense"),
        ("ports", {"ports": [{**PORT, "rate_bps": "fast"}]}, "make no sense"),
        ("flows", without(flows(FLOW), "total"), "flows without 'total'"),
        ("flows", flows({**FLOW, "ports": [[S1]]}), "make no sense"),
        ("flows", flows({**FLOW, "ports": 3}), "make no sense"),
        ("flows", flows({**FLOW, "age_s": float("inf")}), "make no sense"),
        ("flows", flows({**FLOW, "bytes": None}), "make no sense"),
        ("switches", {"switches": [{"dpid": S1, "limits": []}, {"limits": []}]}, "switches without 'dpid'"),
        ("links", {"links": [{"a": [1, 2, 3]}]}, "make no sense"),
    ],
)
def test_an_invalid_answer(controller, refused, kind, answer, why):
    controller.say_invalid(answer)
    printed = refused(kind)
    assert "answers, but not as fairq_ryu's controller does: " in printed
    assert why in printed


def test_an_answer_without_end(controller, refused, monkeypatch):
    monkeypatch.setattr(client, "_MAX_ANSWER_BYTES", 10)
    controller.say({"ports": []})
    assert "more than 10 bytes" in refused()


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(S1),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


def rendered(kind: str, answer: dict[str, Any]) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(show.table(kind, answer, "http://a"))
    return out.getvalue()


@given(kind=st.sampled_from(["ports", "flows"]), data=st.data())
def test_invalid_fields_are_one_line_or_a_table(kind, data):
    row = dict(PORT if kind == "ports" else FLOW)
    for name in data.draw(st.lists(st.sampled_from(sorted(row)), max_size=4)):
        row[name] = data.draw(junk)
    answer: dict[str, Any] = {"ports": [row]} if kind == "ports" else flows(row)
    if kind == "flows" and data.draw(st.booleans()):
        answer[data.draw(st.sampled_from(["total", "limit", "offset"]))] = data.draw(junk)
    try:
        rendered(kind, answer)
    except UserError as error:
        assert "answers, but not" in str(error)


@given(name=st.text(max_size=12), value=junk)
def test_any_field_of_a_switch_is_shown_or_refused(name, value):
    try:
        rendered("switches", {"switches": [{name: value}]})
    except UserError as error:
        assert "answers, but not" in str(error)


def test_names_are_neither_markup_nor_commands_to_the_terminal(controller, lines):
    controller.say({"ports": [{**PORT, "name": "[red]x[/y]", "policy": "a\x1b[2Jb"}]})
    printed = lines()
    assert " [red]x[/y] " in printed[2]
    assert printed[-1] == "policy a\ufffd[2Jb"
    controller.answers.clear()
    controller.say_invalid({"links": [{"[/a]\x1b": 1}]})
    assert lines("links")[0] == "[/a]\ufffd"


# Watching


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Sleeping takes no time, and the third sleep is ended by Ctrl-C; returns the requested pauses."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(show.time, "sleep", sleep)
    return slept


def test_watching_into_a_pipe_prints_one_table_after_the_other(controller, lines, looks):
    for drops in (1, 2, 3):
        controller.say({"ports": [{**PORT, "drops": drops}]})
    printed = lines("--watch")
    assert [line.split()[9] for line in printed if line.startswith("1:3")] == ["1", "2", "3"]
    assert looks == [2.0] * 3


def test_watching_as_json_prints_a_line_for_each_request(controller, lines, looks):
    controller.say(LINKS)
    assert [json.loads(line) for line in lines("links", "--json", "--watch", "0.5")] == [LINKS] * 3
    assert looks == [0.5] * 3


def test_watching_into_a_pipe_ends_when_the_controller_ends(controller, run, looks):
    controller.say(LINKS)
    controller.refuse(500, "see the controller's log")
    code, out, err = run("links", "--watch")
    assert code == 2
    assert "1:9" in out
    assert "500" in err


class Terminal(Console):
    """A terminal for rich, 100 columns wide, without a user."""

    out: io.StringIO
    ROWS = 25
    WIDTH = 100

    def __init__(self, **_: Any) -> None:
        Terminal.out = io.StringIO()
        super().__init__(
            file=Terminal.out, force_terminal=True, width=self.WIDTH, height=self.ROWS, color_system=None
        )


def test_watching_on_a_terminal_continues_when_the_controller_ends(controller, run, looks, monkeypatch):
    monkeypatch.setattr(columns, "Console", Terminal)
    monkeypatch.setenv("TERM", "xterm")
    for drops in (111, 222, 333):
        if drops == 222:
            controller.refuse(500, "see the controller's log")
        else:
            controller.say({"ports": [{**PORT, "drops": drops}]})
    assert run("--watch", "1") == (0, "", "")
    printed = Terminal.out.getvalue()
    first, failed, last = (printed.index(text) for text in (" 111 ", "500, see", " 333 "))
    assert first < failed < last
    # While the controller is disconnected, the last known rows stay.
    assert printed[first + 1 : failed].count(" 111 ") == 1
    assert looks == [1.0] * 3


@pytest.mark.parametrize("width", [20, 50, 80, 100])
def test_no_number_is_cut_on_a_narrow_terminal_that_is_watched(controller, run, looks, monkeypatch, width):
    """Columns are left out whole, and named: a line that is longer would not be redrawn in place."""
    monkeypatch.setattr(columns, "Console", Terminal)
    monkeypatch.setattr(Terminal, "WIDTH", width)
    monkeypatch.setattr(Terminal, "ROWS", 500)
    monkeypatch.setenv("TERM", "xterm")
    controller.say({"ports": [PORT, LONG_PORT]})
    assert run("ports", "--watch", "1") == (0, "", "")
    printed = Terminal.out.getvalue()
    assert "…" not in printed
    shown, _, left = printed[: printed.index("policy")].partition("no room for: ")
    assert (width == 100) == (not left)
    for title, figure in (("drops", "123456789"), ("Mbit/s", "400000"), ("active", "12345")):
        assert (figure in shown.split()) != (title in left), title


@pytest.mark.parametrize(("kind", "use"), [("ports", "use --json"), ("flows", "use --limit or --json")])
def test_the_number_of_hidden_lines_is_shown_on_a_terminal(controller, run, looks, monkeypatch, kind, use):
    monkeypatch.setattr(columns, "Console", Terminal)
    monkeypatch.setattr(Terminal, "ROWS", 12)
    monkeypatch.setenv("TERM", "xterm")
    rows = [{**PORT, "port": number} for number in range(1, 41)]
    controller.say({"ports": rows} if kind == "ports" else flows(*[FLOW] * 40))
    controller.refuse(500, "see the controller's log")
    assert run(kind, "--watch", "1") == (0, "", "")
    printed = Terminal.out.getvalue()
    assert f"32 more lines: {use}" in printed  # of 43, with header and footer; 11 are shown
    assert "500, see the controller's log" in printed
    shown = printed[: printed.index("more lines")].splitlines()
    assert len(shown) == 12


def test_watching_ends_when_the_request_is_refused(controller, run, looks, monkeypatch):
    monkeypatch.setattr(columns, "Console", Terminal)
    monkeypatch.setenv("TERM", "xterm")
    controller.say(LINKS)
    controller.refuse(429, "later")
    controller.refuse(404, "there is no such resource")
    code, _, err = run("links", "--watch", "1")
    assert code == 2 and "404, there is no such resource" in err
    assert "429, later" in Terminal.out.getvalue() and looks == [1.0] * 2


def test_watching_an_unreachable_controller_ends_at_once(controller, refused, looks, monkeypatch):
    monkeypatch.setattr(columns, "Console", Terminal)
    monkeypatch.setenv("TERM", "xterm")
    controller.refuse(500, "no")
    assert "500" in refused("--watch")
    assert looks == []


@pytest.mark.parametrize("seconds", ["0", "0.09", "-1", "nan", "inf", "3601", "ports"])
def test_invalid_pauses(seconds, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["show", f"--watch={seconds}"])
    assert ended.value.code == 2
    assert "is not a number of seconds" in capsys.readouterr().err


# Deadlines

PAGE = {"total": 0, "limit": 100, "offset": 0}
GIF = {
    "dpid": S1,
    "port": 1,
    "priority": 1,
    "src": "10.0.0.2",
    "dst": "10.0.0.1",
    "sport": 40002,
    "dport": 5001,
    "age_s": 0.21,
    "size_bytes": 12_000_000,
    "remaining_bytes": 4_100_000,
    "deadline_s": 0.8,
    "remaining_s": 0.59,
    "state": "open",
}
LATE = {**GIF, "priority": 2, "remaining_bytes": 0, "deadline_s": 0.025, "remaining_s": -61, "state": "ended"}
ENDLESS = {**GIF, "priority": 3, "src": "fe80::2"}
ENDLESS |= dict.fromkeys(["size_bytes", "remaining_bytes", "deadline_s", "remaining_s", "state"])


def test_flows_by_deadline(controller, lines):
    controller.say({"gif": [GIF, LATE, ENDLESS], **PAGE, "total": 1500, "limit": 1000})
    heading, header, _, first, late, endless, footer = (words(line) for line in lines("gif"))
    assert heading.startswith("GIF (global information of flows)")
    assert header == "port # from to age size left due in deadline state"
    assert first == "1:1 1 10.0.0.2:40002 10.0.0.1:5001 0.2s 12.0M 4.1M 0.6s 0.8s open"
    assert late == "1:1 2 10.0.0.2:40002 10.0.0.1:5001 0.2s 12.0M 0 -1m01s 25ms ended"
    assert endless == "1:1 3 [fe80::2]:40002 10.0.0.1:5001 0.2s - - - - -"
    assert footer == "showing 3 of 1,500: use --offset"


def test_announcements(controller, lines):
    ends = {"src": "10.0.0.2", "dst": "10.0.0.1", "dport": 5001}
    row = rest_answers.row(rows.AnnouncementRow, {"id": 3, **ends, "left": 0, "flows": [40002, 40004]})
    controller.say({"announcements": [row, {**row, "flows": []}], **PAGE, "total": 4, "offset": 2})
    header, _, first, second, footer = lines("announcements", "--offset", "2")
    assert footer == "showing 2 of 4, after the first 2"
    assert words(header) == "id src dst sport dport size deadline priority left expires_s flows"
    assert words(first) == "3 10.0.0.2 10.0.0.1 - 5001 - - - 0 - 40002 40004"
    assert second.split()[-1] == "-"


# Events, the policy, paths, health

EVENT = {
    "id": 12,
    "time": 1795247080.5,
    "kind": "loss",
    "message": "the queue of s1-eth3 (1:3) has dropped: 4 packets",
    "dpid": S1,
    "port": 3,
    "flow": None,
    "count": 4,
}
POLICY = {
    "policy": "fairq",
    "parameters": [
        {
            "name": "alpha",
            "value": 0.5,
            "type": "number",
            "unit": "",
            "default": 0.25,
            "minimum": 0.01,
            "maximum": 1,
            "choices": [],
            "help": "Target queue as a fraction of the buffer.",
        }
    ],
    "ports": [{"match": "role:link", "policy": "fixed"}],
    "available": ["droptail", "fairq"],
}
PATH = {
    "src": "10.0.0.2",
    "dst": "10.0.0.1",
    "sport": 40002,
    "dport": 5001,
    "vlan": 0,
    "ports": [[S1, 9], [S2, 1]],
    "back_ports": [[S2, 3]],
    "pinned": True,
}
HEALTH = {
    "status": "ok",
    "failing": [],
    "version": "0.1.0",
    "policy": "fairq",
    "uptime_s": 12.3,
    "bridges": 2,
    "agents": 1,
    "agents_missing": [S2],
    "ways": {"windows": [S1, S2], "normal": [], "paths": []},
    "loop_delay_s": None,
}


def test_events(controller, lines):
    other = {**EVENT, "id": 13, "kind": "policy", "dpid": None, "port": None, "message": "now \x1b[31mred"}
    bridge = {**EVENT, "id": 14, "kind": "bridge", "port": None}
    controller.say({"events": [EVENT, other, bridge], "last": 14, "limit": 100})
    printed = lines("events")
    assert printed[0].split() == ["#", "time", "kind", "at", "what"]
    assert re.fullmatch(r" *12 \d\d:\d\d:\d\d loss +1:3 +the queue of s1-eth3 .*: 4 packets *", printed[2])
    assert " policy - " in printed[3] and "\x1b" not in printed[3]
    assert " bridge 1 " in printed[4]
    controller.answers.clear()
    controller.say({"events": [], "last": 0, "limit": 100})
    assert lines("events", "--kind", "loss", "--limit", "5") == ["no events"]
    assert controller.asked[-1] in ("/v1/events?limit=5&kind=loss", "/v1/events?kind=loss&limit=5")


def test_the_policy(controller, lines):
    controller.say(POLICY)
    printed = "\n".join(lines("policy"))
    assert "policy fairq" in printed and "role:link: fixed" in printed
    assert re.search(r"alpha +0\.5 +0\.25 +Target queue", printed)
    controller.answers.clear()
    controller.say({**POLICY, "parameters": []})
    assert lines("policy")[0] == "policy fairq"


def test_paths(controller, lines):
    controller.say({"paths": [PATH], "total": 2, "limit": 1, "offset": 0})
    printed = lines("paths")
    assert "10.0.0.2:40002 10.0.0.1:5001 1:9 a2b4c6d8e0f1:1" in printed[2]
    assert printed[-1] == "showing 1 of 2: use --limit"


def test_health(controller, lines):
    controller.say(HEALTH)
    printed = "\n".join(lines("health"))
    assert re.search(r"agents missing +a2b4c6d8e0f1", printed)
    assert re.search(r"loop delay s +-", printed) and re.search(r"failing +-", printed)
    controller.answers.clear()
    controller.say({**HEALTH, "status": "failing", "failing": ["flow records", "tick\x1b[2J"]})
    printed = "\n".join(lines("health"))
    assert re.search(r"status +failing", printed) and re.search(r"failing +flow records, tick", printed)
    assert "\x1b" not in printed


def test_the_ways_of_switches(controller, lines):
    """Those of the health; and of each switch, with what it cannot do: one line for equal reasons."""
    controller.say(HEALTH)
    printed = "\n".join(lines("health"))
    assert re.search(r"way windows +1 a2b4c6d8e0f1", printed) and re.search(r"way normal +-", printed)
    limits = ["no paths: not connected", "no rule"]
    windows = {
        **SWITCH,
        "dpid": S1,
        "connected": False,
        "agent": True,
        "way": "windows",
        "limits": limits[:1],
    }
    controller.answers.clear()
    controller.say({"switches": [windows, {**SWITCH, "way": "normal", "limits": limits}]})
    header, _, *printed = lines("switches")
    assert words(header) == "dpid connected agent ports way"
    assert [words(line) for line in printed] == [
        "1 no yes 12 windows",
        "a2b4c6d8e0f1 yes no 12 normal",
        "1, a2b4c6d8e0f1: no paths: not connected",
        "a2b4c6d8e0f1: no rule",
    ]


def test_a_port_without_an_agent(controller, lines):
    nothing = {"active": None, "queue_bytes": None, "peak_bytes": None, "limit_bytes": None}
    controller.say({"ports": [{**PORT, **nothing, "rate_bps": None, "drops": None, "pool_bytes": None}]})
    assert lines()[2].split() == ["1:3", "s1-eth3", "host", "2", *["-"] * 7]


def test_states_of_queues(controller, lines):
    rows = [
        {**PORT, "state": "CNG"},
        {**PORT, "port": 4, "state": "NOM"},
        {**PORT, "port": 5, "incast": True},
    ]
    controller.say({"ports": rows})
    printed = lines()
    assert printed[0].split()[-1] == "state"
    assert [line.split()[-1] for line in printed[2:5]] == ["CNG", "NOM", "incast"]


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("policy", {"policy": "x"}),
        ("health", {"status": "ok"}),
        ("events", {"events": [{}]}),
        ("paths", {"paths": [1]}),
    ],
)
def test_invalid_answers_of_every_view(controller, refused, kind, answer):
    controller.say_invalid(answer)
    assert "not as fairq_ryu's controller does" in refused(kind)


@pytest.mark.parametrize(
    "typed",
    [
        ["show", "flows", "--src", "\udcff"],
        ["far", "add", "\udcff", "eth0", "rate", "1mbit"],
    ],
    ids=["show", "far"],
)
def test_what_is_no_text_is_the_controller_s_to_refuse(controller, capsys, typed):
    """An argument that is not UTF-8 comes as surrogates."""
    controller.refuse(400, "not UTF-8")
    assert main.main([*typed, "--url", controller.url]) == 2
    assert capsys.readouterr().err.count("\n") == 1
