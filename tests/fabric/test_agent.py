"""The agent on a real bridge: ports, rules, leases, and the state after it ends or is killed."""

import json
import os
import signal
import struct
import subprocess
import sys
import time

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent import tcx
from fairq_ryu.agent.libbpf import load_library
from fairq_ryu.agent.tc import NO_PLACE
from fairq_ryu.channel import congestion, dropped_packet, oxm, segment_copies, segment_state
from fairq_ryu.model import Congestion, Thresholds
from fairq_ryu.packet import parse
from mininet_topos.patience import patient
from tests.support.lab import FAIRQ, SINK, Process, end, fairq, output, received, until
from tests.support.ofp import StubController

pytestmark = pytest.mark.root


def filters(interface):
    return output("tc", "filter", "show", "dev", interface, "egress")


def clsact(interface):
    return "clsact" in output("tc", "qdisc", "show", "dev", interface)


def queued(interface):
    """Bytes in its longest queue."""
    return max(
        each["backlog"] for each in json.loads(output("tc", "-s", "-j", "qdisc", "show", "dev", interface))
    )


def add_port(name):
    output("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p")
    output("ip", "link", "set", name, "up")
    output("ovs-vsctl", "add-port", "s1", name)


def test_the_agent_attaches_to_every_port_and_detaches_at_its_end(lab):
    agent = lab.agent()
    for port in (1, 2, 3):
        assert "fq_egress" in filters(f"s1-eth{port}")
    assert [port["name"] for port in lab.status()["ports"]] == ["s1-eth1", "s1-eth2", "s1-eth3"]
    assert agent.end() == 0
    for port in (1, 2, 3):
        assert not clsact(f"s1-eth{port}")
    assert "bfifo" in output("tc", "qdisc", "show", "dev", "s1-eth3")


def test_the_agent_follows_added_and_removed_ports(lab, stub):
    lab.agent(stub.target)
    stub.accept()
    add_port("fqt0")
    try:
        status = stub.wait_for(parser.OFPPortStatus)
        assert (status.reason, status.desc.name) == (ofp.OFPPR_ADD, b"fqt0")
        number = status.desc.port_no
        assert "fq_egress" in filters("fqt0")
        assert stub.add({"in_port": number}, 5000) is None
        output("ovs-vsctl", "del-port", "s1", "fqt0")
        while stub.wait_for(parser.OFPPortStatus).reason != ofp.OFPPR_DELETE:
            pass
        assert stub.rules() == []
        assert not clsact("fqt0")
        assert stub.add({"in_port": number}, 5000) == (ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_VALUE)
    finally:
        output("ip", "link", "del", "fqt0")


def test_filters_of_others_stay(lab):
    output("tc", "qdisc", "add", "dev", "s1-eth1", "clsact")
    lab.stack.callback(output, "tc", "qdisc", "del", "dev", "s1-eth1", "clsact")
    foreign = "filter add dev s1-eth1 egress protocol ip prio 5 u32 match u32 0 0 flowid 1:1"
    output("tc", *foreign.split())
    agent = lab.agent()
    agent.end()
    assert "u32" in filters("s1-eth1") and "fq_egress" not in filters("s1-eth1")


def ingress_by_hand(lab, name):
    """As Open vSwitch makes it with hw-offload=true, on every port."""
    output("tc", "qdisc", "add", "dev", name, "ingress")
    lab.stack.callback(output, "tc", "qdisc", "del", "dev", name, "ingress")


def ingress_of_policing(lab, name):
    """Far above the rate of these links."""
    output("ovs-vsctl", "set", "interface", name, "ingress_policing_rate=1000000")
    lab.stack.callback(output, "ovs-vsctl", "set", "interface", name, "ingress_policing_rate=0")
    if "police" not in output("tc", "filter", "show", "dev", name, "ingress"):
        pytest.skip("Open vSwitch cannot police here: the kernel has no act_police or cls_matchall")


