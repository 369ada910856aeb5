"""Installs the Debian packages, governs a bridge, upgrades, removes, and looks for what is left.

    python3 installed.py DIRECTORY DIRECTORY-OF-HIGHER-VERSIONS

Run by ``scripts/test-fresh.sh --packages`` in a minimal root without a network, where Open vSwitch runs and
the packages' dependencies are installed: first without systemd, then with it. Standard library only, because
nothing of the project is there.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import platform
import pwd
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

from services import UnderSystemd, WithoutSystemd, run, run_beside, say, systemd, until

BRIDGE = "br-test"  # with a hyphen, which units treat specially
CONFIGURATION = Path("/etc/fairq/fairq.conf")
# What is written while packages are installed, and is no file of theirs.
OTHERS = {
    *("/dev", "/opt", "/proc", "/root", "/run", "/sys", "/tmp", "/test-packages.log"),
    *("/etc/openvswitch", "/var/cache", "/var/lib/dpkg", "/var/lib/openvswitch", "/var/log"),
    # systemd's own.
    *("/etc/machine-id", "/var/lib/libuuid", "/var/lib/systemd", "/var/tmp"),
    # Copies of the files of users, as they were before the last change.
    *(f"/etc/{name}-" for name in ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")),
}
RECEIVER = """
import socket, threading
server = socket.create_server(("10.9.0.2", 5001), backlog=64)
def drain(client):
    with client:
        while client.recv(65536):
            pass
while True:
    threading.Thread(target=drain, args=server.accept()[:1], daemon=True).start()
"""
SENDER = """
import socket, sys, threading, time
def send():
    with socket.create_connection(("10.9.0.2", 5001), timeout=20) as client:
        end = time.monotonic() + float(sys.argv[1])
        while time.monotonic() < end:
            client.sendall(bytes(65536))
