from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairq_ryu.cli.doctor import kernel
from fairq_ryu.cli.doctor.check import Check
from fairq_ryu.cli.doctor.commands import Output


def btf(*names: str, order: str = "<") -> bytes:
    """A BTF file without types, and with these names."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    return struct.pack(order + "HBBIIIII", 0xEB9F, 1, 0, 24, 0, 0, 0, len(strings)) + strings


def the_only(checks: Sequence[Check]) -> Check:
    (check,) = checks
    return check


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ("6.1.0-13-amd64", "ok"),
        ("7.3.1", "ok"),
        ("6.0.12", "warn"),
        ("5.15.0-91-generic", "warn"),
        ("odd", "fail"),
    ],
)
def test_kernel_version(monkeypatch: pytest.MonkeyPatch, release: str, status: str) -> None:
    monkeypatch.setattr("platform.release", lambda: release)
    check = kernel.check_kernel()
    assert (check.status, bool(check.remedy)) == (status, status != "ok")
    assert release in check.found


def test_btf_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "BTF_PATH", tmp_path / "vmlinux")
    check = the_only(kernel.check_btf())
    assert check.status == "fail"
    assert "CONFIG_DEBUG_INFO_BTF" in check.remedy


@pytest.mark.parametrize("content", [b"", b"\x9f\xeb", b"\x7fELF" + bytes(60)])
def test_btf_garbage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "vmlinux").write_bytes(content)
    monkeypatch.setattr(kernel, "BTF_PATH", tmp_path / "vmlinux")
    check = the_only(kernel.check_btf())
    assert check.status == "fail"
    assert "is not BTF" in check.found


@pytest.mark.parametrize("order", ["<", ">"])
def test_tracepoints_found_in_either_byte_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, order: str
) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(btf("sk_buff", "btf_trace_qdisc_enqueue", "btf_trace_qdisc_dequeue", order=order))
    monkeypatch.setattr(kernel, "BTF_PATH", path)
    assert [check.status for check in kernel.check_btf()] == ["ok", "ok"]


def test_tracepoint_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "vmlinux"
    # A longer name must not match the wanted one.
    path.write_bytes(
        btf("btf_trace_qdisc_dequeue", "btf_trace_qdisc_enqueue_more", "my_btf_trace_qdisc_enqueue")
    )
    monkeypatch.setattr(kernel, "BTF_PATH", path)
    tracepoints = kernel.check_btf()[1]
    assert tracepoints.status == "fail"
    assert "qdisc_enqueue" in tracepoints.found
    assert "qdisc_dequeue" not in tracepoints.found


HOST_TCP = ("bpf_struct_ops_tcp_congestion_ops", "bpf_struct_ops_link")


def test_controls_for_hosts(
    commands: dict[str, Output], as_root: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "vmlinux"
    monkeypatch.setattr(kernel, "BTF_PATH", path)
    monkeypatch.setattr(kernel, "HOST_BPF_DIR", tmp_path)
    (tmp_path / "dctcp.bpf.c").touch()
    lost = "experiments have no dctcp unless the kernel has its own"
    check = kernel.check_host_controls()
    assert (check.status, check.found) == ("warn", f"no kernel BTF: {lost}")
    for lacking in HOST_TCP:
        path.write_bytes(btf(*(name for name in HOST_TCP if name != lacking)))
        check = kernel.check_host_controls()
        assert (check.status, check.found) == ("warn", f"the kernel has no {lacking}: {lost}")
    path.write_bytes(btf(*HOST_TCP))
    check = kernel.check_host_controls()
    assert (check.status, check.remedy) == ("warn", "make bpf") and lost in check.found
    (tmp_path / "dctcp.bpf.o").touch()
    commands["unshare"] = Output(0, '{"dctcp": ""}\n')
    assert kernel.check_host_controls() == Check("host TCP", "ok", "dctcp load for experiments")
    commands["unshare"] = Output(0, '{"dctcp": "the kernel refused it: why"}\n')
    check = kernel.check_host_controls()
    assert check.status == "warn" and "the kernel refuses dctcp: the kernel refused it: why" in check.found


def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    check = kernel.check_root()
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
    monkeypatch.setattr(kernel, "PROC", tmp_path)
    assert kernel.check_root().status == status


def test_libbpf_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, use_errno: bool = False) -> ctypes.CDLL:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", load)
    check = kernel.check_libbpf()
    assert (check.status, check.remedy) == ("fail", "apt-get install libbpf-dev")


def test_objects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "BPF_DIR", tmp_path)
    monkeypatch.setattr(kernel, "LAWS_DIR", tmp_path / "laws")
    assert kernel.check_bpf_objects().status == "fail"

    source, compiled = tmp_path / "window.bpf.c", tmp_path / "window.bpf.o"
    source.touch()
    check = kernel.check_bpf_objects()
    assert (check.status, check.remedy) == ("fail", "make bpf")
    assert "window.bpf.c" in check.found

    compiled.touch()
    assert kernel.check_bpf_objects().status == "ok"

    (tmp_path / "lib").mkdir()
    (tmp_path / "laws/las").mkdir(parents=True)
    for header in (tmp_path / "layout.h", tmp_path / "lib/parse.h", tmp_path / "laws/las/law.h"):
        header.touch()
        later = compiled.stat().st_mtime_ns + 10**9
        os.utime(header, ns=(later, later))
        assert kernel.check_bpf_objects().status == "warn"
        header.unlink()
        assert kernel.check_bpf_objects().status == "ok"

    header = tmp_path / "layout.h"
    header.touch()
    later = compiled.stat().st_mtime_ns + 10**9
    os.utime(header, ns=(later, later))
    source.unlink()
    assert kernel.check_bpf_objects().status == "ok", "an installed package has no sources to compare"
