"""A virtual machine under QEMU: it boots a kernel with a root file system, runs one script and ends."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from mininet_topos.patience import patient
from tests.vm.kernels import ALIVE, Kernel
from tests.vm.machines import CannotRun

QEMU = "qemu-system-x86_64"
_GUEST = Path(__file__).parent / "guest"
_MEMORY_MIB = 4096
_KVM_SECONDS = 20.0
# Until the script begins. It takes 12 s with emulation, a minute on a busy machine.
BOOT_SECONDS = 180.0
# Of the kernel's messages, what is shown if a machine ends without a result.
_LAST_LINES = 25


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a virtual machine ended."""

    code: int | None
    """The script's exit code; None: the machine ended or was ended before the script."""
    seconds: float
    started: bool
    """Whether the machine came to the script."""
    last: str
    """The last line that the script printed."""
    console: str
    """The kernel's messages."""


def accelerator(kernel: Kernel) -> str:
    """``kvm`` where a kernel boots with it, which an open /dev/kvm does not tell; else ``tcg``."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    options = _options("kvm", kernel, 512)
    try:
        done = subprocess.run(
            [QEMU, *options, "-append", "console=ttyS0 panic=-1", "-serial", "stdio"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_KVM_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "tcg"
    return "kvm" if ALIVE.encode() in done.stdout else "tcg"


def _options(how: str, kernel: Kernel, memory_mib: int) -> list[str]:
    # The processor of the host may lack what Python's packages are compiled for; QEMU's own has it. Without
    # AVX2: QEMU 7.2 emulates it wrongly, so that every fifth argsort of NumPy was wrong, or ended the process
    # (SIGSEGV).
    processor = "host" if how == "kvm" else "max,avx2=off"
    return [
        *("-accel", how, "-cpu", processor, "-smp", "2"),
        *("-m", str(memory_mib), "-nodefaults", "-no-reboot", "-display", "none", "-monitor", "none"),
        *("-kernel", str(kernel.image), "-initrd", str(kernel.initramfs)),
    ]


def boot(how: str, kernel: Kernel, root: Path, script: str, exchange: Path, seconds: float) -> Outcome:
    """Run ``script`` by bash in the checkout of the root file system ``root``, which does not change. What
    the script prints is printed. ``exchange`` is a directory of both, /exchange there. The machine is ended
    after ``seconds``, or if it has not come to the script by :data:`BOOT_SECONDS`.
    """
    (exchange / "job").write_text(script)
    (exchange / "init").write_bytes((_GUEST / "init").read_bytes())
    (exchange / "init").chmod(0o755)
    code_file, console, started = exchange / "code", exchange / "console", exchange / "started"
    code_file.unlink(missing_ok=True)
    (exchange / "out").mkdir(exist_ok=True)
    options = _options(how, kernel, _MEMORY_MIB)
    # The kernel patches its own code at the end of its start (sched_clock_cpu) and when it changes its clock.
    # An emulated processor may meet the breakpoint that stands there meanwhile after it has gone: a panic,
    # more often on a busy machine. So it starts with one processor, and init turns on the other;
    # tsc=reliable: it never changes its clock.
    options += [
        "-append",
        "console=ttyS0 quiet loglevel=4 panic=-1 random.trust_cpu=on net.ifnames=0 tsc=reliable maxcpus=1",
    ]
    options += ["-serial", f"file:{console}", "-serial", "stdio"]
    for image in (root, kernel.modules):
        options += ["-drive", f"file={image},format=raw,if=virtio,snapshot=on"]
    options += ["-virtfs", f"local,path={exchange},mount_tag=exchange,security_model=none"]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=exchange.parent) as scratch:
        # setpriv: the machine ends with the program that waits for it.
        machine = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", QEMU, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": scratch},
        )  # fmt: skip
        timers = [
            threading.Timer(seconds, machine.kill),
            threading.Timer(patient(BOOT_SECONDS), lambda: started.exists() or machine.kill()),
        ]
        for timer in timers:
            timer.start()
        last = ""
        try:
            assert machine.stdout is not None
            for line in machine.stdout:
                last = line.decode(errors="replace").rstrip("\r\n")
                print(last, flush=True)
            machine.wait()
        finally:
            for timer in timers:
                timer.cancel()
            machine.kill()
            machine.wait()
    said = console.read_text(errors="replace") if console.exists() else ""
    code = int(code_file.read_text()) if code_file.exists() else None
    took, shown = time.monotonic() - begun, said.splitlines()[-_LAST_LINES:]
    return Outcome(code, took, started.exists(), last, "\n".join(shown))


def check() -> None:
    """Raise :class:`CannotRun` if QEMU does not start."""
    try:
        subprocess.run([QEMU, "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotRun(f"{QEMU} does not run: {error}") from None
