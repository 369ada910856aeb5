"""Real Mininet on a real Open vSwitch: queues, hosts, agents; nothing is left after a test."""

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mininet_topos.qdiscs import PortQdisc
from tests.support.lab import SINK, end, mn, received, until
from tests.support.traces import processes, traces

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parent.parent.parent


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def clean():
    before = traces({"s1"})
    if "bridge s1" in before:
        pytest.fail("bridge s1 is in use on this machine: remove it, or end what uses it")
    yield
    assert until(lambda: traces({"s1"}) <= before, 5), sorted(traces({"s1"}) - before)


@pytest.fixture
def build(clean):
    from mininet.log import setLogLevel
    from mininet.net import Mininet

    from mininet_topos.incast import IncastTopo
    from mininet_topos.switch import FairQSwitch

    setLogLevel("error")
    nets = []

    def make(agent=False, start=True, controller=None, switch_options=None, of_links=None, **options):
        switch = functools.partial(FairQSwitch, agent=agent, **(switch_options or {}))
        topo = IncastTopo(**options)
        for _, _, link in topo.links(withInfo=True):
            if link.get("rate") is not None:
                link |= of_links or {}
        net = Mininet(topo=topo, switch=switch, controller=controller, build=False)
        nets.append(net)
        net.build()
        if start:
            net.start()
        return net

    yield make
    for net in nets:
        net.stop()
        for each in net.controllers:
            each.terminate()  # Mininet closes the shells of remote controllers only when it exits itself


def qdiscs(interface):
    return json.loads(output("tc", "-j", "qdisc", "show", "dev", interface))


def test_the_shallow_port_has_the_rate_and_the_buffer(build):
    build(n=2, rate=80, buffer=60_000)
    kinds = {each["kind"]: each for each in qdiscs("s1-eth3")}
    assert set(kinds) == {"tbf", "bfifo"}
    assert kinds["bfifo"]["options"]["limit"] == 60_000
    assert kinds["tbf"]["options"]["rate"] == 80e6 / 8
    assert [each["kind"] for each in qdiscs("s1-eth1")] == ["noqueue"]
    assert output("ovs-vsctl", "get", "Bridge", "s1", "fail_mode").strip() == "standalone"
    assert "OpenFlow13" in output("ovs-vsctl", "get", "Bridge", "s1", "protocols")


def test_what_a_frame_counts_beside_its_own_bytes_stays(build):
    """Open vSwitch takes the queue away when it configures the port, and it is installed again."""
    build(n=1, rate=50, buffer=30_000, of_links={"overhead": 24})
    (shaper,) = (
        line for line in output("tc", "qdisc", "show", "dev", "s1-eth2").split("qdisc ") if "tbf" in line
    )
    assert "overhead 24" in shaper


@pytest.mark.parametrize(
    ("qdisc", "kinds"),
    [
        (PortQdisc("pfifo limit 20"), ["tbf", "pfifo"]),
        (PortQdisc("tbf rate 8mbit burst 3k limit 9000", shapes=True), ["tbf"]),
        (PortQdisc("tbf rate 8mbit burst 3k limit 9000", fifo=5000), ["tbf", "tbf", "bfifo"]),
    ],
)
def test_another_qdisc_may_stand_for_the_fifo(build, qdisc, kinds):
    """Below the shaper, or in its place; with a FIFO of its own below."""
    build(n=1, rate=50, buffer=30_000, of_links={"qdisc": qdisc})
    found = qdiscs("s1-eth2")
    assert sorted(each["kind"] for each in found) == sorted(kinds)
    assert [each["options"]["limit"] for each in found if each["kind"] == "bfifo"] == [5000] * (
        qdisc.fifo > 0
    )


def test_open_vswitch_and_clsact_leave_the_queue_alone(build):
    build(n=1, rate=50, buffer=30_000)
    output("tc", "qdisc", "add", "dev", "s1-eth2", "clsact")
    before = qdiscs("s1-eth2")
    # Each of these makes Open vSwitch configure all ports again.
    output("ovs-vsctl", "set", "Bridge", "s1", "other_config:hwaddr=02:00:00:00:00:77")
    output("ovs-vsctl", "add-port", "s1", "fqx0", "--", "set", "Interface", "fqx0", "type=internal")
    output("ovs-vsctl", "del-port", "s1", "fqx0")
    assert qdiscs("s1-eth2") == before
    assert {"tbf", "bfifo", "clsact"} == {each["kind"] for each in before}
    ours = ("find", "QoS", "external_ids:fairq-bridge=s1")
    assert output("ovs-vsctl", "--bare", "--columns=type", *ours).split() == ["linux-noop"]


