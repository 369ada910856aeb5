"""A second machine for tests, as far as they see: a network and an Open vSwitch of their own, and the
directories of run files. What has a fixed name (bridge s1, TCP ports, an agent's socket) exists once in each.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from fairq_ryu.agent import status
from tests.support.traces import MARK

_NEW_MOUNTS, _NEW_NETWORK, _FILES = 0x00020000, 0x40000000, 0x00000200  # CLONE_NEWNS, CLONE_NEWNET, CLONE_FS
_LIBC = ctypes.CDLL(None, use_errno=True)
_RUN = Path(os.environ.get("OVS_RUNDIR", "/var/run/openvswitch"))
_TEMPORARY = _RUN / "tmp"
_PRIVATE = (_RUN, status.run_directory(), Path("/run/netns"))
_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
DATABASE, SWITCH = "ovsdb-server", "ovs-vswitchd"
_LINES = {
    DATABASE: f"ovsdb-server {_RUN}/conf.db --remote=punix:{_RUN}/db.sock --pidfile -vconsole:off",
    SWITCH: f"ovs-vswitchd unix:{_RUN}/db.sock --pidfile -vconsole:off",
}


def _call(name, *arguments):
    if getattr(_LIBC, name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _run(line):
    subprocess.run(line.split(), check=True)


@contextlib.contextmanager
def cubic_allowed():
    """Hosts may choose CUBIC, which only the first network namespace can allow: an own machine is another."""
    before = _ALLOWED.read_text().split() if _ALLOWED.exists() else ["cubic"]
    if "cubic" in before or not os.access(_ALLOWED, os.W_OK):
        yield
        return
    _ALLOWED.write_text(" ".join([*before, "cubic"]))
    try:
        yield
    finally:
        _ALLOWED.write_text(" ".join(before))


class OwnMachine:
    """Made when it is first used; `close` ends its programs, and the kernel removes the rest with them."""

    def __init__(self):
        self._programs = {}
        self._own = ()

    @contextlib.contextmanager
    def used(self):
        """This thread and the programs that it starts are in the own machine."""
        home, here = _namespaces(), Path.cwd()
        try:
            if self._own:
                _enter(self._own)
                os.chdir(here)
            else:
                self._make()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("TMPDIR", str(_TEMPORARY))
                patch.setattr(tempfile, "tempdir", None)
                yield
        finally:
            _enter(home)
            os.chdir(here)
            for each in home:
                os.close(each)

    def close(self):
        for name in reversed(list(self._programs)):
            self.end(name)
        for each in self._own:
            os.close(each)
        self._own = ()

    def _make(self):
        _call("unshare", _NEW_NETWORK | _NEW_MOUNTS)
        _run("mount --make-rprivate /")
        _run("mount -t sysfs sysfs /sys")  # it shows the interfaces of this network
        for path in _PRIVATE:
            path.mkdir(parents=True, exist_ok=True)
            _run(f"mount -t tmpfs tmpfs {path}")
        _TEMPORARY.mkdir()
        _run("ip link set lo up")
        _run(f"ovsdb-tool create {_RUN}/conf.db {_SCHEMA}")
        self.start(DATABASE)
        _run("ovs-vsctl --no-wait --retry --timeout=60 init")
        self.start(SWITCH)
        _run("ovs-vsctl --timeout=60 init")  # returns when ovs-vswitchd works
        self._own = _namespaces()

    @property
    def running(self):
        """The pids of `DATABASE` and `SWITCH`, without those that were ended."""
        return {name: program.pid for name, program in self._programs.items()}

    def end(self, name, number=signal.SIGKILL):
        """End one of the two by a signal."""
        program = self._programs.pop(name)
        program.send_signal(number)
        program.wait()

    def start(self, name):
        """Start one of the two, in the own machine. It is not ready yet."""
        # No test has started it; it ends with this process, however that ends; and it has the priority that
        # the one of the machine has.
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        command = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "-10", *_LINES[name].split()]
        self._programs[name] = subprocess.Popen(command, env=environment)


def _namespaces():
    return tuple(os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY) for kind in ("net", "mnt"))


def _enter(namespaces):
    network, mounts = namespaces
    # A thread that shares its working directory with others may not change its mounts.
    _call("unshare", _FILES)
    _call("setns", mounts, _NEW_MOUNTS)
    _call("setns", network, _NEW_NETWORK)
