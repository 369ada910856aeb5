"""``fairq doctor --bridge``: what is said of each port, and the commands that make it governed."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.agent.ovsdb import BridgePort, BridgeView
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.tc import NO_PLACE, UNPOLICED
from fairq_ryu.agent.watched_ports import WindowDevice
from fairq_ryu.cli import main, port_report
from fairq_ryu.cli.doctor.commands import Output
from fairq_ryu.cli.port_report import (
    Filters,
    QosRecord,
    lines,
    queue_commands,
    read_qos,
    reports,
    with_far_queue,
)
from fairq_ryu.config.loader import load
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FAR

GOVERNED = QueueLimits("htb", 125_000, 25_000_000)
NO_QUEUE = QueueLimits("noqueue", 0, 0, "it has no queue")
NOOP = QosRecord("p1", "linux-noop")
KEEP = (
    "ovs-vsctl -- --id=@noop create QoS type=linux-noop external_ids:fairq-bridge=br0 "
    "-- set port {} qos=@noop"
)


def port(number: int, speed: int = 10**9) -> BridgePort:
    return BridgePort(number, f"p{number}", 100 + number, "02:00:00:00:00:00", True, True, speed)


def bridge(*ports: BridgePort) -> BridgeView:
    local = WindowDevice(7, ("br0",), True, "it hands packets to this machine")
    return BridgeView("br0", 1, "netdev", ports, (local,), (("pat", "a patch port"),))


def of(found: QueueLimits, qos: QosRecord | None = NOOP, explicit: bool = False, speed: int = 10**9) -> Any:
    """The report of port 1."""
    records = {} if qos is None else {"p1": qos}
    return reports(bridge(port(1, speed)), {101: found}, {101} if explicit else set(), records, {})[0]


def test_a_governed_port():
    made = of(GOVERNED, explicit=True)
    assert (made.governed, made.windows, made.commands) == (True, True, ())
    assert made.reason == "htb, 125,000 bytes, 200 Mbit/s"


def test_a_port_with_several_transmit_queues():
    made = of(QueueLimits("mq", 50_000, 0, queues=4), explicit=True)
    assert made.governed and made.rate == 250_000_000
    assert made.reason == "mq with 4 transmit queues, each of 50,000 bytes, 250 Mbit/s"


def test_a_governed_port_whose_queue_open_vswitch_removes():
    made = of(GOVERNED, qos=QosRecord("bond0"), explicit=True)
    assert made.governed and "may remove it" in made.reason
    assert made.commands == (KEEP.format("bond0"),), "the record is that of the bond"


def test_a_port_without_a_queue():
    made = of(NO_QUEUE, qos=None)
    assert (made.governed, made.windows, made.reason) == (False, True, "it has no queue")
    assert made.commands == (
        KEEP.format("p1"),
        "tc qdisc add dev p1 root handle 1: tbf rate 950mbit burst 11875"
        " peakrate 100gbit mtu 1540 limit 593750",
    )


def test_the_queue_of_a_fast_port_takes_packets_of_several_segments_as_they_are():
    """They are no large part of its buffer, and to cut them costs more than they do."""
    assert of(NO_QUEUE, speed=10**10).commands == (
        "tc qdisc add dev p1 root handle 1: htb default 1",
        "tc class add dev p1 parent 1: classid 1:1 htb rate 9500mbit ceil 9500mbit"
        " burst 118750 cburst 118750",
        "tc qdisc add dev p1 parent 1:1 handle 10: bfifo limit 5937500",
    )


def test_no_frame_of_the_port_is_too_long_for_its_queue():
    assert " burst 18080 peakrate 100gbit mtu 9040 " in queue_commands("p1", NO_QUEUE, 10**8, False, 9000)[0]


def test_a_qdisc_that_somebody_chose_goes_first():
    several = QueueLimits("htb", 0, 25_000_000, "htb has 2 leaf classes", measured=False)
    made = of(several, explicit=True)
    assert made.commands[0] == "tc qdisc del dev p1 root"
    assert "rate 190mbit" in made.commands[1]
    # With another record Open vSwitch removes its own qdisc.
    made = of(several, qos=QosRecord("p1", "linux-htb"), explicit=True)
    assert "record of type linux-htb would be replaced" in made.reason
    assert [command.split()[0] for command in made.commands] == ["ovs-vsctl", "tc"]
    assert "del" not in made.commands[1]


def test_a_class_that_lacks_a_bfifo_gets_one():
    made = of(QueueLimits("htb", 0, 25_000_000, "class 1:5 has none", leaf="1:5"), explicit=True)
    assert made.commands == ("tc qdisc replace dev p1 parent 1:5 bfifo limit 125000",)


def test_a_slow_port_has_room_for_some_frames():
    commands = queue_commands("p1", NO_QUEUE, 900_000, False)
    assert "rate 855000bit burst 3080 " in commands[0] and commands[0].endswith("limit 30000")


def test_a_port_of_unknown_speed():
    made = of(NO_QUEUE, speed=0)
    assert "put in RATE" in made.reason
    assert "rate RATE " in made.commands[0] and made.commands[0].endswith("limit BYTES")


def test_the_text_names_every_port():
    found = reports(bridge(port(1), port(2)), {101: GOVERNED}, {101}, {"p1": NOOP, "p2": NOOP}, {})
    text = list(lines("br0", False, found))
    assert text[0] == "no agent runs on bridge br0: fairq agent --bridge br0"
    assert text[1] == "port 1 p1: governed: htb, 125,000 bytes, 200 Mbit/s"
    assert text[2] == "port 2 p2: not governed: it has no qdisc"
    assert text[3].startswith("    tc qdisc add dev p2 root")
    assert text[-3:] == [
        "br0: windows only: it hands packets to this machine",
        "pat: not watched: a patch port",
        "bridge br0: 1 of 2 ports are governed",
    ]


QUEUE = "htb, 125,000 bytes, 200 Mbit/s"
BEFORE = "bpf filter (pref 7) runs before the agent's programs at tc egress"
MISSED = "9 TCP packets have left without reaching the agent's programs"


def test_a_network_card_could_have_a_far_queue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At least it leads to a switch; a veth does not."""
    monkeypatch.setattr(port_report, "_is_card", lambda name: name == "p1")
    ports = (port(1, 10**10), port(2))
    found = reports(bridge(*ports), {101: NO_QUEUE, 102: NO_QUEUE}, set(), {}, {})
    one, two, *others = [with_far_queue(each, ports, {}) for each in found]
    assert one.far_queue == "p1 = rate 10000mbit"
    assert with_far_queue(found[0], (port(1, 0),), {}).far_queue == "p1 ="
    assert not any(each.far_queue for each in (two, *others))
    *_, section, line, _buffer, cost, _ = lines("br0", True, [one])
    assert cost.startswith("    it costs long flows at most about 2 % of the rate between volleys")
    # What it proposes is what a configuration takes.
    for proposed in (line, "p1 ="):
        pasted = tmp_path / "far.conf"
        pasted.write_text(f"{section.strip()}\n{proposed.strip()}\n")
        assert [each.port for each in load([pasted]).far_queues()] == ["p1"]
    told = {"ports": [{"ofport": FAR + 1, "queue": {"drops": 0}}]}
    assert with_far_queue(found[0], ports, told) == found[0], "it has one"


