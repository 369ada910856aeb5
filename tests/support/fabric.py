"""A network of several switches for tests: agents, a controller, sockets in hosts; everything is removed
afterwards.
"""

import contextlib
import ctypes
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from fairq_ryu.experiments.free_ports import free_port
from mininet_topos.switch import remove_leftover
from tests.support.capture import Capture
from tests.support.lab import BIN, Process, agent_status, end, output, until
from tests.support.traces import traces

RYU_MANAGER = BIN / "ryu-manager"
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def network(directory, topo, agent=""):
    """A :class:`Fabric`; waits while other tests on this machine use its names. ``agent``: the configuration
    of the agents; None: there are none.
    """
    names = set(topo.switches())
    for name in names:
        remove_leftover(name)
    # A killed agent leaves its run files, and the next one takes them over.
    used = lambda: {each for each in traces(names) if each.startswith(("bridge", "interface"))}  # noqa: E731
    assert until(lambda: not used(), 120, 1), f"in use on this machine: {used()}"
    before = traces(names)
    made = Fabric(directory, topo, agent)
    try:
        made.start()
        yield made
    finally:
        made.close()
    left = lambda: {e for e in traces(names) if e not in before or e.startswith("run file")}  # noqa: E731
    assert until(lambda: not left()), left()


class Fabric:
    """Switches with agents, and hosts, in Mininet. Controllers may be restarted: they use the same port."""

    def __init__(self, directory, topo, agent):
        from mininet.log import setLogLevel
        from mininet.net import Mininet

        from mininet_topos.switch import FairQSwitch

        setLogLevel("error")
        self.directory = Path(directory)
        self.agents = agent is not None
        config = self.directory / "agent.conf"
        config.write_text(agent or "")
        self.port, self.rest_port = free_port(), free_port()
        self.controller = None
        self._managers = 0
        self._captures = 0
        self.stack = contextlib.ExitStack()
        self.net = Mininet(
            topo=topo,
            switch=functools.partial(
                FairQSwitch,
                agent=self.agents,
                agentArgs=["--config-file", str(config), "--controller", f"tcp:127.0.0.1:{self.port}"],
            ),
            controller=None,
            autoSetMacs=True,
            build=False,
        )
        self.links = []

    def start(self):
        self.net.build()
        self.net.start()
        self.switches = [switch.name for switch in self.net.switches]
        self.hosts = [host.name for host in self.net.hosts]
        ends = [(link.intf1, link.intf2) for link in self.net.links]
        self.links = [
            (one.name, other.name)
            for one, other in ends
            if one.node.name in self.switches and other.node.name in self.switches
        ]
        self._switch_of = {
            host.node.name: switch.node.name
            for pair in ends
            for host, switch in (pair, pair[::-1])
            if host.node.name in self.hosts
        }
        self.dpids = {switch.name: int(switch.dpid, 16) for switch in self.net.switches}

    def close(self):
        try:
            self.stack.close()
            self.end_controller()
        finally:
            self.net.stop()

    def __getitem__(self, name):
        return self.net[name]

    def address(self, host):
        return self.net[host].IP()

    def switch_of(self, host):
        return self._switch_of[host]

    def pairs(self, across=True):
        """All ordered pairs of hosts; with ``across``, of different switches."""
        return [
            (one, other)
            for one in self.hosts
            for other in self.hosts
            if one != other and not (across and self.switch_of(one) == self.switch_of(other))
        ]

    # The controller

    def start_controller(self, config="", app="fairq", wait=True, connect=True, program=RYU_MANAGER):
        """Start ryu-manager; with ``wait``, until it knows every link and the role of every port. With
        ``connect``, the bridges are pointed at it, too, and not only their agents.
        """
        self._managers += 1
        path = self.directory / f"fairq-{self._managers}.conf"
        path.write_text(config)
        self.controller = Process(
            self.directory / f"ryu-{self._managers}.log",
            *(str(program), "--config-file", str(path)),
            *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(self.port)),
            *("--wsapi-port", str(self.rest_port), f"fairq_ryu.apps.{app}"),
        )
        try:
            assert until(self._listening, 60), self.controller_says()
            if connect:
                # Set again, because a bridge that has failed to connect waits for up to eight seconds.
                self._bridges("set-controller", f"tcp:127.0.0.1:{self.port}")
            if wait:
                self.wait_until_settled()
        except BaseException:
            self.end_controller()  # it would disturb the next test
            raise
        return self.controller

    def _listening(self):
        with contextlib.suppress(OSError):
            self.rest("links")
            return True
        return False

    def _bridges(self, command, *words):
        output("ovs-vsctl", *(word for name in self.switches for word in ("--", command, name, *words)))

    def wait_until_settled(self, seconds=60):
        assert until(self.settled, seconds, 0.1), f"{self.controller_says()}\n{self.rest('links')}"

    def controller_says(self):
        """The controller's log without the lines about REST requests."""
        lines = self.controller.text.splitlines()
        return "\n".join(line for line in lines if "GET /v1" not in line and "accepted (" not in line)

    def settled(self):
        try:
            switches = self.rest("switches")
            return (
                len(switches) == len(self.switches)
                and all(each["connected"] and (each["agent"] or not self.agents) for each in switches)
                and len(self.rest("links")) == len(self.links)
                and all(port["role"] != "undecided" for port in self.rest("ports"))
            )
        except OSError:
            return False

    def kill_controller(self):
        """The bridges keep their rules and try to reconnect."""
        self.controller.end(signal.SIGKILL)

    def moves(self):
        """The moved connections of the controller's log: (flow, new path) each."""
        found = re.findall(r"flow (\S+):(\d+) -> (\S+):(\d+): now by (.*), was", self.controller.text)
        return [((a, int(b), c, int(d)), path) for a, b, c, d, path in found]

    def end_controller(self):
        """End it, and remove the controller of the bridges."""
        if self.controller is not None:
            self.controller.end()
            self.controller = None
            self._bridges("del-controller")

    def rest(self, what, **query):
        words = "&".join(f"{name}={value}" for name, value in query.items())
        url = f"http://127.0.0.1:{self.rest_port}/v1/{what}?{words}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            found = json.load(answer)
        assert found.get("total", 0) <= found.get("limit", 0), "ask for more"
        return found[what]

    # Switches

    def agent(self, switch):
        return agent_status(switch)

    def agent_port(self, switch, port):
        return next(each for each in self.agent(switch)["ports"] if each["ofport"] == port)

    def rules(self, switch, table):
        shown = output("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", switch, f"table={table}")
        return [line.strip() for line in shown.splitlines() if "table=" in line]

    def pinned(self):
        return [rule for switch in self.switches for rule in self.rules(switch, 2) if "tcp" in rule]

    # Hosts

    @contextlib.contextmanager
    def inside(self, host):
        """This thread is in the host's network namespace; sockets made now stay there."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{self.net[host].pid}/ns/net", os.O_RDONLY)
        try:
            _enter(there)
            yield
        finally:
            _enter(before)
            os.close(there)
            os.close(before)

    def socket(self, host, kind=socket.SOCK_STREAM, protocol=0):
        with self.inside(host):
            return socket.socket(socket.AF_INET, kind, protocol)

    def run(self, host, code, *words, **options):
        """A Python program in a host, ended with the test at the latest."""
        process = self.net[host].popen([sys.executable, "-c", code, *map(str, words)], **options)
        self.stack.callback(end, process)
        return process

    def forget_neighbours(self):
        for host in self.hosts:
            self.net[host].cmd("ip neigh flush all")

    def capture(self, expression="", links=None):
        """Capture on these links, by default on all between switches."""
        self._captures += 1
        path = self.directory / f"links-{self._captures}.pcap"
        return Capture(path, links or self.links, expression)


def _enter(namespace):
    if _LIBC.setns(namespace, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")


def carrier(interface, up):
    subprocess.run(["ip", "link", "set", interface, "up" if up else "down"], check=True)