threads = [threading.Thread(target=send) for _ in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
"""


def snapshot():
    """Every file of the root, with its kind, owner, permissions and content."""
    found = {}
    for folder, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in OTHERS]
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            if path in OTHERS:
                continue
            about = os.lstat(path)
            content = ""
            if stat.S_ISREG(about.st_mode):
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            found[path] = (about.st_mode, about.st_uid, about.st_gid, content)
    return found


def own_programs():
    """The number of eBPF programs in the kernel whose names are those of fairq_ryu."""
    lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
    number, count = ctypes.c_uint32(0), 0
    while lib.bpf_prog_get_next_id(number, ctypes.byref(number)) == 0:
        fd = lib.bpf_prog_get_fd_by_id(number)
        if fd < 0:
            continue
        info = ctypes.create_string_buffer(256)
        size = ctypes.c_uint32(len(info))
        assert lib.bpf_obj_get_info_by_fd(fd, info, ctypes.byref(size)) == 0
        os.close(fd)
        count += info.raw[64:80].startswith(b"fq_")  # bpf_prog_info.name
    return count


def make_network():
    """A bridge with two hosts; the port to the second is shallow: 50 Mbit/s, 125,000 bytes."""
    settings = ("datapath_type=netdev", "protocols=OpenFlow13", "fail_mode=standalone")
    run("ovs-vsctl", "add-br", BRIDGE, "--", "set", "bridge", BRIDGE, *settings)
    offloads = [word for name in ("tso", "gso", "gro", "tx") for word in (name, "off")]
    for number, host in enumerate(("ha", "hb"), 1):
        port = f"port{number}"
        run("ip", "netns", "add", host)
        run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
        run("ip", "-n", host, "addr", "add", f"10.9.0.{number}/24", "dev", "eth0")
        for name in ("lo", "eth0"):
            run("ip", "-n", host, "link", "set", name, "up")
        run("ip", "link", "set", port, "up")
        run("ip", "netns", "exec", host, "ethtool", "-K", "eth0", *offloads)
        run("ovs-vsctl", "add-port", BRIDGE, port)
    record = ("--id=@noop", "create", "QoS", "type=linux-noop", f"external_ids:fairq-bridge={BRIDGE}")
    run("ovs-vsctl", "--", *record, "--", "set", "port", "port2", "qos=@noop")
    rate = ("rate", "50mbit", "ceil", "50mbit", "burst", "3k", "cburst", "3k")
    run("tc", "qdisc", "add", "dev", "port2", "root", "handle", "1:", "htb", "default", "1")
    run("tc", "class", "add", "dev", "port2", "parent", "1:", "classid", "1:1", "htb", *rate)
    run("tc", "qdisc", "add", "dev", "port2", "parent", "1:1", "handle", "10:", "bfifo", "limit", "125000")


def remove_network():
    run("ovs-vsctl", "del-br", BRIDGE)
    for number, host in enumerate(("ha", "hb"), 1):
        run("ip", "link", "del", f"port{number}")
        run("ip", "netns", "del", host)


def status():
    """The agent's own report, by the installed command."""
    done = subprocess.run(
        ["/usr/bin/fairq", "status", "--bridge", BRIDGE, "--json"], capture_output=True, check=False
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def connected():
    about = status()
    return about is not None and all(each["connected"] for each in about["controllers"]) and about["ports"]


def lowered():
    return sum(port["rewritten"] for port in status()["ports"])


def governs(seconds=2.0):
    """Send data through the shallow port; its ACKs must have been lowered."""
    until(connected, "an agent that is connected")
    before = lowered()
    code = ["ip", "netns", "exec", "ha", "/usr/bin/python3", "-c", SENDER, str(seconds)]

    def sent():
        subprocess.run(code, check=False, stderr=subprocess.DEVNULL)
        return lowered() > before

    until(sent, "ACKs whose window was lowered", 30)
    return lowered() - before


@contextlib.contextmanager
def connection():
    """A connection through the bridge, open for as long as the context."""
    code = (
        "import socket, time; c = socket.create_connection(('10.9.0.2', 5001)); c.send(b'x'); time.sleep(60)"
    )
    process = subprocess.Popen(["ip", "netns", "exec", "ha", "/usr/bin/python3", "-c", code])
    try:
        until(lambda: status()["flows"] > 0, "a connection that the agent knows")
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def running(ready, done, *words):
    """A command of the package, from its first line, which has ``ready``, to its end after Ctrl-C, when it
    has said what matches ``done``.
    """
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        line = process.stdout.readline()
        assert ready in line, line
        yield
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(20) == 0 and re.search(done, rest), rest
    finally:
        process.kill()
        process.wait()


def check_shim():
    """A host that receives tells the scales of its connections."""
    words = ("ip", "netns", "exec", "hb", "/usr/bin/fairq", "shim", "--interface", "eth0")
    with running("eth0 ready", r"told [1-9]", *words):
        governs()


def check_coupling():
    """A host that sends couples its connections, where the kernel can register a congestion control."""
    default = ("ip", "netns", "exec", "ha", "sysctl", "-n", "net.ipv4.tcp_congestion_control")
    words = ("/usr/bin/fairq", "host", "--cc", "ctrl_reno", "--tenant", "blue", "--netns", "ha")
    before = run(*default)
    if tuple(map(int, re.findall(r"\d+", platform.release())[:2])) < (6, 4):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode != 0 and done.stderr.count("\n") == 1, done.stderr
        return
    with running("are of tenant blue", "ended", *words):
        assert run(*default) != before
        with connection():
            assert run(*default).strip() in run("ip", "netns", "exec", "ha", "ss", "--tcp", "--info")
        governs()
    assert run(*default) == before


def check_rights(agent, controller):
    needed = sum(1 << number for number in (12, 13, 38, 39))
    assert agent.rights() == (0, needed, 1), agent.rights()
    assert controller.rights() == (pwd.getpwnam("fairq").pw_uid, 0, 1), controller.rights()


def install(directory):
    run_beside("dpkg", "--install", *map(str, sorted(Path(directory).resolve().glob("*.deb"))))


def versions():
    shown = run("dpkg-query", "--show", "--showformat=${Package} ${Version} ${Status}\\n", "fairq-*")
    return {line.split()[0]: line.split()[1] for line in shown.splitlines() if line.endswith(" installed")}


def take_through(first, second, service):
    """Install, govern, upgrade, remove. ``service``: the class of the services."""
    before, programs = snapshot(), own_programs()
    make_network()

    say("install, as root without a network")
    install(first)
    old = versions()
    assert set(old) == {"fairq-common", "fairq-agent", "fairq-controller"}, old
    assert run("fairq", "check", str(CONFIGURATION)).endswith("fine\n")
    run("fairq", "--version")
    run("fairq", "doctor")
    for page in ("man1/fairq-agent.1.gz", "man5/fairq.conf.5.gz", "man8/fairq-agent@.service.8.gz"):
        assert Path("/usr/share/man", page).exists()

    say("govern a bridge, with the users and capabilities of the units")
    agent, controller = service("fairq-agent@.service", BRIDGE), service("fairq-controller.service")
    controller.start()
    agent.start()
    until(connected, "an agent that is connected")
    check_rights(agent, controller)
    run("ovs-vsctl", "set-controller", BRIDGE, "tcp:127.0.0.1:6653")
    receiver = subprocess.Popen(["ip", "netns", "exec", "hb", "/usr/bin/python3", "-c", RECEIVER])
    say(f"{governs()} ACKs lowered")
    assert "port2" in run("fairq", "show", "ports", "--json")

    say("a host with `fairq shim`, and one with `fairq host`")
    check_shim()
    check_coupling()

    say("an agent that is killed is started again, and takes over the connections")
    assert "took over" not in agent.text()
    with connection():
        agent.kill()
        until(lambda: "took over" in agent.text(), "flows that are taken over")
    governs()

    say("upgrade")
    changed = CONFIGURATION.read_text().replace("#alpha = 0.25", "alpha = 0.3", 1)
    assert changed != CONFIGURATION.read_text()
    CONFIGURATION.write_text(changed)
    for each in (agent, controller):
        each.before_upgrade()
    install(second)
    assert set(versions()) == set(old) and all(version != old[name] for name, version in versions().items())
    assert CONFIGURATION.read_text() == changed, "the changed configuration was replaced"
    for each in (controller, agent):
        each.after_upgrade()
    governs()
    check_rights(agent, controller)

    say("remove")
    controller.stop()
    run("ovs-vsctl", "del-controller", BRIDGE)
    # The agent still runs: the removal of its package ends it.
    run_beside("dpkg", "--purge", "fairq-agent")
    assert agent.was_ended()
    for port in ("port1", "port2"):
        assert "clsact" not in run("tc", "qdisc", "show", "dev", port), port
    run("fairq", "release", "--bridge", BRIDGE)
    assert "0xfa17" not in run("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", BRIDGE)
    run_beside("dpkg", "--purge", "fairq-controller", "fairq-common")
    receiver.kill()
    receiver.wait()
    remove_network()

    assert own_programs() == programs, "eBPF programs are left in the kernel"
    assert not [path for path in Path("/sys/fs/bpf").rglob("*") if not path.is_dir()], "maps are pinned"
    assert not Path("/run/fairq_ryu").exists()
    after = snapshot()
    left = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert not left, f"left, or changed: {sorted(left)}"
    say("nothing is left")


def main(first, second):
    say("without systemd")
    take_through(first, second, WithoutSystemd)
    say("with systemd")
    with systemd() as up:
        if up:
            take_through(first, second, UnderSystemd)
        else:
            say("cannot be done here: systemd does not start in namespaces of its own")


if __name__ == "__main__":
    main(*sys.argv[1:])