@pytest.mark.parametrize("make", [ingress_by_hand, ingress_of_policing])
def test_ports_with_an_ingress_qdisc_are_governed_and_reported(lab, stub, make):
    names = [f"s1-eth{number}" for number in (1, 2, 3)]
    for name in names:
        make(lab, name)
    agent = lab.agent(stub.target)
    if not tcx.is_available(load_library()):
        for words in (["status"], ["doctor", "--bridge", "s1"]):
            assert NO_PLACE in " ".join(fairq(*words).stdout.split())
        return
    stub.accept()
    lab.bulk()
    assert until(lambda: queued("s1-eth3") > 20_000)
    assert stub.add({"in_port": lab.port}, 3072, hard_timeout=30) is None
    assert until(lambda: queued("s1-eth3") < 6000), (
        "windows are lowered on the wire, not in the counters only"
    )
    assert lab.port_status()["filters"]["place"] == "tcx"
    beside = "windows are lowered by tcx, without turns and queue laws, beside its ingress qdisc"
    assert f"port {lab.port}: {beside}" in fairq("status").stdout.replace("\n", " ")
    assert beside in fairq("doctor", "--bridge", "s1").stdout
    assert agent.end() == 0
    assert all("ingress" in output("tc", "qdisc", "show", "dev", name) for name in names)


def test_filters_that_are_removed_are_there_again(lab):
    agent = lab.agent()
    output("tc", "qdisc", "del", "dev", "s1-eth3", "clsact")
    agent.wait_for("interface s1-eth3: somebody has removed filters of the agent; they are there again")
    assert "fq_egress" in filters("s1-eth3")
    assert lab.port_status()["filters"]["restored"] == 1
    assert "removed filters of the agent were attached again, 1 times" in fairq("status").stdout


def test_an_agent_that_is_stopped_by_a_signal_is_said_not_to_answer(lab):
    agent = lab.agent()
    agent.process.send_signal(signal.SIGSTOP)
    try:
        answer = fairq("status", "--bridge", "s1")
        assert answer.returncode == 2
        assert f"the agent of bridge s1 (pid {agent.process.pid}) does not answer" in answer.stderr
    finally:
        agent.process.send_signal(signal.SIGCONT)


def test_a_second_agent_names_the_process_that_has_the_bridge(lab):
    first = lab.agent()
    second = fairq("agent", "--bridge", "s1")
    assert second.returncode == 2
    assert f"process {first.process.pid}" in second.stderr and second.stderr.count("\n") == 1
    assert lab.status()["pid"] == first.process.pid


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--bridge", "no-such-bridge"], "there is no bridge no-such-bridge"),
        (["--bridge", "s1", "--controller", "udp:1.2.3.4"], "is not a controller's address"),
        (["--bridge", "s1", "--controller", "ssl:127.0.0.1"], "whom to trust"),
        (["--bridge", "s1", "--config-file", "/no/such/file"], "cannot read /no/such/file"),
    ],
)
def test_a_users_mistake_is_one_line(lab, arguments, words):
    answer = fairq("agent", *arguments)
    assert answer.returncode == 2
    assert words in answer.stderr and "Remedy:" in answer.stderr and answer.stderr.count("\n") == 1
    assert not clsact("s1-eth1")


