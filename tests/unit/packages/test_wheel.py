"""The wheel has the compiled objects, all of them for little-endian eBPF, and no program of a processor."""

from __future__ import annotations

import os
import struct
import zipfile

import pytest

from packages import wheel
from packages.error import PackagingError


def elf(machine=247, order=1):
    return b"\x7fELF\x02" + bytes([order]) + bytes(10) + struct.pack("<HH", 1, machine)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (elf(), ""),
        (elf(machine=62), "of machine 62, not eBPF"),
        (elf(order=2), "of big-endian byte order"),
        (b"", "no object file"),
        (b"\x7fELF", "no object file"),
        (b"text, and more of it than a header", "no object file"),
    ],
)
def test_objects_that_the_wheel_may_have(data, why):
    assert wheel.not_portable(data) == why


@pytest.fixture
def folder(tmp_path):
    for name in ("layout.h", "lib/parse.h", "laws/las/law.h", "window.bpf.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "window.bpf.o").write_bytes(elf())
    return tmp_path


def test_compiled_objects_are_accepted(folder):
    wheel.check_objects(folder, folder / "laws")


def test_a_missing_object_is_refused(folder):
    (folder / "queue.bpf.c").touch()
    (folder / "window.bpf.o").touch()
    with pytest.raises(PackagingError, match=r"queue\.bpf\.o is missing or older than its sources: make bpf"):
        wheel.check_objects(folder, folder / "laws")


@pytest.mark.parametrize("header", ["lib/parse.h", "laws/las/law.h"])
def test_an_object_older_than_a_header_is_refused(folder, header):
    later = (folder / "window.bpf.o").stat().st_mtime_ns + 10**9
    os.utime(folder / header, ns=(later, later))
    with pytest.raises(PackagingError, match=r"window\.bpf\.o is missing or older"):
        wheel.check_objects(folder, folder / "laws")


def test_an_object_of_another_kind_is_refused(folder):
    (folder / "window.bpf.o").write_bytes(elf(order=2))
    with pytest.raises(PackagingError, match="little-endian machine"):
        wheel.check_objects(folder, folder / "laws")


def made(path, **files):
    with zipfile.ZipFile(path, "w") as opened:
        for name, data in files.items():
            opened.writestr(name, data)
    return path


def test_the_wheel_has_exactly_the_objects_as_binaries(tmp_path):
    window, queue = (f"{wheel.OBJECTS[0]}/{name}.bpf.o" for name in ("window", "queue"))
    inside = {window: elf(), "fairq_ryu/__init__.py": b"x = 1\n"}
    wheel.check_wheel(made(tmp_path / "a.whl", **inside), {window})
    with pytest.raises(PackagingError, match=r"queue\.bpf\.o"):
        wheel.check_wheel(made(tmp_path / "b.whl", **inside), {window, queue})
    program = {"mininet_topos/delayline/delayline": elf(machine=62)}
    with pytest.raises(PackagingError, match="delayline"):
        wheel.check_wheel(made(tmp_path / "c.whl", **inside, **program), {window})
