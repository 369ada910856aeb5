"""A bridge, hosts, an agent and a controller for one test, all removed after it."""

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from fairq_ryu.agent import status
from fairq_ryu.experiments.free_ports import free_port
from mininet_topos.patience import patient

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(sys.executable).parent
FAIRQ = str(BIN / "fairq")
# Controllers of tests accept changes with this token, which every program started by a test gets.
TOKEN = "0123456789abcdef-of-tests"
ENVIRONMENT = {**os.environ, "FAIRQ_TOKEN": TOKEN}


def output(*argv):
    """What a command prints; :class:`AssertionError` with what it says if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr or done.stdout}"
    return done.stdout


def fairq(*arguments, timeout=60, **options):
    """Run the command; returns the finished process."""
    options.setdefault("env", ENVIRONMENT)
    return subprocess.run(
        [FAIRQ, *arguments], capture_output=True, text=True, check=False, timeout=patient(timeout), **options
    )


def mn(*arguments, **options):
    """`mn` in the project's directory, to its end. When it fails it ends hosts of Mininet, controllers and
    more, by their names, also those of tests that run meanwhile: so it sees its own processes only.
    """
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "mn", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)


def until(condition, seconds=30.0, step=0.05):
    """Wait for a condition; its last value. The limit is for what never comes: a busy machine may be late."""
    deadline = time.monotonic() + patient(seconds)
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(step)
    return value


def near_target(queue, target, span=1.0, seconds=60.0):
    """Wait until the mean of a queue over ``span`` seconds is between a third and twice ``target`` bytes. On
    a busy machine there are spans without data. ``queue()``: its ``byte_ns`` and ``clock_ns``.
    """
    deadline = time.monotonic() + patient(seconds)
    while time.monotonic() < deadline:
        first = queue()
        time.sleep(span)
        last = queue()
        mean = (last["byte_ns"] - first["byte_ns"]) / (last["clock_ns"] - first["clock_ns"])
        if target / 3 < mean < target * 2:
            return True
    return False


def is_open(port):
    """Whether a program listens on this TCP port of the machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def agent_status(bridge):
    """The status of a bridge's agent, as `fairq status` reads it, however busy the machine is."""
    return status.ask(bridge, patient(20))