def test_the_agent_is_an_openflow_switch(lab, stub):
    lab.agent(stub.target)
    features = stub.accept()
    bridge = int(output("ovs-vsctl", "get", "bridge", "s1", "datapath_id").strip().strip('"'), 16)
    assert features.datapath_id == oxm.DPID_MARKER << 48 | bridge
    assert features.n_tables == 2
    ports = stub.ask(parser.OFPPortDescStatsRequest(stub.datapath)).body
    assert [(p.port_no, p.name) for p in ports] == [(1, b"s1-eth1"), (2, b"s1-eth2"), (3, b"s1-eth3")]
    queue = stub.queues()[lab.port]
    assert (queue.limit, queue.rate) == (60000, 50_000_000 // 8)
    stats = stub.ask(parser.OFPQueueStatsRequest(stub.datapath, 0, lab.port, 0)).body
    assert [s.port_no for s in stats] == [lab.port]


def test_a_window_slows_a_real_flow_and_its_lease_ends(lab, stub):
    lab.agent(stub.target)
    stub.accept()
    sink, _ = lab.bulk()
    assert until(lambda: stub.queues()[lab.port].backlog > 20000)
    # One window of two segments: the queue can have at most that much.
    stub.sock.settimeout(20)
    assert stub.add({"in_port": lab.port}, 3072, hard_timeout=7, flags=ofp.OFPFF_SEND_FLOW_REM) is None
    # Well before the lease ends.
    assert until(lambda: stub.queues()[lab.port].backlog < 6000, 5)
    (rule,) = stub.rules()
    assert rule.match["in_port"] == lab.port and rule.packet_count > 0
    before = received(sink)
    removed = stub.wait_for(parser.OFPFlowRemoved)
    assert removed.reason == ofp.OFPRR_HARD_TIMEOUT and removed.packet_count > 0
    assert until(lambda: stub.queues()[lab.port].backlog > 20000)
    assert received(sink) > before
    assert stub.rules() == []


def test_a_flow_can_be_paused_and_resumed(lab, stub):
    lab.agent(stub.target)
    stub.accept()
    sink, _ = lab.bulk()
    assert until(lambda: received(sink) > 1_000_000)
    (data,) = [f for f in stub.flows() if f.key.dport == 5001 and f.port == lab.port]
    ack = data.key.reversed
    match = {
        "eth_type": 0x0800,
        "ip_proto": 6,
        "ipv4_src": ack.src,
        "ipv4_dst": ack.dst,
        "tcp_src": ack.sport,
        "tcp_dst": ack.dport,
    }
    assert stub.add(match, 0, hard_timeout=5) is None

    def paused():
        before = received(sink)
        time.sleep(0.5)
        return received(sink) == before

    assert until(paused, 3, 0)
    before = received(sink)
    assert until(lambda: received(sink) > before + 1_000_000)  # the lease is over, TCP probes


def test_a_malformed_message_is_refused_and_changes_nothing(lab, stub):
    lab.agent(stub.target)
    stub.accept()
    assert stub.add({"in_port": lab.port}, 5000, hard_timeout=30) is None
    good = stub.rules()[0].to_jsondict()["OFPFlowStats"]["instructions"]
    message = parser.OFPFlowMod(
        stub.datapath,
        match=parser.OFPMatch(in_port=lab.port),
        hard_timeout=5,
        instructions=[
            parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [parser.OFPActionSetField(tcp_window=1)])
        ],
    )
    message.set_xid(7)
    message.serialize()
    raw = bytes(message.buf)
    for cut in range(8, len(raw)):
        stub.send_raw(struct.pack("!BBHI", 4, ofp.OFPT_FLOW_MOD, cut, 7) + raw[8:cut])
        error = stub.wait_for(parser.OFPErrorMsg)
        assert error.type in (
            ofp.OFPET_BAD_REQUEST,
            ofp.OFPET_BAD_MATCH,
            ofp.OFPET_BAD_INSTRUCTION,
            ofp.OFPET_BAD_ACTION,
        )
    refused = (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TIMEOUT)
    assert stub.add({"in_port": lab.port}, 1, hard_timeout=0) == refused
    (rule,) = stub.rules()
    assert rule.to_jsondict()["OFPFlowStats"]["instructions"] == good


def test_the_agent_reconnects_to_a_controller_that_was_restarted(lab):
    first = StubController()
    lab.agent(first.target)
    first.accept()
    port = first.port
    first.shut()
    time.sleep(0.3)
    second = StubController(port)
    second.accept()
    second.shut()


def test_two_controllers_at_once(lab, stub):
    other = StubController()
    lab.agent(stub.target, other.target)
    stub.accept()
    other.accept()
    assert stub.add({"in_port": lab.port}, 5000) is None
    assert len(other.rules()) == 1
    other.shut()
    assert len(stub.rules()) == 1


