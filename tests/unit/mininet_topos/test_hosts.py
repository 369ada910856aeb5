"""The machine's list of allowed congestion controls is widened for a moment only."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mininet_topos import hosts


@pytest.fixture
def allowed(tmp_path, monkeypatch):
    path = tmp_path / "tcp_allowed_congestion_control"
    path.write_text("reno bbr\n")
    monkeypatch.setattr(hosts, "_ALLOWED", path)
    return path


def test_a_congestion_control_is_allowed_for_a_moment(allowed):
    with hosts._allowed("cubic"):
        assert allowed.read_text().split() == ["reno", "bbr", "cubic"]
    assert allowed.read_text().split() == ["reno", "bbr"]


def test_the_list_is_restored_when_the_host_refuses(allowed):
    with pytest.raises(hosts.HostError), hosts._allowed("cubic"):
        raise hosts.HostError
    assert allowed.read_text().split() == ["reno", "bbr"]


def test_an_allowed_congestion_control_changes_nothing(allowed):
    with hosts._allowed("bbr"):
        assert allowed.read_text() == "reno bbr\n"


def test_a_machine_without_such_a_list_is_not_changed(monkeypatch, tmp_path):
    monkeypatch.setattr(hosts, "_ALLOWED", tmp_path / "none")
    with hosts._allowed("cubic"):
        pass
    assert not (tmp_path / "none").exists()


def test_a_namespace_that_may_not_change_the_list_leaves_the_answer_to_the_kernel(allowed, monkeypatch):
    def refuse(self, text):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "write_text", refuse)
    with hosts._allowed("cubic"):
        pass
    assert allowed.read_text() == "reno bbr\n"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("vegas", "`modprobe tcp_vegas`, or choose one of reno, cubic"),
        ("fairq_dctcp", "did you mean dctcp?"),
        ("cubik", "did you mean cubic?"),
        ("lemonade", "choose one of reno, cubic"),
    ],
)
def test_only_a_control_of_linux_may_be_a_module(name, remedy):
    class Kernel:
        name = "h1"

        def cmd(self, _text):
            return "reno cubic\n"

    with pytest.raises(hosts.HostError) as caught:
        hosts.FairQHost.setCongestionControl(Kernel(), name)
    assert str(caught.value).endswith(f"does not offer the congestion control {name!r}: {remedy}")


class Limits:
    """A host whose shell knows two files only."""

    name = "h1"

    def __init__(self, refuses=False):
        self.files = {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 4194304"}
        self.refuses = refuses

    def cmd(self, text):
        words, _, target = text.partition(" >")
        if words.startswith("cat "):
            return self.files[words.rsplit("/", 1)[1]].replace(" ", "\t") + "\n"
        if self.refuses:
            return "sh: write error: Invalid argument\n"
        self.files[target.rsplit("/", 1)[1]] = words.removeprefix("echo ")
        return ""


def test_only_limits_of_buffers_that_are_lower_are_raised():
    host = Limits()
    hosts.FairQHost.setBuffers(host, 4_194_304)
    assert host.files == Limits().files
    hosts.FairQHost.setBuffers(host, 6_000_000)
    assert host.files == {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 6000000"}
    with pytest.raises(hosts.HostError, match="h1: cannot set tcp_wmem: sh: write error"):
        hosts.FairQHost.setBuffers(Limits(refuses=True), 6_000_000)


class Ends:
    """A host of three interfaces, two of them on switches, and the commands that its shell gets."""

    name = "h1"

    def __init__(self, *datapaths, answer=""):
        self.commands, self.answer = [], answer
        switches = [SimpleNamespace(datapath=each) for each in datapaths]
        links = [
            SimpleNamespace(intf1=SimpleNamespace(node=self), intf2=SimpleNamespace(node=switch))
            for switch in switches
        ]
        self.interfaces = [SimpleNamespace(name="lo", link=None)]
        self.interfaces += [SimpleNamespace(name=f"h1-eth{n}", link=link) for n, link in enumerate(links)]

    def intfList(self):
        return self.interfaces

    def cmd(self, text):
        self.commands.append(text)
        return self.answer


@pytest.mark.parametrize(
    ("datapaths", "off"), [((), False), (("kernel",), False), (("user",), True), (("kernel", "user"), True)]
)
def test_only_the_userspace_datapath_needs_finished_checksums(datapaths, off):
    assert hosts.FairQHost._is_at_userspace(Ends(*datapaths)) == off


def test_offloads_are_switched_off_at_every_interface():
    host = Ends("user", "user")
    hosts.FairQHost.setOffloads(host, False)
    wanted = "ethtool -K h1-eth{} tso off gso off gro off tx off >/dev/null || echo h1-eth{}"
    assert host.commands == [f"{wanted.format(0, 0)}; {wanted.format(1, 1)}"]
    with pytest.raises(hosts.HostError, match="h1: cannot switch offloads off: h1-eth1"):
        hosts.FairQHost.setOffloads(Ends("user", answer="h1-eth1\r\n"), False)


def test_packets_leave_a_host_at_every_interface(monkeypatch):
    host, said = Ends("kernel", "kernel"), []
    monkeypatch.setattr(hosts, "warn", said.append)
    hosts.FairQHost.setWire(host, True)
    wanted = "tc qdisc replace dev h1-eth{} root netem delay 1us limit 100000"
    assert host.commands == [f"{wanted.format(0)}; {wanted.format(1)}"] and said == []
    hosts.FairQHost.setWire(Ends("kernel", answer="Error: Specified qdisc kind is unknown.\r\n"), True)
    assert len(said) == 1 and "h1: " in said[0] and "Specified qdisc kind is unknown." in said[0]


class Routed(hosts.FairQHost):
    """A host on a kernel without the setting of the whole namespace; it records its commands."""

    def __init__(self):
        self.name, self.commands = "h1", []
        self.route = "10.0.0.0/8 dev h1-eth0 scope link"

    def cmd(self, command):
        self.commands.append(command)
        return f"{self.route}\n" if command == "ip -4 route show" else ""


def test_quick_acks_are_set_in_every_route_once():
    host = Routed()
    host.route = "10.0.0.0/8 dev h1-eth0 scope link quickack 1 "
    host.setQuickAcks(True)
    host.setQuickAcks(False)
    wanted = "ip route replace 10.0.0.0/8 dev h1-eth0 scope link"
    assert [each for each in host.commands if "replace" in each] == [f"{wanted} quickack 1", wanted]


def test_initial_windows_are_set_in_every_route_and_keep_what_it_has():
    host = Routed()
    host.route = "10.0.0.0/8 dev h1-eth0 scope link initcwnd 4 quickack 1"
    host.setInitialWindow(0)
    assert host.commands == []
    host.setInitialWindow(2)
    assert host.commands[-1] == "ip route replace 10.0.0.0/8 dev h1-eth0 scope link quickack 1 initcwnd 2"


def test_a_route_that_the_kernel_refuses_is_said():
    host = Routed()
    host.cmd = lambda command: "Error: no.\n" if "replace" in command else f"{host.route}\n"
    with pytest.raises(hosts.HostError, match="h1: cannot set the initial congestion window: Error: no"):
        host.setInitialWindow(2)


class Cards(Ends):
    """It knows the MTU of its interfaces."""

    _is_at_userspace = hosts.FairQHost._is_at_userspace

    def cmd(self, text):
        link = "2: h1-eth0@if3: <UP> mtu 1500 qdisc noqueue\n"
        return link if text.startswith("ip ") else super().cmd(text)


@pytest.mark.parametrize(
    ("datapath", "queue"), [("user", "pfifo limit 1000"), ("kernel", "netem delay 1us limit 100000")]
)
def test_packets_wait_in_a_host_that_has_a_rate(datapath, queue):
    host = Cards(datapath, datapath)
    hosts.FairQHost.setRate(host, 0)
    assert host.commands == []
    hosts.FairQHost.setRate(host, 25)
    shaper = "tbf rate 25000000bit burst 3080 peakrate 100000000000bit mtu 1540 limit 1500000"
    assert host.commands == [
        f"tc qdisc replace dev {name} root handle 1: {shaper} && "
        f"tc qdisc replace dev {name} parent 1:1 handle 10: {queue}"
        for name in ("h1-eth0", "h1-eth1")
    ]
    with pytest.raises(hosts.HostError, match="h1: cannot send at 25 Mbit/s: Error: Unknown qdisc"):
        hosts.FairQHost.setRate(Cards(datapath, answer="Error: Unknown qdisc\n"), 25)


@pytest.mark.parametrize(
    ("wanted", "set_to"), [(5, "5ms"), (247.2, "248ms"), (1, "1ms"), (60_000, "60000ms")]
)
def test_before_linux_6_11_timeouts_are_whole_milliseconds_of_routes(monkeypatch, wanted, set_to):
    monkeypatch.setattr(hosts.os.path, "exists", lambda _path: False)
    host = Routed()
    host.setRtoMin(wanted)
    assert host.commands[1:] == [f"ip route replace 10.0.0.0/8 dev h1-eth0 scope link rto_min {set_to}"]


def test_before_linux_6_11_less_than_a_millisecond_is_refused(monkeypatch):
    monkeypatch.setattr(hosts.os.path, "exists", lambda _path: False)
    host = Routed()
    with pytest.raises(hosts.HostError, match=r"timeout of 0\.5 ms: set 1 or more"):
        host.setRtoMin(0.5)
    host.setRtoMin(0)
    assert host.commands == []
