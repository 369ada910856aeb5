from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fairq_ryu.cli import doctor
from fairq_ryu.cli.doctor import Check, Output

REPOSITORY = Path(doctor.__file__).resolve().parents[2]


def btf(*names: str, order: str = "<") -> bytes:
    """A BTF file without types, and with these names."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    return struct.pack(order + "HBBIIIII", 0xEB9F, 1, 0, 24, 0, 0, 0, len(strings)) + strings


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> dict[str, Output]:
    """The only commands there are, by their first word, with what they give."""
    known: dict[str, Output] = {}

    def run(command: Sequence[str], timeout: float = 10.0) -> Output:
        return known.get(command[0], Output(127, f"{command[0]}: No such file or directory"))

    monkeypatch.setattr(doctor, "run", run)
    monkeypatch.setattr(doctor, "which", lambda command: f"/usr/bin/{command}" if command in known else None)
    return known


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)


def the_only(checks: Sequence[Check]) -> Check:
    (check,) = checks
    return check


# --- the kernel


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ("6.1.0-13-amd64", "ok"),
        ("5.15.0-91-generic", "ok"),
        ("5.14.21", "fail"),
        ("4.19.0", "fail"),
        ("odd", "fail"),
    ],
)
def test_kernel_version(monkeypatch: pytest.MonkeyPatch, release: str, status: str) -> None:
    monkeypatch.setattr("platform.release", lambda: release)
    check = doctor.check_kernel()
    assert (check.status, bool(check.remedy)) == (status, status == "fail")
    assert release in check.found


def test_btf_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "BTF_PATH", tmp_path / "vmlinux")
    check = the_only(doctor.check_btf())
    assert check.status == "fail"
    assert "CONFIG_DEBUG_INFO_BTF" in check.remedy


@pytest.mark.parametrize("content", [b"", b"\x9f\xeb", b"\x7fELF" + bytes(60)])
def test_btf_garbage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "vmlinux").write_bytes(content)
    monkeypatch.setattr(doctor, "BTF_PATH", tmp_path / "vmlinux")
    check = the_only(doctor.check_btf())
    assert check.status == "fail"
    assert "is not BTF" in check.found


@pytest.mark.parametrize("order", ["<", ">"])
def test_tracepoints_found_in_either_byte_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, order: str
) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(btf("sk_buff", "btf_trace_qdisc_enqueue", "btf_trace_qdisc_dequeue", order=order))
    monkeypatch.setattr(doctor, "BTF_PATH", path)
    assert [check.status for check in doctor.check_btf()] == ["ok", "ok"]


def test_tracepoint_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "vmlinux"
    # A longer name must not pass for the one that is looked for.
    path.write_bytes(
        btf("btf_trace_qdisc_dequeue", "btf_trace_qdisc_enqueue_more", "my_btf_trace_qdisc_enqueue")
    )
    monkeypatch.setattr(doctor, "BTF_PATH", path)
    tracepoints = doctor.check_btf()[1]
    assert tracepoints.status == "fail"
    assert "qdisc_enqueue" in tracepoints.found
    assert "qdisc_dequeue" not in tracepoints.found


def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    check = doctor.check_root()
    assert check.status == "fail"
    assert check.remedy.startswith("sudo ")


@pytest.mark.parametrize(
    ("mask", "status"), [("000001ffffffffff", "ok"), ("00000000a80425fb", "fail"), ("0", "fail")]
)
def test_root_of_a_container_may_lack_capabilities(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, as_root: None, mask: str, status: str
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text(f"Name:\tx\nCapPrm:\t0\nCapEff:\t{mask}\n")
    monkeypatch.setattr(doctor, "PROC", tmp_path)
    assert doctor.check_root().status == status


def test_libbpf_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, use_errno: bool = False) -> ctypes.CDLL:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", load)
    check = the_only(doctor.check_libbpf())
    assert (check.status, check.remedy) == ("fail", "apt-get install libbpf-dev")


# --- eBPF objects


def test_objects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "BPF_DIR", tmp_path)
    assert doctor.check_bpf_objects().status == "fail"

    source, compiled = tmp_path / "window.bpf.c", tmp_path / "window.bpf.o"
    source.touch()
    check = doctor.check_bpf_objects()
    assert (check.status, check.remedy) == ("fail", "make bpf")
    assert "window.bpf.c" in check.found

    compiled.touch()
    assert doctor.check_bpf_objects().status == "ok"

    header = tmp_path / "layout.h"
    header.touch()
    later = compiled.stat().st_mtime_ns + 10**9
    os.utime(header, ns=(later, later))
    assert doctor.check_bpf_objects().status == "warn"

    header.unlink()
    source.unlink()
    assert doctor.check_bpf_objects().status == "ok", "an installed package may hold the objects only"


# --- tools


def test_missing_tool_names_its_package(commands: dict[str, Output]) -> None:
    by_name = {check.name: check for check in doctor.check_network_tools()}
    assert {check.status for check in by_name.values()} == {"fail"}
    assert by_name["ping"].remedy == "apt-get install iputils-ping"


def test_tool_that_does_not_start(commands: dict[str, Output]) -> None:
    commands["ping"] = Output(127, "ping: error while loading shared libraries: libcap.so.2\n")
    ping = next(check for check in doctor.check_network_tools() if check.name == "ping")
    assert ping.status == "fail"
    assert "libcap.so.2" in ping.found


def test_compilers_are_optional(commands: dict[str, Output]) -> None:
    commands["clang"] = Output(0, "\nclang version 14.0.6 (https://example.org/x 123)\nTarget: x86_64\n")
    by_name = {check.name: check for check in doctor.check_compilers()}
    assert by_name["clang"] == Check("clang", "ok", "clang version 14.0.6")
    assert by_name["llvm-strip"].status == "warn"


# --- qdiscs

SANDBOX_FINE = "veth=ok\nup=ok\nhtb=ok\nclass=ok\nbfifo=ok\nclsact=ok\nethtool=ok\n"


def test_qdiscs_fine(commands: dict[str, Output], as_root: None) -> None:
    commands["unshare"] = Output(0, SANDBOX_FINE)
    assert [check.status for check in doctor.check_ports()] == ["ok", "ok"]


def test_qdisc_the_kernel_lacks(commands: dict[str, Output], as_root: None) -> None:
    why = "Error: Specified qdisc kind is unknown."
    commands["unshare"] = Output(0, SANDBOX_FINE.replace("bfifo=ok", f"bfifo={why}"))
    qdiscs, offloads = doctor.check_ports()
    assert (qdiscs.status, qdiscs.remedy) == ("fail", "modprobe sch_fifo")
    assert why in qdiscs.found
    assert offloads.status == "ok"


def test_offloads_that_stay_on(commands: dict[str, Output], as_root: None) -> None:
    commands["unshare"] = Output(0, SANDBOX_FINE.replace("ethtool=ok", "ethtool=sh: 1: ethtool: not found"))
    qdiscs, offloads = doctor.check_ports()
    assert (qdiscs.status, offloads.status) == ("ok", "fail")
    assert offloads.remedy == "apt-get install ethtool"


@pytest.mark.parametrize("text", ["", "unshare: unshare failed: Operation not permitted\n"])
def test_no_network_namespace(commands: dict[str, Output], as_root: None, text: str) -> None:
    commands["unshare"] = Output(1, text)
    check = the_only(doctor.check_ports())
    assert check.status == "fail"
    assert text.strip() in check.found


# --- Open vSwitch, Mininet, Ryu


@pytest.fixture
def ovs(
    commands: dict[str, Output], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[], dict[str, Check]]:
    """A running Open vSwitch with both datapaths; gives the checks by name."""
    commands["ovs-vswitchd"] = Output(0, "ovs-vswitchd (Open vSwitch) 3.1.0\n")
    commands["ovs-vsctl"] = Output(0, '"3.1.0"\n')
    commands["ovs-appctl"] = Output(0, "ovs-vswitchd (Open vSwitch) 3.1.0\n")
    (tmp_path / "openvswitch").mkdir()
    (tmp_path / "tun").touch()
    monkeypatch.setattr(doctor, "SYS_MODULE", tmp_path)
    monkeypatch.setattr(doctor, "TUN_DEVICE", tmp_path / "tun")
    return lambda: {check.name: check for check in doctor.check_ovs()}


def test_ovs_fine(ovs: Callable[[], dict[str, Check]]) -> None:
    checks = ovs()
    assert {check.status for check in checks.values()} == {"ok"}
    assert checks["datapaths"].found == "kernel and userspace (netdev)"


def test_ovs_not_installed(commands: dict[str, Output]) -> None:
    check = the_only(doctor.check_ovs())
    assert (check.status, check.remedy) == ("fail", "apt-get install openvswitch-switch")


@pytest.mark.parametrize("dead", ["ovs-vsctl", "ovs-appctl"])
def test_ovs_not_running(commands: dict[str, Output], ovs: Callable[[], dict[str, Check]], dead: str) -> None:
    commands[dead] = Output(1, "db.sock: database connection failed (No such file or directory)\n")
    check = ovs()["Open vSwitch runs"]
    assert (check.status, check.remedy) == ("fail", "scripts/start-ovs.sh")


def test_ovs_not_allowed(commands: dict[str, Output], ovs: Callable[[], dict[str, Check]]) -> None:
    commands["ovs-vsctl"] = Output(1, "db.sock: database connection failed (Permission denied)\n")
    assert ovs()["Open vSwitch runs"].remedy.startswith("sudo ")


def test_datapaths(commands: dict[str, Output], ovs: Callable[[], dict[str, Check]], tmp_path: Path) -> None:
    (tmp_path / "openvswitch").rmdir()
    assert ovs()["datapaths"].found == "userspace (netdev)"
    (tmp_path / "tun").unlink()
    assert ovs()["datapaths"].status == "fail"
    commands["modprobe"] = Output(0, "")
    assert ovs()["datapaths"].status == "ok"


def test_mininet(commands: dict[str, Output], monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.check_mininet().remedy == "apt-get install --no-install-recommends mininet"
    commands["mn"] = Output(0, "2.3.0\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "does not see it" in doctor.check_mininet().found
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert doctor.check_mininet() == Check("Mininet", "ok", "2.3.0")


def test_ryu_that_does_not_import(commands: dict[str, Output]) -> None:
    commands[sys.executable] = Output(1, "Traceback ...\nModuleNotFoundError: No module named 'ryu'\n")
    check = doctor.check_ryu()
    assert (check.status, check.remedy) == ("fail", "make setup")
    assert check.found.endswith("No module named 'ryu'")


# --- hosts


@pytest.mark.parametrize(("available", "status"), [("reno bbr cubic", "ok"), ("reno", "fail")])
def test_congestion_control(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, available: str, status: str
) -> None:
    settings = tmp_path / "sys/net/ipv4"
    settings.mkdir(parents=True)
    (settings / "tcp_available_congestion_control").write_text(available + "\n")
    (settings / "tcp_congestion_control").write_text("bbr\n")
    monkeypatch.setattr(doctor, "PROC", tmp_path)
    check = doctor.check_congestion_control()
    assert check.status == status
    assert "bbr by default" in check.found


def test_controller_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(doctor, "CONTROLLER_ADDRESS", server.getsockname())
        check = doctor.check_controller_port()
        assert (check.status, check.remedy) == ("warn", f"ss -ltnp 'sport = :{server.getsockname()[1]}'")
    assert doctor.check_controller_port().status == "ok"


# --- all of it


def test_run_says_what_is_missing_and_what_hangs() -> None:
    assert doctor.run(["no-such-command-anywhere"]).code == 127
    assert doctor.run(["sleep", "5"], timeout=0.05).code == 124
    assert doctor.run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == Output(3, "out\nerr\n")


def test_a_check_that_breaks_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Check:
        raise PermissionError("no")

    monkeypatch.setattr(doctor, "CHECKS", (("one", broken), ("two", lambda: [Check("two", "ok", "here")])))
    one, two = doctor.run_checks()
    assert (one.status, one.found) == ("fail", "could not be checked: no")
    assert two.status == "ok"


@pytest.mark.parametrize(
    ("statuses", "code"), [(["ok", "ok"], 0), (["ok", "warn"], 0), (["warn", "fail"], 1), ([], 0)]
)
@pytest.mark.parametrize("json_output", [False, True])
def test_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    statuses: list[doctor.Status],
    code: int,
    json_output: bool,
) -> None:
    checks = [
        Check(f"c{n}", status, "found [it]", "" if status == "ok" else "do so")
        for n, status in enumerate(statuses)
    ]
    monkeypatch.setattr(doctor, "run_checks", lambda: checks)
    assert doctor.main(json_output=json_output) == code
    printed = capsys.readouterr().out
    if json_output:
        document = json.loads(printed)
        assert document["ok"] is (code == 0)
        assert [check["status"] for check in document["checks"]] == statuses
    else:
        assert printed.count("found [it]") == len(statuses)
        assert printed.count("do so") == sum(status != "ok" for status in statuses)


def test_without_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    doctor.print_table([Check("kernel BTF", "fail", "no file", "get one")])
    assert capsys.readouterr().out.splitlines() == [
        "fail  kernel BTF  no file",
        "                  -> get one",
    ]


def test_needs_the_standard_library_only() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import fairq_ryu.cli.doctor"
    # -S: no site-packages at all.
    subprocess.run([sys.executable, "-I", "-S", "-c", code, str(REPOSITORY)], check=True)


def test_every_check_runs_here_and_each_lack_has_a_remedy() -> None:
    checks = doctor.run_checks()
    assert len({check.name for check in checks}) == len(checks) >= 15
    for check in checks:
        assert "could not be checked" not in check.found, check
        assert bool(check.remedy) == (check.status != "ok"), check
        assert check.found, check


@pytest.mark.parametrize(
    ("name", "check", "path"),
    [
        ("room to send", doctor.check_room_to_send, "WMEM_DEFAULT"),
        ("room to hear", doctor.check_room_to_hear, "RMEM_DEFAULT"),
    ],
)
def test_small_socket_buffers_are_named_with_their_remedy(monkeypatch, tmp_path, name, check, path):
    small = tmp_path / "net.key"
    small.write_text("212992\n")
    monkeypatch.setattr(doctor, path, small)
    found = check()
    assert (found.name, found.status) == (name, "warn")
    assert "212,992" in found.found and "sysctl -w net.core.net.key=" in found.remedy
    small.write_text(f"{8 << 20}\n")
    assert check().status == "ok"
    small.unlink()
    assert check().status == "warn"
