"""A distribution's kernel, unpacked from its packages: the image, its modules, and a small initramfs."""

from __future__ import annotations

import io
import lzma
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.vm.apt import Apt
from tests.vm.machines import CannotRun, Machine

# What the initramfs needs to find the root file system. Kernels have some of them built in, or not at all.
_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "9pnet_virtio", "9p")
_PARTS = ("linux-image-", "linux-binary-", "linux-modules-", "linux-base-")
_KEPT_SECONDS = 14 * 86400
_INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*.ko; do /bin/busybox insmod $module; done
if [ ! -e /dev/vda ]; then echo @alive@; /bin/busybox poweroff -f; fi
/bin/busybox mount -t ext4 /dev/vda /root
/bin/busybox mount -t ext4 -o ro /dev/vdb /root/usr/lib/modules
/bin/busybox mkdir -p /root/exchange
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L exchange /root/exchange
for each in proc sys dev; do /bin/busybox mount --move /$each /root/$each; done
exec /bin/busybox switch_root /root /exchange/init
"""
ALIVE = "@alive@"
"""What a kernel says that boots without a disk."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Where the parts of a kernel are."""

    version: str
    image: Path
    initramfs: Path
    modules: Path
    """An image of a file system, for /usr/lib/modules."""


def kernel(machine: Machine, apt: Apt, cache: Path) -> Kernel:
    """The newest kernel of the machine's suite; unpacked once for each version. Raises :class:`CannotRun`."""
    packages = [
        each
        for each in apt.closure(["linux-image-amd64"], machine.kernel_suite)
        if each.name.startswith(_PARTS) and each.name.count("-") > 2
    ]
    name = next((each.file for each in packages if each.name.startswith("linux-image-")), None)
    if name is None:
        raise CannotRun(f"{machine.kernel_suite} has no package linux-image-amd64")
    home = cache / "kernels" / name.removesuffix(".deb")
    if not (home / "complete").exists():
        shutil.rmtree(home, ignore_errors=True)
        tree = home / "tree"
        tree.mkdir(parents=True)
        for file in apt.fetch(packages, home / "packages"):
            subprocess.run(["dpkg-deb", "--extract", file, tree], check=True)
        _build(tree, home, _busybox(apt, machine, home))
        for each in (tree, home / "packages"):
            shutil.rmtree(each)
    used(home)
    return Kernel((home / "version").read_text(), home / "vmlinuz", home / "initramfs", home / "modules.ext4")


def used(home: Path) -> None:
    """Note that what is kept in ``home`` is complete and used now, and remove its siblings of long ago."""
    (home / "complete").touch()
    for other in home.parent.iterdir():
        mark = other / "complete"
        if mark.exists() and time.time() - mark.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(other)


def _busybox(apt: Apt, machine: Machine, home: Path) -> bytes:
    """The program busybox, which needs no library."""
    packages = [
        each for each in apt.closure(["busybox-static"], machine.suite) if each.name == "busybox-static"
    ]
    (file,) = apt.fetch(packages, home / "packages")
    archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as content:
        found = next(each for each in content.getmembers() if each.name.endswith("bin/busybox"))
        handle = content.extractfile(found)
        assert handle is not None
        return handle.read()


def _build(tree: Path, home: Path, busybox: bytes) -> None:
    modules = next(path for path in (tree / "usr/lib/modules", tree / "lib/modules") if path.is_dir())
    (version,) = (each.name for each in modules.iterdir())
    (home / "version").write_text(version)
    image = next(tree.glob("boot/vmlinuz-*"), None) or next(tree.rglob("vmlinuz*"))
    shutil.copy(image, home / "vmlinuz")
    # depmod and modprobe look in lib/modules of a directory.
    base = modules.parent.parent
    subprocess.run(["depmod", "--basedir", base, version], check=True)
    root = home / "root"
    (root / "modules").mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "bin/busybox").write_bytes(busybox)
    (root / "bin/busybox").chmod(0o755)
    (root / "init").write_text(_INIT)
    (root / "init").chmod(0o755)
    for number, path in enumerate(_in_order(base, version)):
        plain = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        (root / "modules" / f"{number:02d}-{path.name.removesuffix('.xz')}").write_bytes(plain)
    archive = subprocess.run(
        "find . -print0 | cpio --null --create --format=newc --quiet",
        shell=True, cwd=root, capture_output=True, check=True,
    ).stdout  # fmt: skip
    (home / "initramfs").write_bytes(archive)
    shutil.rmtree(root)
    make_image(modules, home / "modules.ext4", spare_mib=16)


def _in_order(base: Path, version: str) -> Iterator[Path]:
    """The files of `_MODULES`, each after those that it needs."""
    seen = set()
    for name in _MODULES:
        shown = subprocess.run(
            ["modprobe", "--dirname", base, "--set-version", version, "--show-depends", name],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        for line in shown.stdout.splitlines():
            what, _, path = line.strip().partition(" ")
            if what == "insmod" and path not in seen:
                seen.add(path)
                yield Path(path.split()[0])


def make_image(tree: Path, image: Path, spare_mib: int) -> None:
    """An ext4 file system in a file, with the content of ``tree`` and some room.

    Raises :class:`CannotRun`.
    """
    used = int(
        subprocess.run(["du", "-sm", tree], capture_output=True, text=True, check=True).stdout.split()[0]
    )
    image.unlink(missing_ok=True)
    size = f"{used * 5 // 4 + spare_mib}M"
    # Without a journal: nothing survives the run.
    made = subprocess.run(
        ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", tree, image, size],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise CannotRun(f"mke2fs: {made.stderr.strip()}")