def test_losses_in_the_switch_above_are_named() -> None:
    ports = (port(1, 10**10), port(2))
    found = reports(bridge(*ports), {101: NO_QUEUE, 102: NO_QUEUE}, set(), {}, {})
    told = {"ports": [{"ofport": FAR + 1, "queue": {"drops": 7}}]}
    one, two = (with_far_queue(each, ports, told) for each in found[:2])
    assert (one.lost, two.lost) == (7, 0)
    said = [line for line in lines("br0", True, [one, two]) if "far queue:" in line]
    assert len(said) == 1 and said[0].startswith("    far queue: 7 segments were lost in the switch above")


@pytest.mark.parametrize(
    ("filters", "state"),
    [
        (Filters("", refusal=NO_PLACE), f"not governed: {NO_PLACE}"),
        (Filters(before=["bpf filter (pref 7)"], missed=9), f"not governed: {MISSED}: {BEFORE}"),
        (Filters(before=["bpf filter (pref 7)"]), f"governed: {QUEUE}; {BEFORE}; {UNPOLICED}"),
        (
            Filters("tcx"),
            f"governed: {QUEUE}; windows are lowered by tcx, without turns and queue laws, beside its "
            "ingress qdisc",
        ),
        (
            Filters("tcx", refusal="no room"),
            f"governed: {QUEUE}; no room; windows are lowered by tcx, without turns and queue laws, beside "
            "its ingress qdisc",
        ),
        (Filters(), f"governed: {QUEUE}; {UNPOLICED}"),
    ],
)
def test_what_stands_between_packets_and_the_agent(filters: Filters, state: str) -> None:
    view = replace(bridge(port(1)), policed=frozenset({101}))
    found = reports(view, {101: GOVERNED}, {101}, {"p1": NOOP}, {101: filters})
    text = list(lines("br0", True, found))
    assert text[0] == f"port 1 p1: {state}"
    assert text[-1] == f"bridge br0: {int(state.startswith('governed'))} of 1 ports are governed"


def test_a_running_agent_knows_best() -> None:
    about = {"ports": [ROW], "unwatched": [{"name": "p2", "reason": "no room"}]}
    found = port_report._read_filters([port(1), port(2), port(3)], about)
    assert found == {
        101: Filters(before=[]),
        102: Filters(refusal="no room"),
        103: Filters(refusal="the agent does not watch it"),
    }


@pytest.mark.parametrize("name", ["x$(id)", "p;reboot", "p\x1b[31m"])
def test_commands_are_quoted_for_a_shell(name: str) -> None:
    """What is printed for root runs tc and ovs-vsctl with the very name, and nothing else."""
    own = replace(port(1), name=name)
    view = replace(bridge(own), name=f"br{name}")
    (report, *_) = reports(view, {101: NO_QUEUE}, {101}, {name: QosRecord(name)}, {})
    for command in report.commands:
        assert command.isprintable()
        script = f'tc() {{ printf "%s\\0" tc "$@"; }}; ovs-vsctl() {{ printf "%s\\0" ovs "$@"; }}; {command}'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        words = done.stdout.split("\0")
        assert words.count(name) == 1
        if words[0] == "ovs":
            assert f"external_ids:fairq-bridge={json.dumps(f'br{name}')}" in words
    assert [command.split()[0] for command in report.commands] == ["ovs-vsctl", "tc", "tc"]


