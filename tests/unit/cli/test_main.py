"""The command line: an error that the user can correct is one line and code 2, never a traceback."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from pathlib import Path

import pytest

from fairq_ryu import __version__
from fairq_ryu.agent import agent, privileges, status
from fairq_ryu.agent.bridge_lock import BridgeLock
from fairq_ryu.agent.options import TlsFiles
from fairq_ryu.cli import columns, main
from fairq_ryu.cli import release as cli_release
from fairq_ryu.cli.commands import release
from fairq_ryu.controller_target import parse_target
from fairq_ryu.errors import UserError

COMMANDS = ["doctor", "agent", "announce", "release", "status", "show", "run", "report", "check"]
COMMANDS += ["disable", "enable", "far", "host", "simulate"]


@pytest.fixture(autouse=True)
def empty_machine(tmp_path, monkeypatch):
    """No running agent, and no Open vSwitch."""
    monkeypatch.setenv("FAIRQ_RUNDIR", str(tmp_path / "run"))
    monkeypatch.setenv("OVS_RUNDIR", str(tmp_path / "ovs"))
    return tmp_path


@pytest.fixture
def fairq(capsys):
    """Run a command; returns its exit code, output and error output."""

    def fairq(*arguments: str) -> tuple[int, str, str]:
        code = main.main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return fairq


@pytest.fixture
def refused(fairq):
    """Run a command that must fail with one line; returns the line."""

    def refused(*arguments: str) -> str:
        code, out, err = fairq(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith(f"fairq {arguments[0]}: ")
        assert err.count("\n") == 1
        assert "Remedy: " in err
        assert "Traceback" not in err
        return err

    return refused


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(f"    {command} " in printed for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main.main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: fairq {command}" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main.main(["--version"])
    assert capsys.readouterr().out == f"fairq_ryu {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["agent"], ["check"]])
def test_wrong_usage_is_code_2(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main.main(arguments)
    assert ended.value.code == 2
    assert "usage: fairq" in capsys.readouterr().err


def test_check(fairq, refused, tmp_path):
    path = tmp_path / "fairq.conf"
    path.write_text("[fairq]\nalpha = 0.3\n")
    assert fairq("check", path) == (0, f"{path}: fine\n", "")
    path.write_text("[fairq]\nalpha = 3\n")
    assert "alpha: 3 is more than 1" in refused("check", path)
    assert "cannot read" in refused("check", tmp_path / "missing")


@pytest.mark.parametrize(
    "target",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:6653",
        "udp:127.0.0.1:6653",
        "tcp:",
        "tcp::6653",
        "tcp:127.0.0.1:",
        "tcp:127.0.0.1:0",
        "tcp:127.0.0.1:65536",
        f"tcp:127.0.0.1:{'1' * 5000}",
        "tcp:127.0.0.1:http",
        "tcp:::1:6653",
        "tcp:[::1:6653",
        "tcp:127.0.0.1:6653:1",
    ],
)
def test_an_invalid_target(refused, target):
    assert "is not a controller's address" in refused("agent", "--bridge", "s1", "--controller", target)


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1:6653", "tcp:127.0.0.1:0", "tcp:127.0.0.1:65536", "tcp:a,tcp:b", "udp:127.0.0.1", "tcp:"],
)
def test_check_and_agent_agree_on_addresses_of_controllers(refused, tmp_path, text):
    (tmp_path / "a.conf").write_text(f"[agent]\ncontrollers = {text}\n")
    checked = refused("check", tmp_path / "a.conf").removeprefix("fairq check: ")
    assert (
        refused("agent", "--bridge", "s1", "--config-file", tmp_path / "a.conf") == f"fairq agent: {checked}"
    )
    assert "is not a controller's address" in checked


def test_check_names_the_sections_that_it_has_not_checked(fairq, tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("[DEFAULT]\nverbose = yes\n[their_app]\nrate = 7\n[service.web]\nport = 80\nsize = 9\n")
    said = f"{path}: [their_app] is left to other programs: fairq_ryu has no such section\n{path}: fine\n"
    assert fairq("check", path) == (0, said, "")


@pytest.mark.parametrize(
    ("text", "host", "port", "secure"),
    [
        ("tcp:127.0.0.1", "127.0.0.1", 6653, False),
        ("tcp:127.0.0.1:6633", "127.0.0.1", 6633, False),
        ("ssl:controller.example:1", "controller.example", 1, True),
        ("tcp:[::1]:6653", "::1", 6653, False),
        ("ssl:[fe80::1]", "fe80::1", 6653, True),
    ],
)
def test_targets(text, host, port, secure):
    target = parse_target(text)
    assert (target.text, target.host, target.port, target.secure) == (text, host, port, secure)


def test_tls_files_that_cannot_be_used(tmp_path):
    with pytest.raises(UserError, match="whom to trust"):
        TlsFiles().context()
    with pytest.raises(UserError, match="cannot use the TLS files"):
        TlsFiles(ca_certificate=tmp_path / "missing.pem").context()
    (tmp_path / "wrong.pem").write_text("this is no certificate")
    with pytest.raises(UserError, match="cannot use the TLS files"):
        TlsFiles(ca_certificate=tmp_path / "wrong.pem").context()


def test_an_agent_needs_root(refused, monkeypatch):
    monkeypatch.setattr(privileges, "missing", lambda: ["CAP_BPF"])
    assert "needs root, or CAP_BPF, to load eBPF" in refused("agent", "--bridge", "s1")


def test_an_agent_without_open_vswitch(refused, monkeypatch):
    monkeypatch.setattr(privileges, "missing", list)
    assert "Open vSwitch is not running" in refused("agent", "--bridge", "nonsense")


def test_an_agent_on_a_bridge_that_has_one(refused, monkeypatch):
    monkeypatch.setattr(privileges, "missing", list)
    lock = BridgeLock("s1")
    try:
        assert f"bridge s1 has an agent already: process {os.getpid()}" in refused("agent", "--bridge", "s1")
    finally:
        lock.release()


def test_an_agent_with_a_wrong_config(refused, tmp_path):
    path = tmp_path / "fairq.conf"
    path.write_text("[agent]\nflows = 1\n")
    assert "flows: 1 is less than 64" in refused("agent", "--bridge", "s1", "--config-file", path)


def test_options_are_passed_to_the_agent(fairq, tmp_path, monkeypatch):
    passed_options = []
    monkeypatch.setattr(agent, "run", lambda options: passed_options.append(options) or 0)
    path = tmp_path / "fairq.conf"
    path.write_text("[agent]\nflows = 100\nports = 5\nactive_timeout = 0.5\n")
    assert fairq("agent", "--bridge", "s1")[0] == 0
    arguments = ["--controller", "tcp:10.0.0.1", "--controller", "ssl:10.0.0.2:1", "--config-file", path]
    assert fairq("agent", "--bridge", "s2", *arguments, "--ca-cert", "ca.pem")[0] == 0
    plain, full = passed_options
    assert [target.text for target in plain.targets] == ["tcp:127.0.0.1:6653"]
    assert [(target.host, target.port) for target in full.targets] == [("10.0.0.1", 6653), ("10.0.0.2", 1)]
    assert (full.limits.flows, full.limits.rules, full.limits.ports) == (100, 64, 5)
    assert (plain.limits.flows, plain.limits.rules) == (65_536, 4096)
    assert full.limits.active_timeout == 0.5
    assert str(full.tls.ca_certificate) == "ca.pem"


def test_controllers_and_files_of_an_agent_may_be_settings(fairq, refused, tmp_path, monkeypatch):
    """A service has no command line of its own: the file says where its controllers are."""
    passed_options = []
    monkeypatch.setattr(agent, "run", lambda options: passed_options.append(options) or 0)
    path = tmp_path / "fairq.conf"
    path.write_text(
        "[agent]\ncontrollers = tcp:10.0.0.1  ssl:[::1]:1\nprivate_key = a.key\n"
        "certificate = a.pem\nca_cert = ca.pem\n"
    )
    assert fairq("agent", "--bridge", "s1", "--config-file", path)[0] == 0
    given = ["--controller", "tcp:10.0.0.9", "--ca-cert", "other.pem"]
    assert fairq("agent", "--bridge", "s1", "--config-file", path, *given)[0] == 0
    from_file, from_options = passed_options
    assert [(each.host, each.port) for each in from_file.targets] == [("10.0.0.1", 6653), ("::1", 1)]
    assert from_file.tls == TlsFiles(Path("a.key"), Path("a.pem"), Path("ca.pem"))
    assert [each.host for each in from_options.targets] == ["10.0.0.9"]
    assert from_options.tls == TlsFiles(Path("a.key"), Path("a.pem"), Path("other.pem"))
    path.write_text("[agent]\ncontrollers = 10.0.0.1\n")
    assert "is not a controller's address" in refused("agent", "--bridge", "s1", "--config-file", path)


@pytest.mark.parametrize("name", ["matplotlib", "rich.text", "fairq_ryu.nothing"])
def test_a_command_whose_packages_are_not_installed(fairq, monkeypatch, name):
    """The packages of Debian leave out what only some commands need. A module of ours is never left out."""

    def run(args):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(release, "run", run)
    if name.startswith("fairq_ryu"):
        with pytest.raises(ModuleNotFoundError):
            fairq("release", "--bridge", "s1")
        return
    assert fairq("release", "--bridge", "s1") == (
        2,
        "",
        f"fairq release: it needs the Python package {name.partition('.')[0]}, which is not installed. "
        "Remedy: install it; docs/install.md says which package has what\n",
    )


def test_status_without_an_agent(refused, tmp_path):
    assert "no agent runs here" in refused("status")
    assert "no agent runs on bridge s1" in refused("status", "--bridge", "s1")
    (tmp_path / "run").mkdir()
    for name in ("s1", "s2"):
        (tmp_path / "run" / f"{name}.sock").touch()
    assert "agents run on s1, s2" in refused("status")


@pytest.fixture
def answering(tmp_path):
    """Makes an agent's status socket that answers one question with given bytes."""
    threads = []

    def answering(data: bytes) -> None:
        (tmp_path / "run").mkdir(exist_ok=True)
        path = tmp_path / "run" / "s1.sock"
        path.unlink(missing_ok=True)
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen()

        def answer() -> None:
            with server, server.accept()[0] as client:
                client.sendall(data)

        threads.append(threading.Thread(target=answer))
        threads[-1].start()

    yield answering
    for thread in threads:
        thread.join(5)


