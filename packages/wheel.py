"""The wheel: the project with its compiled eBPF objects, for every processor of little-endian byte order.

The objects contain eBPF instructions, not those of a processor, and are fitted to the kernel when they are
loaded (CO-RE). So one wheel serves all machines with the byte order of the machine that compiled them.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from packages.error import PackagingError

OBJECTS = ("fairq_ryu/agent/bpf", "fairq_ryu/experiments/hostcc/bpf")
LAWS = "fairq_ryu/laws"
_ELF = b"\x7fELF"
_EM_BPF = 247
_SOURCES = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "LICENSES", "fairq_ryu", "mininet_topos")


def build(root: Path, out: Path) -> Path:
    """Build the wheel of the project in ``root`` into ``out``; returns its path. Raises
    :class:`PackagingError` if an object is missing or older than the sources.
    """
    for directory in OBJECTS:
        check_objects(root / directory, root / LAWS)
    with tempfile.TemporaryDirectory() as directory:
        # A copy: setuptools writes into the sources' directory, and takes what it finds in an old build/.
        copy, built = Path(directory, "source"), Path(directory, "wheel")
        copy.mkdir()
        for name in _SOURCES:
            if (root / name).is_dir():
                shutil.copytree(
                    root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".stamp*")
                )
            else:
                shutil.copy2(root / name, copy / name)
        command = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--no-input",
            "wheel",
            "--quiet",
        ]
        command += ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(built), str(copy)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PackagingError(f"pip cannot build the wheel: {done.stderr.strip()[-1000:]}")
        (path,) = built.glob("*.whl")
        check_wheel(
            path, {f"{name}/{each.name}" for name in OBJECTS for each in (root / name).glob("*.bpf.o")}
        )
        for old in out.glob(f"{path.name.partition('-')[0]}-*.whl"):
            old.unlink()
        return Path(shutil.copy2(path, out / path.name))


def check_objects(directory: Path, laws: Path) -> None:
    """Raise :class:`PackagingError` unless each source in ``directory`` has its object, not older than any
    source or header, those of the laws among them.
    """
    newest = max(path.stat().st_mtime for folder in (directory, laws) for path in folder.rglob("*.[ch]"))
    for source in sorted(directory.glob("*.bpf.c")):
        compiled = source.with_suffix(".o")
        if not compiled.exists() or compiled.stat().st_mtime < newest:
            raise PackagingError(f"{compiled.name} is missing or older than its sources: make bpf")
        why = not_portable(compiled.read_bytes())
        if why:
            raise PackagingError(f"{compiled.name} is {why}: compile it on a little-endian machine, make bpf")


def not_portable(data: bytes) -> str:
    """Why an object file is no eBPF object of little-endian byte order; "" if it is one."""
    if len(data) < 20 or data[:4] != _ELF:
        return "no object file"
    if data[5] != 1:
        return "of big-endian byte order"
    (machine,) = struct.unpack_from("<H", data, 18)
    return "" if machine == _EM_BPF else f"of machine {machine}, not eBPF"


def check_wheel(path: Path, objects: set[str]) -> None:
    """Raise :class:`PackagingError` if the wheel lacks an object, or has other binaries than ``objects``,
    paths in it.
    """
    with zipfile.ZipFile(path) as wheel:
        inside = {name for name in wheel.namelist() if wheel.read(name)[:4] == _ELF}
    if inside != objects:
        differing = ", ".join(sorted(inside ^ objects))
        raise PackagingError(f"{path.name} has not exactly the eBPF objects as binaries: {differing}")