class Process:
    """A program of the project with its output in a file, ended by its process id."""

    def __init__(self, log, *argv, env=ENVIRONMENT):
        self.log = log
        with open(log, "w") as handle:
            self.process = subprocess.Popen(argv, stdout=handle, stderr=subprocess.STDOUT, cwd=ROOT, env=env)

    @property
    def text(self):
        return Path(self.log).read_text()

    def wait_for(self, words, seconds=60):
        assert until(lambda: words in self.text or self.process.poll() is not None, seconds), self.text
        assert words in self.text, self.text

    def end(self, number=signal.SIGTERM, seconds=60):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(patient(seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


class Lab:
    """One switch ``s1`` with ``senders`` hosts h1.. and the receiver r behind the shallow port."""

    def __init__(self, tmp_path, senders=2, rate=50, buffer=60000, forward=True):
        from mininet.log import setLogLevel
        from mininet.net import Mininet

        from mininet_topos.incast import IncastTopo
        from mininet_topos.switch import FairQSwitch

        setLogLevel("error")
        self.tmp_path = tmp_path
        self.programs = []
        self.stack = contextlib.ExitStack()
        self.net = Mininet(
            topo=IncastTopo(n=senders, rate=rate, buffer=buffer),
            switch=functools.partial(FairQSwitch, agent=False),
            controller=None,
            autoSetMacs=True,
        )
        self.net.start()
        self.senders = senders
        self.port = senders + 1  # of the receiver
        if forward:
            self.forward()

    @staticmethod
    def forward():
        """The bridge forwards without a controller."""
        output("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "actions=NORMAL")

    def __getitem__(self, name):
        return self.net[name]

    def run(self, name, *argv):
        program = Process(self.tmp_path / f"{name}-{len(self.programs)}.log", *argv)
        self.programs.append(program)
        return program

    def agent(self, *targets, wait=True):
        """The agent; with ``wait``, it is ready."""
        arguments = [word for target in targets for word in ("--controller", target)]
        agent = self.run("agent", FAIRQ, "agent", "--bridge", "s1", *arguments)
        if wait:
            agent.wait_for("ready")
        return agent

    def govern(self, app="fairq", config=""):
        """The bridge is under a controller, ``manager``, with its agent, ``agent_process``: both are
        connected, and the controller knows which ports lead to hosts.
        """
        output("ovs-ofctl", "-O", "OpenFlow13", "del-flows", "s1")
        port = free_port()
        # Both load for a second or two; side by side if a processor is idle.
        self.agent_process = self.agent(f"tcp:127.0.0.1:{port}", wait=False)
        self.manager = self.controller(app, config, port)
        self.agent_process.wait_for("ready")
        self.manager.wait_for("agent of bridge 0000000000000001: connected")
        self.manager.wait_for("bridge 0000000000000001: connected, way")
        assert until(self.has_settled)

    def controller(self, app="fairq", config="", port=None, connect=True):
        """ryu-manager with one of our applications; with ``connect``, s1 is pointed at it when it listens."""
        port, rest = port or free_port(), free_port()
        arguments = [
            "--ofp-listen-host",
            "127.0.0.1",
            "--ofp-tcp-listen-port",
            str(port),
            "--wsapi-host",
            "127.0.0.1",
            "--wsapi-port",
            str(rest),
        ]
        path = self.tmp_path / "fairq.conf"
        path.write_text(config)
        arguments += ["--config-file", str(path)]
        manager = self.run("ryu", str(BIN / "ryu-manager"), *arguments, f"fairq_ryu.apps.{app}")
        manager.port = port
        manager.url = f"http://127.0.0.1:{rest}"
        # A bridge that finds no controller tries again after 1, 2, 4 and 8 s.
        assert until(lambda: is_open(rest) or manager.process.poll() is not None, 60), manager.text
        if connect:
            output("ovs-vsctl", "set-controller", "s1", f"tcp:127.0.0.1:{port}")
        return manager

    def has_settled(self):
        """Whether the controller knows which ports lead to hosts. Before, frames can be lost."""
        with urllib.request.urlopen(f"{self.manager.url}/v1/ports", timeout=20) as answer:
            ports = json.load(answer)["ports"]
        return len(ports) > self.senders and all(port["role"] != "undecided" for port in ports)

    def status(self):
        """The agent's status, from its socket as `fairq status` reads it."""
        return agent_status("s1")

    def port_status(self):
        """The agent's status of the receiver's port."""
        return next(port for port in self.status()["ports"] if port["ofport"] == self.port)

    def change_policy(self, policy, **parameters):
        """Another policy for all ports, as `PATCH /v1/policy` has it."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        body = json.dumps({"policy": policy, "parameters": parameters}).encode()
        request = urllib.request.Request(f"{self.manager.url}/v1/policy", body, headers, method="PATCH")
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 200

    def bulk(self, sender="h1", port=5001):
        """A sender that sends to the receiver without a limit; returns the two processes."""
        sink = self["r"].popen([sys.executable, "-c", SINK, str(port)], stdout=subprocess.PIPE, text=True)
        assert sink.stdout.readline() == "ready\n"
        source = self[sender].popen([sys.executable, "-c", SOURCE, self["r"].IP(), str(port)])
        self.stack.callback(end, sink)
        self.stack.callback(end, source)
        return sink, source

    def clear(self):
        """End what was started here, and remove what it has left in the bridge and the hosts: the next test
        finds them as if they were new.
        """
        self._end_programs()
        status.flows_path("s1").unlink(missing_ok=True)
        output("ovs-vsctl", "del-controller", "s1")
        for what in ("flows", "groups", "meters"):
            output("ovs-ofctl", "-O", "OpenFlow13", f"del-{what}", "s1")
        for host in self.net.hosts:
            # A connection whose programs have been killed would retransmit into the next test.
            host.cmd("ss -K >/dev/null; ip neigh flush all")
        self.forward()

    def close(self):
        self._end_programs()
        self.net.stop()
        for each in self.net.controllers:
            each.terminate()

    def _end_programs(self):
        self.stack.close()
        while self.programs:
            self.programs.pop().end()


def end(process):
    process.kill()
    process.wait()


def received(sink):
    """Bytes that a sink has received so far."""
    sink.send_signal(signal.SIGUSR1)
    return int(sink.stdout.readline())


# A handler that printed could be interrupted by the next signal while it flushes, which Python refuses.
SINK = """
import os, signal, socket, sys
total = 0
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"%d\\n" % total))
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
peer, _ = server.accept()
while data := peer.recv(1 << 20):
    total += len(data)
"""
SOURCE = """
import socket, sys
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
peer.settimeout(None)
data = bytes(1 << 18)
while True:
    peer.sendall(data)
"""
