"""``fairq release``: what is removed from a bridge, and what stays."""

import subprocess

import pytest

from fairq_ryu.cli import release
from fairq_ryu.errors import UserError
from fairq_ryu.openflow import copy_classes, pipeline
from fairq_ryu.openflow.copy_classes import CopyClass

OURS = f" cookie={pipeline.COOKIE_TCP:#x}, duration=1s, table=0, n_packets=0, priority=100,tcp actions=drop"
OLDER = " cookie=0xfa17000100000003, duration=1s, table=1, n_packets=0, priority=10 actions=drop"
THEIRS = " cookie=0x77, duration=1s, table=0, n_packets=0, priority=5,ip actions=NORMAL"
LLDP = (
    " cookie=0x0, duration=1s, table=0, n_packets=3, n_bytes=180, "
    "priority=65535,dl_dst=01:80:c2:00:00:0e,dl_type=0x88cc actions=CONTROLLER:65535"
)
METER = "reply:\nmeter=controller pktps burst stats bands=\ntype=drop rate={} burst_size={}\n"
SHARE = f"meter={copy_classes.meter_id(CopyClass.SYN, 3)} pktps burst stats bands=\ntype=drop rate=5\n"
OTHER_METER = "meter=1 kbps bands=\ntype=drop rate=10\n"


class Bridge:
    """A fake of Open vSwitch with one bridge: its commands."""

    def __init__(self) -> None:
        self.flows = [OURS, OLDER, THEIRS]
        self.meters = METER.format(10000, 10000)
        self.qos = {"aaaa": "s1", "bbbb": "s2"}
        self.connected = "false"
        self.done: list[str] = []

    def run(self, command, **_):
        program, words = command[0], [word for word in command[1:] if not word.startswith("--")]
        self.done.append(" ".join(words))
        answer = (self.vsctl if program == "ovs-vsctl" else self.ofctl)(words, command)
        return subprocess.CompletedProcess(command, 0, answer, "")

    def vsctl(self, words, command):
        match words:
            case ["list-br"]:
                return "s1\ns2\n"
            case ["get-controller", _]:
                return "tcp:127.0.0.1:6653\n"
            case ["find", "Controller", _]:
                return f"{self.connected}\n"
            case ["find", "QoS", wanted]:
                name = wanted.removeprefix("external_ids:fairq-bridge=")
                return "".join(f"{uuid}\n" for uuid, bridge in self.qos.items() if bridge == name)
            case ["find", "Port", _]:
                return "p1\np2\n"
            case [*_, "destroy", "QoS", uuid]:
                assert command.count("clear") == 2
                del self.qos[uuid]
                return ""
        raise AssertionError(words)

    def ofctl(self, words, command):
        ours = [flow for flow in self.flows if "cookie=0xfa17" in flow]
        match words:
            case ["dump-flows", "s1", "cookie=0xfa17000000000000/0xffff000000000000"]:
                return "\n".join(["OFPST_FLOW reply (OF1.3) (xid=0x2):", *ours])
            case ["dump-flows", "s1", "table=0"]:
                return "\n".join(["OFPST_FLOW reply (OF1.3) (xid=0x2):", *self.flows])
            case ["del-flows", "s1", "cookie=0xfa17000000000000/0xffff000000000000"]:
                self.flows = [flow for flow in self.flows if flow not in ours]
                return ""
            case ["del-flows", "s1", release.LLDP] if "--strict" in command:
                self.flows.remove(LLDP)
                return ""
            case ["dump-meters", "s1"]:
                return self.meters
            case ["del-meter", "s1", "meter=controller"]:
                self.meters = self.meters.replace(METER.format(10000, 10000), "")
                return ""
            case ["del-meter", "s1", number]:
                self.meters = self.meters.replace(SHARE, "") if number in SHARE else "the wrong one"
                return ""
        raise AssertionError(words)