def test_when_the_agent_is_killed_traffic_continues_and_the_next_agent_knows_the_flows(lab, stub):
    agent = lab.agent(stub.target)
    stub.accept()
    sink, _ = lab.bulk()
    assert until(lambda: received(sink) > 1_000_000)
    assert stub.add({"in_port": lab.port}, 3072, hard_timeout=1) is None
    agent.end(signal.SIGSEGV)
    assert "Segmentation fault" in agent.text and "asyncio" in agent.text  # and where
    stub.close()
    assert "fq_egress" in filters("s1-eth3")  # the filter stays attached
    before = received(sink)
    time.sleep(1.5)  # the lease is over, by the program's own clock
    after = received(sink)
    assert after > before
    assert until(lambda: queued("s1-eth3") > 20_000)  # a window of 3072 would not fill the queue
    again = lab.agent(stub.target)
    assert "took over" in again.text
    stub.accept()
    assert stub.add({"in_port": lab.port}, 3072, hard_timeout=10) is None
    assert until(lambda: lab.port_status()["rewritten"] > 100)
    assert again.end() == 0
    assert not clsact("s1-eth3")


def test_an_agent_that_is_stopped_and_started_governs_the_flows_again(lab, stub):
    """As an upgrade does. No handshake is seen by the second agent."""
    first = lab.agent(stub.target)
    stub.accept()
    pairs = [lab.bulk(sender, 5001 + number) for number, sender in enumerate(["h1", "h2"] * 4)]
    assert until(lambda: all(received(sink) > 100_000 for sink, _ in pairs))
    assert first.end() == 0
    stub.close()
    assert not clsact("s1-eth3")
    second = lab.agent(stub.target)
    assert "took over 8 flows from the agent that ended" in second.text
    stub.accept()
    assert stub.add({"in_port": lab.port}, 3072, hard_timeout=30) is None
    assert until(lambda: lab.port_status()["rewritten"] > 400)
    port = lab.port_status()
    assert (port["acks"], port["unknown_scale"], port["handshakes"]) == (port["rewritten"], 0, 0)
    lowered = {flow.key.sport for flow in stub.flows() if flow.rewritten}
    assert lowered == set(range(5001, 5009))
    assert until(lambda: queued("s1-eth3") < 40_000)


def test_the_agent_waits_for_a_bridge_that_is_deleted_and_made_again(own_lab):
    """In two steps, as scripts of people do it."""
    agent = own_lab.agent()
    output("ovs-vsctl", "del-br", "s1")
    agent.wait_for("bridge s1 has been deleted: waiting")
    assert until(lambda: own_lab.status()["ports"] == [])
    assert own_lab.status()["deleted"] and not clsact("s1-eth1")
    output("ovs-vsctl", "add-br", "s1", "--", "set", "bridge", "s1", "datapath_type=netdev")
    output("ovs-vsctl", *(word for n in (1, 2, 3) for word in ("--", "add-port", "s1", f"s1-eth{n}")))
    assert until(lambda: len(own_lab.status()["ports"]) == 3), agent.text
    assert "fq_egress" in filters("s1-eth3") and not own_lab.status()["deleted"]
    assert agent.process.poll() is None and agent.end() == 0


def test_status_for_people_and_programs(lab):
    assert fairq("status", "--bridge", "s1").returncode == 2
    lab.agent()
    assert "s1-eth3" in fairq("status", env={**os.environ, "COLUMNS": "200"}).stdout
    about = json.loads(fairq("status", "--json").stdout)
    assert about["bridge"] == "s1" and len(about["ports"]) == 3


def test_a_port_that_cannot_be_watched_does_not_stop_the_agent(lab, tmp_path):
    """A port that cannot be watched does not stop the others; an agent that fails leaves nothing."""
    config = tmp_path / "small.conf"
    config.write_text("[agent]\nports = 2\n")
    agent = Process(tmp_path / "small.log", FAIRQ, "agent", "--bridge", "s1", "--config-file", str(config))
    try:
        agent.wait_for("ready (2 ports)")
        assert "s1-eth3 is not watched: 2 ports" in agent.text and "[agent] ports" in agent.text
        (entry,) = [each for each in lab.status()["unwatched"] if each["name"] == "s1-eth3"]
        assert "[agent] ports" in entry["reason"]
        assert "s1-eth3: not governed: 2 ports" in fairq("doctor", "--bridge", "s1").stdout
    finally:
        agent.end()
    assert subprocess.run(["tc", "filter", "show", "dev", "s1-eth3", "egress"], check=True).returncode == 0


