"""The simulator's program: compiled once against ns-3's wheel, then run for each order."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairq_ryu.agent import law_header, layout
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import ownership
from fairq_ryu.experiments.traffic.workers import REPOSITORY, RunError
from fairq_ryu.laws.registry import FOLDER as LAWS

SOURCES = REPOSITORY / "simulator"
BUILT = SOURCES / "build"
_LIBRARIES = ("internet", "point-to-point", "network", "core")
_FLAGS = ("-O2", "-fno-strict-aliasing", "-Wall", "-Wno-unknown-attributes", "-Wno-unused")


@dataclass(frozen=True, slots=True)
class Ns3:
    """The wheel of ns-3: its release, headers and libraries."""

    version: str
    headers: Path
    libraries: Path


def find_ns3() -> Ns3:
    """The installed wheel. ``UserError``, which says what to install, without it."""
    try:
        found = importlib.metadata.distribution("ns3")
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            "the simulator needs ns-3, whose Python package ns3 is not installed",
            f"`{sys.executable} -m pip install --no-deps ns3==3.44.post0` (69 MB, 305 MB when installed)",
        ) from None
    folder = Path(str(found.locate_file("ns3")))
    return Ns3(found.version, folder / "include", folder / "lib64")


def built() -> Path:
    """The folder of the program, which is compiled if it is not yet, or if the sources of the simulator or of
    the switch have changed. ``UserError`` if that cannot be.
    """
    ns3 = find_ns3()
    if not SOURCES.is_dir():
        raise UserError(
            "the simulator is in the sources of fairq_ryu only, not in the installed package",
            "run it from a checkout",
        )
    place = BUILT / _digest(ns3)
    if (place / "simulate").is_file():
        return place
    if shutil.which("clang++") is None:
        raise UserError("clang++ is not installed, which compiles the simulator", "run `make setup`")
    try:
        with ownership.given_to_caller(SOURCES, (BUILT.name,)):
            _build(ns3, place)
    except OSError as error:
        raise UserError(f"cannot compile into {BUILT}: {error.strerror}", "make it writable") from None
    return place


def _build(ns3: Ns3, place: Path) -> None:
    BUILT.mkdir(exist_ok=True)
    with (BUILT / "lock").open("w") as lock:
        # Several may be started at once, such as tests.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (place / "simulate").is_file():
            return
        print("fairq simulate: compiling the simulator, once", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=BUILT) as folder:
            _compile(ns3, Path(folder))
            place.mkdir(exist_ok=True)
            os.replace(Path(folder) / "simulate", place / "simulate")  # whole or not at all


def answer(place: Path, order: str) -> Mapping[str, Any]:
    """What the simulator in this folder answers to an order. ``RunError`` if it fails."""
    done = subprocess.run([place / "simulate"], input=order, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise RunError(f"the simulator failed: {said[-1] if said else f'exit code {done.returncode}'}")
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


def _compile(ns3: Ns3, into: Path) -> None:
    law_header.write(into)
    shared = [*_FLAGS, f"-I{SOURCES}", f"-I{layout.BPF_DIR}", f"-I{into}", "-isystem", str(ns3.headers)]

    def one(source: Path) -> str:
        output = into / f"{source.name}.o"
        language = ["-x", "c"] if source.suffix == ".c" else ["-std=c++20"]
        _compiler(*language, *shared, "-c", str(source), "-o", str(output))
        return str(output)

    with ThreadPoolExecutor(os.cpu_count()) as workers:
        objects = list(workers.map(one, [*SOURCES.glob("*.cc"), *SOURCES.glob("*.c")]))
    libraries = [f"-l{path.name[3:-3]}" for path in _libraries(ns3)]
    where = [f"-L{ns3.libraries}", f"-Wl,-rpath,{ns3.libraries}"]
    _compiler(*objects, "-o", str(into / "simulate"), *where, *libraries)


def _libraries(ns3: Ns3) -> Iterator[Path]:
    for name in _LIBRARIES:
        found = sorted(ns3.libraries.glob(f"libns3*-{name}.so"))
        if not found:
            raise UserError(f"the package ns3 {ns3.version} has no library {name}", "install ns3==3.44.post0")
        yield found[0]


def _compiler(*arguments: str) -> None:
    done = subprocess.run(["clang++", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.splitlines()
        faults = [line for line in said if "error" in line or "undefined" in line]
        fault = next(iter(faults or said), "no reason given")
        raise UserError(
            f"the simulator does not compile: {fault}",
            "install ns3==3.44.post0, and the C++ library of the compiler (libstdc++-12-dev)",
        )


def _digest(ns3: Ns3) -> str:
    """Of all that the program is made of."""
    found = hashlib.sha256(f"{ns3.version} {ns3.libraries} {_FLAGS}".encode())
    files = [
        *(
            path
            for path in SOURCES.rglob("*")
            if path.suffix in (".cc", ".c", ".h") and BUILT not in path.parents
        ),
        *layout.BPF_DIR.rglob("*.[ch]"),
        *LAWS.glob("*/law.h"),
    ]
    for path in sorted(files):
        if path.is_file():
            found.update(f"{path}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]