ROW = {
    "ifindex": 101,
    "filters": {"place": "clsact", "restored": 1, "refusal": "", "before": [], "missed": 0},
}
ANSWERS = {
    "QoS": {"headings": ["_uuid", "type"], "data": [[["uuid", "q1"], "linux-htb"]]},
    "Interface": {
        "headings": ["_uuid", "name"],
        "data": [[["uuid", "i1"], "p1"], [["uuid", "i2"], "m1"], [["uuid", "i3"], "m2"]],
    },
    "Port": {
        "headings": ["name", "interfaces", "qos"],
        "data": [
            ["p1", ["uuid", "i1"], ["set", []]],
            ["bond0", ["set", [["uuid", "i2"], ["uuid", "i3"]]], ["uuid", "q1"]],
        ],
    },
}


def test_no_commands_are_offered_for_a_port_that_bypasses_the_kernel() -> None:
    reason = "cannot be governed: dpdk ports bypass the kernel's egress"
    view = replace(bridge(), unwatched=(("dpdk0", reason),))
    text = list(lines("br0", True, reports(view, {}, set(), {}, {})))
    assert text == [
        "br0: windows only: it hands packets to this machine",
        f"dpdk0: not watched: {reason}",
        "bridge br0: 0 of 0 ports are governed",
    ]


def test_the_records_of_open_vswitch(monkeypatch: pytest.MonkeyPatch):
    answer = lambda words: Output(0, json.dumps(ANSWERS[words[-1]]), "a warning of the tool\n")  # noqa: E731
    monkeypatch.setattr(port_report.commands, "run", answer)
    bond = QosRecord("bond0", "linux-htb")
    assert read_qos() == {"p1": QosRecord("p1"), "m1": bond, "m2": bond}


def test_open_vswitch_that_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(port_report.commands, "run", lambda words: Output(1, "ovs-vsctl: permission denied"))
    with pytest.raises(UserError, match="permission denied"):
        read_qos()


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    class Watcher:
        def __init__(self, name: str, on_change: Any) -> None:
            if name != "br0":
                raise UserError(f"there is no bridge {name}", "ovs-vsctl list-br")

        def start(self) -> BridgeView:
            return bridge(port(1))

        def stop(self) -> None:
            pass

    monkeypatch.setattr(port_report, "BridgeWatcher", Watcher)
    monkeypatch.setattr(port_report, "read_queue_limits", lambda indexes: {101: GOVERNED})
    monkeypatch.setattr(port_report, "explicit_roots", set)
    monkeypatch.setattr(port_report, "read_qos", lambda: {"p1": NOOP})
    row = {**ROW, "ofport": 1, "no_acks": {"now": 2, "total": 5}}
    told = {"bridges": ["br0"], "ports": [row], "unwatched": []}
    monkeypatch.setattr(port_report, "_ask_agent", lambda name: (True, told, ""))
    assert main.main(["doctor", "--bridge", "br0", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["bridge"], made["agent"]) == ("br0", True)
    assert [(each["names"], each["governed"]) for each in made["ports"]] == [
        (["p1"], True),
        (["br0"], False),
        (["pat"], False),
    ]
    assert [each["no_acks"] for each in made["ports"]] == [5, 0, 0]
    assert main.main(["doctor", "--bridge", "no"]) == 2
    assert "there is no bridge no" in capsys.readouterr().err


def test_a_governed_port_with_flows_without_acks():
    told = {"ports": [{"ofport": 1, "no_acks": {"now": 0, "total": 5}}]}
    limits = {101: GOVERNED, 102: GOVERNED}
    records = {name: QosRecord(name, "linux-noop") for name in ("p1", "p2")}
    found = [
        port_report.with_flows(each, told)
        for each in reports(bridge(port(1), port(2)), limits, set(), records, {})
    ]
    *_, last = shown = list(lines("br0", True, found))
    text = "    data seen, no ACKs: 5 flows since the agent started; their windows are not lowered"
    assert shown.count(text) == 1 and shown[1] == text
    assert last == "bridge br0: 2 of 2 ports are governed; 1 of these have flows without ACKs, which are not"


def test_bridges_that_patch_ports_join_need_one_agent():
    first, command, *_ = lines("br0", True, [], ["br-ex", "br-tun"])
    assert first.startswith("patch ports lead to br-ex and br-tun: ")
    assert command.strip() == "fairq agent --bridge br0:br-ex:br-tun"
    first, *_ = lines("br0", False, [], ["br-ex"])
    assert first == "no agent runs on bridge br0: fairq agent --bridge br0:br-ex"
    assert "patch" not in " ".join(lines("br0", True, []))
