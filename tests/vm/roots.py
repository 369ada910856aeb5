"""Root file systems of virtual machines: a minimal root of a suite, with this checkout set up in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from fairq_ryu.config import programs
from tests.vm.apt import Apt
from tests.vm.kernels import make_image, used
from tests.vm.machines import CannotRun, Machine

ROOT = Path(__file__).resolve().parent.parent.parent
CHECKOUT = Path("opt/fairq_ryu")
_SCRIPT = ROOT / "scripts/make-root.sh"
_FUNCTIONS = ROOT / "scripts/root.sh"
# What set-up looks for beside the programs of fairq_ryu/config/programs.txt.
_ALSO = ("mininet", "libbpf-dev", "linux-libc-dev", "python3-venv", "git", "bpftool")


def _run(log: Path, *argv: str | Path) -> None:
    with log.open("ab") as handle:
        done = subprocess.run(
            [_SCRIPT, *argv], stdin=subprocess.DEVNULL, stdout=handle, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode:
        last = "\n".join(f"    {line}" for line in log.read_text(errors="replace").splitlines()[-15:])
        raise CannotRun(f"{_SCRIPT.name} {argv[0]} failed:\n{last}")


def base(machine: Machine, apt: Apt, cache: Path, whole: bool) -> Path:
    """A root of the machine's suite; ``whole``: with all packages that set-up needs. It is made once for each
    set of packages and versions. Raises :class:`CannotRun`.
    """
    wanted = ["make", "kmod"]
    if whole:
        wanted += [*sorted({each.package for each in programs.needed("run", "build")}), *_ALSO]
    packages = apt.closure(wanted, machine.suite)
    named = "\n".join([_SCRIPT.read_text(), _FUNCTIONS.read_text(), *sorted(each.file for each in packages)])
    home = cache / "roots" / f"{machine.suite}-{hashlib.sha256(named.encode()).hexdigest()[:16]}"
    if not (home / "complete").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        _run(home / "log", "root", home / "tree", machine.suite, apt.sources, *wanted)
    used(home)
    return home / "tree"


def set_up(tree: Path, work: Path, commit: str, *arguments: str) -> Path:
    """A copy of the root ``tree`` in ``work``, with this checkout at ``commit``, in which set-up has run with
    ``arguments``. Raises :class:`CannotRun`.
    """
    copy = work / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", tree, copy], check=True)
    _run(work / "log", "set-up", copy, commit, *arguments)
    return copy


def objects(root: Path) -> list[Path]:
    """The compiled eBPF objects of a root's checkout. Raises :class:`CannotRun` if there are none."""
    found = sorted((root / CHECKOUT / "fairq_ryu").rglob("*.bpf.o"))
    if not found:
        raise CannotRun(f"set-up has compiled no eBPF object in {root}")
    return found


def compiler(root: Path) -> str:
    """The name of the compiler of a root: clang-14."""
    said = subprocess.run(
        ["chroot", root, "clang", "-dumpversion"], capture_output=True, text=True, check=True
    )
    return f"clang-{said.stdout.partition('.')[0].strip()}"


def finish(root: Path, image: Path) -> None:
    """Make an image of the root, and remove it. Raises :class:`CannotRun`."""
    make_image(root, image, spare_mib=1024)
    shutil.rmtree(root)


def commit_of(name: str) -> str:
    """The commit that ``name`` means in this checkout. Raises :class:`CannotRun`."""
    done = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--verify", f"{name}^{{commit}}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise CannotRun(f"{name} is no commit of {ROOT}: {done.stderr.strip()}")
    return done.stdout.strip()


def cache_directory() -> Path:
    """Where packages and roots are kept: ``$FAIRQ_VM_CACHE``, or else /var/cache/fairq_ryu-vm."""
    return Path(os.environ.get("FAIRQ_VM_CACHE", "/var/cache/fairq_ryu-vm"))


def add_objects(root: Path, compiled: dict[str, list[Path]]) -> None:
    """Put the objects of each compiler into /objects/COMPILER of a root."""
    for name, files in compiled.items():
        where = root / "objects" / name
        where.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, where)