def sent(interface):
    """Bytes that the root qdisc has transmitted."""
    shown = json.loads(output("tc", "-s", "-j", "qdisc", "show", "dev", interface))
    return next(each["bytes"] for each in shown if each["kind"] == "tbf")


# Prints its congestion control, then sends endlessly.
SENDER = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 5999), 10)
print(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode(), flush=True)
peer.settimeout(None)
while True:
    peer.sendall(bytes(1 << 18))
"""

# It opens a connection, and sends 1 MB when it is told to.
IN_STEPS = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 5999), 10)
print("open", flush=True)
sys.stdin.readline()
peer.sendall(bytes(1 << 20))
print("sent", flush=True)
sys.stdin.readline()
"""


def own_tcp():
    """The routes and the settings of TCP of this machine, outside of all hosts."""
    settings = [Path("/proc/sys/net/ipv4", name).read_text() for name in ("tcp_ecn", "tcp_rmem")]
    return output("ip", "-4", "route", "show"), settings


def test_traffic_has_the_rate_of_the_port(build):
    net = build(n=1, rate=40, buffer=30_000)
    output("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "actions=NORMAL")
    with contextlib.ExitStack() as stack:
        sink = net["r"].popen([sys.executable, "-c", SINK, "5999"], stdout=subprocess.PIPE, text=True)
        stack.callback(end, sink)
        assert sink.stdout.readline() == "ready\n"
        source = net["h1"].popen(
            [sys.executable, "-c", SENDER, net["r"].IP()], stdout=subprocess.PIPE, text=True
        )
        stack.callback(end, source)
        assert source.stdout.readline() == "cubic\n"
        assert until(lambda: received(sink) > 100_000)

        def as_fast_as_the_port():
            """The rate during one second is that of the port; faster only by the burst of tbf."""
            began = time.monotonic()
            before, inner = sent("s1-eth2"), time.monotonic()
            time.sleep(1)
            least = 40e6 / 8 * (time.monotonic() - inner)
            more = sent("s1-eth2") - before
            assert more < 40e6 / 8 * (time.monotonic() - began) + 2 * 3080
            return more > 0.95 * least

        assert until(as_fast_as_the_port, step=0)


def test_hosts_have_the_settings_that_measurements_need(build):
    net = build(n=1, cc="reno")
    for name in ("h1", "r"):
        features = net[name].cmd(f"ethtool -k {name}-eth0")
        for feature in ("tcp-segmentation-offload", "generic-segmentation-offload",
                        "generic-receive-offload", "tx-checksumming"):  # fmt: skip
            assert f"\n{feature}: off" in features
        assert net[name].cmd("cat /proc/sys/net/ipv4/tcp_congestion_control").strip() == "reno"
        assert net[name].cmd("cat /proc/sys/net/ipv4/tcp_no_metrics_save").strip() == "1"


def test_ipv4_and_ipv6_are_forwarded(build):
    net = build(n=1)
    output("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "actions=NORMAL")
    address = net["r"].cmd("ip -6 -o addr show dev r-eth0 scope link").split()[3].split("/")[0]
    assert " 0% packet loss" in net["h1"].cmd(f"ping -c1 -W20 {net['r'].IP()}")
    assert " 0% packet loss" in net["h1"].cmd(f"ping -c1 -W20 {address}%h1-eth0")


def test_an_unknown_congestion_control_is_refused(build):
    from mininet_topos.hosts import HostError

    with pytest.raises(HostError, match="does not offer the congestion control 'veno'"):
        build(n=1, cc="veno")


@pytest.mark.parametrize("options", [{"rate": 0}, {"buffer": 100}])
def test_a_wrong_queue_is_refused(build, options):
    with pytest.raises(ValueError, match="must"):
        build(n=1, **options)


def test_a_foreign_bridge_is_not_changed(clean):
    from mininet_topos.switch import FairQSwitch, SwitchError

    output("ovs-vsctl", "add-br", "s1", "--", "set", "Bridge", "s1", "datapath_type=netdev")
    try:
        switch = FairQSwitch("s1", agent=False, inNamespace=False)
        try:
            with pytest.raises(SwitchError, match=r"bridge s1 exists already: .*ovs-vsctl del-br s1"):
                switch.start([])
        finally:
            switch.stop()
            switch.terminate()
        assert "s1" in output("ovs-vsctl", "list-br").split()
    finally:
        output("ovs-vsctl", "del-br", "s1")


def test_a_bridge_of_a_killed_run_is_replaced(clean):
    from mininet_topos.commands import process_mark
    from mininet_topos.switch import refuse_foreign_bridge

    with subprocess.Popen(["sleep", "10"]) as maker:
        mark = process_mark(maker.pid)
        maker.kill()
    output("ovs-vsctl", "add-br", "s1", "--", "set", "Bridge", "s1", "datapath_type=netdev",
           f"external_ids:fairq-owner={mark}",
           "--", "create", "QoS", "type=linux-noop", "external_ids:fairq-bridge=s1")  # fmt: skip
    # A link to another switch, which does not end with a host; one port's interface has ended already.
    output("ip", "link", "add", "s1-eth1", "type", "veth", "peer", "name", "s9-eth1")
    output("ovs-vsctl", "add-port", "s1", "s1-eth1")
    subprocess.run(["ovs-vsctl", "add-port", "s1", "s1-eth2"], check=False)
    refuse_foreign_bridge("s1")
    assert "s1" not in output("ovs-vsctl", "list-br").split()
    assert not {"s1-eth1", "s9-eth1"} & set(os.listdir("/sys/class/net"))


# The agent is a separate program; here scripts replace it.


def fake_agent(tmp_path, monkeypatch, body):
    script = tmp_path / "fairq"
    script.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\n{body}\n')
    script.chmod(0o755)
    monkeypatch.setenv("FAIRQ", str(script))


def controller():
    from mininet.node import RemoteController

    class Remote(RemoteController):
        def checkListening(self):
            pass

    return Remote("c0", ip="127.0.0.1", port=6999)


def test_the_agent_lives_as_long_as_the_switch(build, tmp_path, monkeypatch):
    ready = 'echo "fairq agent: bridge s1 ready"\nexec sleep 1000'
    fake_agent(tmp_path, monkeypatch, ready)
    net = build(
        n=1, agent=True, controller=controller(),
        switch_options={"agentArgs": "--map-size 7", "agentLog": str(tmp_path / "logs")},
    )  # fmt: skip
    printed = (tmp_path / "arguments").read_text().split()
    assert printed == ["agent", "--bridge", "s1", "--controller", "tcp:127.0.0.1:6999", "--map-size", "7"]
    switch = net["s1"]
    assert switch.agentRunning()
    pid = switch._agent_process.pid
    switch.stop()
    assert not Path(f"/proc/{pid}").exists()
    assert "ready" in (tmp_path / "logs" / "agent-s1.log").read_text()


def test_an_agent_that_ends_is_reported_with_its_output(build, tmp_path, monkeypatch):
    fake_agent(tmp_path, monkeypatch, 'echo "no BTF on this kernel" >&2\nexit 2')
    from mininet_topos.switch import SwitchError

    with pytest.raises(SwitchError, match="agent of s1 ended with exit code 2: no BTF on this kernel"):
        build(n=1, agent=True)


def test_an_agent_that_does_not_become_ready_is_ended(build, tmp_path, monkeypatch):
    import mininet_topos.switch

    fake_agent(tmp_path, monkeypatch, "echo loading\nexec sleep 1000")
    monkeypatch.setattr(mininet_topos.switch, "READY_SECONDS", 0.5)
    with pytest.raises(mininet_topos.switch.SwitchError, match=r"not ready after 0\.5 s: loading"):
        build(n=1, agent=True)


def test_a_missing_agent_is_an_error_with_a_remedy(build, monkeypatch):
    monkeypatch.setenv("FAIRQ", "/nonexistent/fairq")
    from mininet_topos.switch import SwitchError

    with pytest.raises(SwitchError, match="cannot start /nonexistent/fairq"):
        build(n=1, agent=True)


def test_mn_takes_the_file_by_its_path(clean, tmp_path):
    script = tmp_path / "fairq"
    script.write_text('#!/bin/sh\necho "fairq agent: bridge s1 ready"\nexec sleep 1000\n')
    script.chmod(0o755)
    done = mn(
        "--custom", "mininet_topos/incast.py", "--topo", "incast,3,rate=60", "--switch", "fairq",
        "--controller", "remote,port=6999", "--test", "none",
        timeout=60, env={**os.environ, "FAIRQ": str(script)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "h1 h2 h3 r" in done.stdout + done.stderr
    assert "Caught exception" not in done.stderr


@pytest.fixture
def mn_hosts(clean):
    """Mininet's own hosts h1 and h2 behind a switch of the userspace datapath that forwards by itself."""
    from mininet.net import Mininet
    from mininet.topo import SingleSwitchTopo

    from mininet_topos.switch import FairQSwitch

    net = Mininet(
        topo=SingleSwitchTopo(2),
        switch=functools.partial(FairQSwitch, way="windows", agent=False, datapath="user"),
        controller=None,
    )
    net.start()
    yield net
    net.stop()


def test_tcp_between_mininets_own_hosts_passes_the_userspace_datapath(mn_hosts):
    late = mn_hosts.addHost("h3")
    mn_hosts["s1"].attach(mn_hosts.addLink(late, "s1").intf2)
    late.setIP("10.0.0.3/8")
    for sender, receiver in (("h1", "h2"), ("h2", "h3"), ("h3", "h1")):
        with contextlib.ExitStack() as stack:
            there = mn_hosts[receiver]
            sink = there.popen([sys.executable, "-c", SINK, "5999"], stdout=subprocess.PIPE, text=True)
            stack.callback(end, sink)
            assert sink.stdout.readline() == "ready\n"
            source = mn_hosts[sender].popen([sys.executable, "-c", SENDER, there.IP()])
            stack.callback(end, source)
            assert until(lambda sink=sink: received(sink) > 1 << 20), (sender, receiver)


# Hosts of the papers


def test_a_host_of_the_period_acknowledges_at_once_and_probes_no_tail(build):
    net = build(n=2)
    host, other = net["h1"], net["h2"]
    before = other.cmd("ip -4 route show"), other.cmd("cat /proc/sys/net/ipv4/tcp_early_retrans").strip()
    host.setQuickAcks(True)
    host.setTailLossProbe(False)
    host.setRtoMin(4)
    assert "quickack 1" in host.cmd("ip -4 route show")
    assert host.cmd("cat /proc/sys/net/ipv4/tcp_early_retrans").strip() == "0"
    # In its own namespace only.
    found = other.cmd("ip -4 route show"), other.cmd("cat /proc/sys/net/ipv4/tcp_early_retrans").strip()
    assert found == before and before[1] != "0"
    host.setQuickAcks(False)
    assert "quickack" not in host.cmd("ip -4 route show")


def test_hosts_begin_with_a_small_window_announce_little_and_ask_for_ecn(build):
    net = build(n=2)
    output("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "actions=NORMAL")
    here, there, plain = net["h1"], net["h2"], net["r"]
    machine = own_tcp()
    for host in (here, there):
        host.setInitialWindow(2)
        host.setReceiveBuffer(6000)
        host.setEcn(True)
    windows = {}
    with contextlib.ExitStack() as stack:
        for receiver in (there, plain):
            sink = receiver.popen([sys.executable, "-c", SINK, "5999"], stdout=subprocess.PIPE, text=True)
            stack.callback(end, sink)
            assert sink.stdout.readline() == "ready\n"
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            source = here.popen([sys.executable, "-c", IN_STEPS, receiver.IP()], **pipes)
            stack.callback(end, source)
            assert source.stdout.readline() == "open\n"
            opened = here.cmd(f"ss -Htino dst {receiver.IP()}")
            assert re.search(r"\becn\b.* cwnd:2 ", opened), opened
            print("go", file=source.stdin, flush=True)
            assert source.stdout.readline() == "sent\n"
            sent = here.cmd(f"ss -Htino dst {receiver.IP()}")
            windows[receiver] = int(re.findall(r" snd_wnd:(\d+)", sent)[-1])
    # It stays small while much is sent, and a host with the kernel's buffers announces more.
    assert windows[there] < 3 * 1448 < windows[plain]
    # All of it is in the hosts' network namespaces, and goes with them.
    assert own_tcp() == machine


def test_a_host_with_a_rate_sends_no_faster(build):
    net = build(n=1, rate=80, buffer=60_000)
    sender, receiver = net["h1"], net["r"]
    sender.setRate(10)
    kinds = {each["kind"]: each for each in json.loads(sender.cmd("tc -j qdisc show dev h1-eth0"))}
    assert set(kinds) == {"tbf", "pfifo"} and kinds["tbf"]["options"]["rate"] == 10e6 / 8
    assert [each["kind"] for each in json.loads(receiver.cmd("tc -j qdisc show dev r-eth0"))] == ["noqueue"]
    with contextlib.ExitStack() as stack:
        sink = receiver.popen([sys.executable, "-c", SINK, "5999"], stdout=subprocess.PIPE, text=True)
        stack.callback(end, sink)
        assert sink.stdout.readline() == "ready\n"
        began = time.monotonic()
        stack.callback(end, sender.popen([sys.executable, "-c", SENDER, receiver.IP()]))
        assert until(lambda: received(sink) > 2_000_000)
        count = received(sink)
    assert count * 8 < 10e6 * (time.monotonic() - began)


# fairq run, without controller and agent


RUN = [
    sys.executable, "-c",
    "import sys\nfrom pathlib import Path\nfrom fairq_ryu.experiments import runner\n"
    "sys.exit(runner.main('incast', ['bare'], Path(sys.argv[1]),"
    " dict(each.split('=') for each in sys.argv[2:])))",
]  # fmt: skip
SMALL = [
    "senders=3",
    "elephants=2",
    "rounds=2",
    "round_interval_s=0.5",
    "warmup_s=0.5",
    "elephants_only_s=0.5",
]


def test_a_small_run_gives_every_figure_that_a_bare_switch_has(clean, tmp_path):
    done = subprocess.run(
        [*RUN, str(tmp_path), *SMALL], cwd=ROOT, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    whole = json.loads((tmp_path / "result.json").read_text())
    (bare,) = whole["policies"]
    assert bare["failed"] is None
    assert bare["mice"]["count"] == 3 * 2 * 2
    assert bare["mice"]["unfinished"] == 0
    assert bare["mice"]["rto_source"] in ("tcp_info", "namespace")
    assert len(bare["elephants"]["goodput_mbit"]) == 2
    assert bare["elephants"]["goodput_sum_mbit"] > 0
    assert bare["queue"]["rounds"] is None
    assert bare["queue"]["qdisc_drops"] >= bare["mice"]["segments_dropped"]
    assert whole["metadata"]["kernel"] == os.uname().release
    assert "elephants goodput [Mbit/s]" in done.stdout
    assert "round 2 of 2" in done.stderr


@pytest.mark.parametrize(
    ("number", "delay"),
    [(signal.SIGTERM, 0.8), (signal.SIGINT, 2.0), (signal.SIGTERM, 2.0), (signal.SIGINT, 4.0)],
)
def test_an_interrupted_run_leaves_nothing(clean, tmp_path, number, delay):
    started = subprocess.Popen(
        [*RUN, str(tmp_path), *SMALL, "warmup_s=60"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(delay)
    os.killpg(started.pid, number)  # as a terminal does; twice, as impatient users do
    time.sleep(0.1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, number)
    _none, printed = started.communicate(timeout=30)
    # On a slow machine the signal finds an interpreter that still loads the program, and is ended by it.
    whole = started.returncode == 130 and "Traceback" not in printed
    assert whole or started.returncode == -number, printed
    assert not (tmp_path / "result.json").exists()
    assert until(lambda: not processes(), 5), processes()


def test_a_run_refuses_a_machine_that_is_not_ready(clean, tmp_path):
    from fairq_ryu.errors import UserError
    from fairq_ryu.experiments import runner

    with pytest.raises(UserError, match="no policy 'magic'"):
        runner.main("incast", ["magic"], tmp_path)
    with pytest.raises(UserError, match="named twice"):
        runner.main("incast", ["bare", "bare"], tmp_path)
    with pytest.raises(UserError, match="congestion control 'veno'"):
        runner.main("incast", ["bare"], tmp_path, {"cc": "veno"})
    with pytest.raises(UserError, match="cannot write to /proc/fairq"):
        runner.main("incast", ["bare"], Path("/proc/fairq"))
    with pytest.raises(UserError, match=r"cannot read .*none: No such file"):
        runner.main("incast", ["bare"], tmp_path, config_file=tmp_path / "none")
    output("ovs-vsctl", "add-br", "s1", "--", "set", "Bridge", "s1", "datapath_type=netdev")
    try:
        with pytest.raises(UserError, match="bridge s1 exists already"):
            runner.main("incast", ["bare"], tmp_path)
    finally:
        output("ovs-vsctl", "del-br", "s1")
    assert list(tmp_path.iterdir()) == []