@pytest.fixture
def hanging(tmp_path, monkeypatch):
    """An agent that takes connections and does nothing else, with one place in its queue."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "s1.lock").write_text("process 4711 (fairq agent --bridge s1)\n")
    monkeypatch.setattr(status.ask, "__defaults__", (0.05,))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "run" / "s1.sock"))
        server.listen(0)
        yield str(tmp_path / "run" / "s1.sock")


def test_an_agent_that_hangs_is_named(refused, hanging):
    said = "the agent of bridge s1 (pid 4711) does not answer within 0.05 s"
    assert said in refused("status", "--bridge", "s1")
    assert said in refused("status"), "also if its queue is full"
    assert cli_release._agent_answers("s1"), "it is not dead"


def test_an_agent_that_is_killed_before_it_answers(tmp_path):
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "run" / "s1.sock"))
        server.listen()

        def end():
            select.select([server], [], [])
            server.close()

        ending = threading.Thread(target=end)
        ending.start()
        with pytest.raises(UserError, match="ended while it answered"):
            status.ask("s1")
        ending.join()


def test_the_time_for_an_answer_is_short():
    assert status.ANSWER_S == 2.0


@pytest.mark.parametrize("lost", ["ports", "windows_only", "filters", "no_acks"])
def test_an_agent_that_was_started_before_an_update(fairq, answering, lost):
    """No key of its answer is certain, at whatever depth."""
    port = {name: each for name, each in PORT_STATUS.items() if name != lost}
    about = {name: each for name, each in {**STATUS, "ports": [port]}.items() if name != lost}
    answering(json.dumps(about).encode())
    code, _, said = fairq("status", "--bridge", "s1")
    assert (code, said.count("\n")) == (2, 1)
    assert f"the agent tells nothing of {lost}: its version is older" in said and "restart the agent" in said


def test_status_as_json(fairq, answering):
    answering(json.dumps({"bridge": "s1", "ports": []}).encode())
    code, out, err = fairq("status", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"bridge": "s1", "ports": []}


def test_a_scenario_is_checked_as_one(fairq, refused, tmp_path):
    stored = Path(main.__file__).parents[1] / "experiments/scenarios/incast.toml"
    assert fairq("check", stored) == (0, f"{stored}: fine\n", "")
    wrong = tmp_path / "mine.toml"
    wrong.write_text(stored.read_text() + "nonsense_s = 3\n")
    assert "nonsense_s" in refused("check", wrong)
    assert "there is no scenario" in refused("check", tmp_path / "nothing.toml")


PORT_STATUS = {
    "ofport": 2,
    "mode": "act",
    "would_lower": 0,
    "name": "dhp2",
    "filters": {"place": "clsact", "restored": 0, "refusal": "", "before": [], "missed": 0},
    "queue": {
        "kind": "htb",
        "reason": "",
        "bytes": 30466,
        "limit": 125000,
        "rate": 6_250_000,
        "drops": 0,
    },
    "far": None,
    "tx_queues": [],
    "active_flows": 2,
    "rewritten": 4618,
    "no_acks": {"now": 0, "total": 0},
    "congestion": {"cng": 31250, "nom": 6250, "drops": True, "state": "CNG"},
    "rule": {"kind": "pool", "bytes": 38747, "expires_in_s": 1.5},
}
STATUS = {
    "bridge": "s1",
    "deleted": False,
    "controllers": [{"target": "tcp:127.0.0.1:6653", "connected": True}],
    "flows": 2,
    "rules": 1,
    "ports": [PORT_STATUS, {**PORT_STATUS, "ofport": 3, "name": "dhp3", "rule": None, "congestion": None}],
    "drop_reports": {"available": True, "told": 3, "passed_over": 0, "held_back": 0, "lost": 0},
    "segment_copies": {"rules": 6, "sent": 912, "copies_suppressed": 34, "lost": 0, "unread": 0},
    "windows_only": [{"names": ["vx1", "vx2"], "ifindex": 9, "reason": "they have one network device"}],
    "unwatched": [{"name": "p[0]", "reason": "type patch"}],
}


@pytest.mark.parametrize(
    ("pool", "window", "shown"), [(38747, 0, "pool 38747"), (0, 2920, "each 2920"), (0, 0, "law")]
)
def test_status_shows_what_a_law_of_the_switch_grants(fairq, answering, pool, window, shown):
    rule = {"kind": "law", "bytes": pool or window, "law": {"pool": pool, "window": window}}
    answering(json.dumps({**STATUS, "ports": [{**PORT_STATUS, "rule": rule}]}).encode())
    (line,) = [line for line in fairq("status", "--bridge", "s1")[1].splitlines() if " dhp2 " in line]
    assert shown in line


@pytest.mark.parametrize(
    ("filters", "line"),
    [
        ({"place": "tcx"}, "port 2: windows are lowered by tcx, without turns and queue laws"),
        (
            {"before": ["bpf filter x (pref 7)"]},
            "port 2: bpf filter x (pref 7) runs before the agent's programs",
        ),
        (
            {"before": ["tcx program y"], "missed": 12},
            "port 2 is not governed: 12 TCP packets have left without reaching the agent's programs: tcx",
        ),
        (
            {"refusal": "no room"},
            "port 2 is not governed: somebody has removed filters of the agent: no room",
        ),
        ({"restored": 3}, "port 2: removed filters of the agent were attached again, 3 times"),
    ],
)
def test_status_says_whether_packets_reach_the_agents_programs(fairq, answering, filters, line):
    port = {**PORT_STATUS, "filters": {**PORT_STATUS["filters"], **filters}}
    answering(json.dumps({**STATUS, "ports": [port]}).encode())
    assert line in " ".join(fairq("status", "--bridge", "s1")[1].split())


def test_status_says_that_the_bridge_is_missing(fairq, answering):
    answering(json.dumps({**STATUS, "deleted": True, "ports": []}).encode())
    assert "bridge s1 does not exist: its agent waits" in fairq("status", "--bridge", "s1")[1]


def test_status_says_why_a_port_has_no_windows(fairq, answering):
    ports = [
        {**PORT_STATUS, "ofport": number, "queue": {**PORT_STATUS["queue"], "kind": kind, "reason": reason}}
        for number, kind, reason in [(2, "htb", ""), (3, "noqueue", "it has no queue"), (4, "mq", "mq has")]
    ]
    answering(json.dumps({**STATUS, "ports": ports}).encode())
    lines = [line for line in fairq("status", "--bridge", "s1")[1].splitlines() if "no windows" in line]
    assert lines == ["port 4 has no windows: mq has"]


def test_status_shows_flows_without_acks(fairq, answering):
    alone = {**PORT_STATUS, "ofport": 3, "no_acks": {"now": 2, "total": 7}}
    answering(json.dumps({**STATUS, "ports": [PORT_STATUS, alone]}).encode())
    out = " ".join(fairq("status", "--bridge", "s1")[1].split())
    assert out.count("no ACKs") == 1
    assert "port 3: data seen, no ACKs: 2 flows now, 7 since the agent started; their windows are" in out


def test_status_says_what_is_inferred_of_a_far_queue(fairq, answering):
    far = {"why": "full", "line": 1_250_000, "rate": 600_000}
    unknown = {"why": "unknown", "line": 0, "rate": 0}
    ports = [
        PORT_STATUS,
        *({**PORT_STATUS, "ofport": n, "far": each} for n, each in ((3, far), (4, unknown))),
    ]
    answering(json.dumps({**STATUS, "ports": ports}).encode())
    out = " ".join(fairq("status", "--bridge", "s1")[1].split())
    assert out.count("is a far queue") == 2
    assert "came again; rate 4.8 of 10 Mbit/s (its line is full) port 3" in out
    assert "came again; the rate of its line is not known yet" in out


def test_status_shows_which_ports_are_only_observed(fairq, answering):
    acts = PORT_STATUS
    seen = {
        **PORT_STATUS,
        "ofport": 3,
        "name": "dhp3",
        "mode": "observe",
        "rewritten": 0,
        "would_lower": 4511,
    }
    answering(json.dumps({**STATUS, "ports": [acts, seen]}).encode())
    out = fairq("status", "--bridge", "s1")[1]
    rows = {line.split()[1]: line.split()[-3:] for line in out.splitlines() if " dhp" in line}
    assert rows == {"dhp2": ["4618", "0", "act"], "dhp3": ["0", "4511", "observe"]}
    answering(json.dumps({**STATUS, "ports": [acts]}).encode())
    assert "would lower" not in fairq("status", "--bridge", "s1")[1]


@pytest.mark.parametrize("width", [60, 79, 100])
def test_status_fits_a_narrow_terminal_and_cuts_no_number(fairq, answering, monkeypatch, width):
    monkeypatch.setattr(columns, "WIDTH", width)
    answering(json.dumps(STATUS).encode())
    code, out, err = fairq("status", "--bridge", "s1")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= width
    assert "…" not in out
    words = out.split()
    for number in ("30466", "125000", "4618", "dhp2", "dhp3"):
        assert number in words
    assert "pool" in words and "38747" in words
    assert "not watched: p[0] (type patch)" in out
    assert "912 sent, 34 beyond the rate" in " ".join(words)
    assert "windows only: vx1, vx2 (they have" in out


@pytest.mark.parametrize("data", [b"", b'{"bridge": "s1", "po'])
def test_an_agent_that_ends_while_it_answers(refused, answering, data):
    answering(data)
    assert "agent of bridge s1" in refused("status", "--bridge", "s1")


def test_a_scenario_that_does_not_exist(refused, tmp_path):
    assert "nonsense" in refused("run", "nonsense", "--out", tmp_path / "out")
    assert "--set 'rounds'" in refused("run", "incast", "--out", tmp_path / "out", "--set", "rounds")


def test_a_report_of_a_missing_result(refused, tmp_path):
    assert "result.json" in refused("report", tmp_path)


def test_ctrl_c_is_no_traceback(fairq, monkeypatch):
    def interrupt(bridge: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "ask", interrupt)
    assert fairq("status", "--bridge", "s1") == (130, "", "fairq status: interrupted\n")


def test_a_closed_pipe_is_no_traceback(fairq, monkeypatch):
    def broken(bridge: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(status, "ask", broken)
    assert fairq("status", "--bridge", "s1") == (1, "", "")