@pytest.fixture
def bridge(monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRQ_RUNDIR", str(tmp_path))
    made = Bridge()
    monkeypatch.setattr(subprocess, "run", made.run)
    return made


def test_own_rules_are_removed_and_foreign_rules_stay(bridge, capsys):
    bridge.flows.append(LLDP)
    assert release.main("s1") == 0
    assert bridge.flows == [THEIRS]
    assert (bridge.meters, bridge.qos) == ("", {"bbbb": "s2"})
    assert capsys.readouterr().out.splitlines() == [
        "fairq release: bridge s1: removed 3 rules",
        "fairq release: bridge s1: removed the meter for copies",
        "fairq release: bridge s1: removed 1 QoS records",
    ]


def test_a_second_release_removes_nothing(bridge, capsys):
    release.main("s1")
    capsys.readouterr()
    assert release.main("s1") == 0
    assert capsys.readouterr().out.splitlines() == [
        "fairq release: bridge s1: removed 0 rules",
        "fairq release: bridge s1: has no meter of fairq_ryu",
        "fairq release: bridge s1: removed 0 QoS records",
    ]


@pytest.mark.parametrize("meters", [OTHER_METER, METER.format(10000, 500), METER.format(10000, 100000), ""])
def test_meters_of_others_stay(bridge, meters):
    bridge.meters = meters
    release.main("s1")
    assert bridge.meters == meters


def test_the_meters_of_ports_are_removed(bridge, capsys):
    bridge.meters = SHARE + METER.format(10000, 10000) + OTHER_METER
    release.main("s1")
    assert "removed the meter for copies and 1 of ports" in capsys.readouterr().out
    assert bridge.meters == OTHER_METER
    bridge.meters = SHARE + OTHER_METER
    release.main("s1")
    assert "removed 1 meters of ports" in capsys.readouterr().out
    assert bridge.meters == OTHER_METER


def test_the_numbers_of_the_meters_of_ports_are_those_of_the_controller():
    numbers = [copy_classes.meter_id(kind, port) for kind in CopyClass for port in (1, 0xFF00)]
    assert all(copy_classes.is_ours(number) for number in numbers)
    numbers += [copy_classes.group_meter_id(port) for port in (1, 0xFF00)]
    assert all(number in release.SHARES for number in numbers) and len({*numbers}) == len(numbers)
    for number in (1, release.SHARES.start - 1, release.SHARES.stop, 0xFFFF_FFFD):
        assert not copy_classes.is_ours(number)


def test_every_cookie_of_ours_is_under_the_mask():
    value, mask = (int(each, 16) for each in release.COOKIE_MASK.split("/"))
    cookies = [cookie for name, cookie in vars(pipeline).items() if name.startswith("COOKIE_")]
    assert len(cookies) >= 8
    assert all(cookie & mask == value for cookie in cookies)


@pytest.mark.parametrize("name", ["br0", ""])
def test_no_such_bridge(bridge, name):
    with pytest.raises(UserError, match="there is no bridge"):
        release.main(name)
    assert bridge.done == ["list-br"]


def test_a_controller_that_has_just_ended_is_waited_for(bridge, monkeypatch):
    """Open vSwitch writes down every five seconds who is connected."""
    bridge.connected = "true"
    monkeypatch.setattr(release.time, "sleep", lambda _: setattr(bridge, "connected", "false"))
    assert release.main("s1") == 0


def test_nothing_is_changed_while_a_controller_is_connected(bridge, monkeypatch):
    monkeypatch.setattr(release, "_NOTICED", 0.0)
    bridge.connected = "true"
    with pytest.raises(UserError, match="would install its rules again") as refused:
        release.main("s1")
    assert "ovs-vsctl del-controller s1" in refused.value.remedy
    assert len(bridge.flows) == 3


def test_nothing_is_changed_while_the_agent_runs(bridge, tmp_path, monkeypatch):
    (tmp_path / "s1.sock").touch()
    monkeypatch.setattr(release.status, "ask", lambda bridge: {})
    with pytest.raises(UserError, match="agent of bridge s1 is running"):
        release.main("s1")
    assert len(bridge.flows) == 3


def test_the_socket_of_a_killed_agent_does_not_count(bridge, tmp_path):
    (tmp_path / "s1.sock").touch()
    assert release.main("s1") == 0


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (FileNotFoundError(2, "No such file or directory"), "cannot run ovs-vsctl: No such file"),
        (subprocess.TimeoutExpired("ovs-vsctl", 15), "ovs-vsctl does not finish"),
    ],
)
def test_without_open_vswitch(bridge, monkeypatch, failure, message):
    def run(command, **_):
        raise failure

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(UserError, match=message):
        release.main("s1")


def test_an_error_of_open_vswitch_is_shown(bridge, monkeypatch):
    def run(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "x\novs-vsctl: unix:db.sock: Permission denied\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(UserError, match="Permission denied"):
        release.main("s1")