def test_congestion_and_drops_are_reported_asynchronously(lab, stub):
    agent = lab.agent(stub.target)
    stub.accept()
    stub.send(congestion.set_thresholds(stub.datapath, lab.port, Thresholds(40_000, 20_000, drops=True)))
    _, source = lab.bulk()
    message = stub.wait_for(parser.OFPExperimenter)
    assert (message.experimenter, message.exp_type) == (oxm.EXPERIMENTER_ID, congestion.EXP_TYPE_CONGESTION)
    notice = congestion.decode_notice(bytes(message.data))
    assert (notice.port, notice.state) == (lab.port, Congestion.CNG)
    lost = stub.wait_for(parser.OFPPacketIn)
    assert (lost.cookie, lost.match["in_port"]) == (dropped_packet.COOKIE_DROPPED, lab.port)
    assert (lost.reason, lost.buffer_id, lost.total_len) == (
        ofp.OFPR_ACTION,
        ofp.OFP_NO_BUFFER,
        len(lost.data),
    )
    frame = parse.parse(bytes(lost.data))
    assert frame is not None and frame.tcp.key.dst == lab["r"].IP()
    state = lab.port_status()["congestion"]
    assert (state["cng"], state["nom"], state["drops"]) == (40_000, 20_000, True)
    (segment,) = segment_state.decode_reply(
        bytes(stub.ask(segment_state.request(stub.datapath, [frame.tcp.key.reversed])).body.data)
    )
    assert segment.found and segment.has_timestamps and segment.wscale
    end(source)
    while notice.state is not Congestion.NOM:
        notice = congestion.decode_notice(bytes(stub.wait_for(parser.OFPExperimenter).data))
    assert notice.backlog < 40_000  # when it was sent; there may have been packets since
    status = lab.status()
    reports = status["drop_reports"]
    assert reports["told"] > 0 and reports["available"] and status["congestion_messages"] >= 2
    printed = fairq("status", "--bridge", "s1").stdout
    assert f"port {lab.port}: NOM, CNG from 40000 B" in printed and "dropped packets: " in printed
    stub.close()
    until(lambda: lab.port_status()["congestion"] is None)
    assert agent.end() == 0


# Connects to an address and port, sends a byte, and closes.
VISIT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 10).sendall(b'x')"


def visit(lab, port):
    """A short connection from h1 to the receiver."""
    sink = lab["r"].popen([sys.executable, "-c", SINK, str(port)], stdout=subprocess.PIPE, text=True)
    assert sink.stdout.readline() == "ready\n"
    source = lab["h1"].popen([sys.executable, "-c", VISIT, lab["r"].IP(), str(port)])
    assert source.wait(patient(10)) == sink.wait(patient(10)) == 0


def test_beginnings_and_ends_are_copied_to_a_controller_that_asks(lab, stub):
    """The bridge has no rule for it, and its own controller, if it has one, does not know."""
    lab.agent(stub.target)
    stub.accept()
    barrier = parser.OFPBarrierRequest
    for request in segment_copies.requests(stub.datapath, 60):
        stub.send(request)
    stub.ask(barrier(stub.datapath))
    visit(lab, 5001)
    found = []
    while len(found) < 4:
        copy = segment_copies.decode(stub.wait_for(parser.OFPPacketIn))
        segment = parse.parse(copy.frame).tcp
        shown = (copy.port, segment.syn, segment.ack, segment.fin, segment.key.dport == 5001)
        if shown not in found[-2:]:  # a retransmission is copied again
            found.append(shown)
    assert found == [
        (lab.port, True, False, False, True),
        (1, True, True, False, False),
        (lab.port, False, True, True, True),
        (1, False, True, True, False),
    ]
    assert len(stub.rules()) == 6
    for request in segment_copies.withdrawals(stub.datapath):
        stub.send(request)
    stub.ask(barrier(stub.datapath))
    before = lab.status()["segment_copies"]
    visit(lab, 5002)
    assert stub.rules() == []
    assert lab.status()["segment_copies"] == before
    assert before == {"rules": 0, "sent": before["sent"], "copies_suppressed": 0, "lost": 0, "unread": 0}
