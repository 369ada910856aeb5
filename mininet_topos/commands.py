"""Runs system programs and raises exceptions for their errors; starts and ends child processes."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mininet_topos.patience import patient

_PR_SET_PDEATHSIG = 1
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NETLINK_GENERIC = 16
_GENL_ID_CTRL = 0x10
_CTRL_CMD_GETFAMILY = 3
_CTRL_ATTR_FAMILY_NAME = 2
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2


class CommandError(Exception):
    """A program failed; the text names it and quotes its error."""


def run(argv: Sequence[str], stdin: str | None = None, timeout: float = 30.0) -> str:
    """Run a program to its end and return its output. ``CommandError`` if it fails, or takes longer than
    ``timeout`` seconds (`patient` ones).
    """
    limit = patient(timeout)
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            start_new_session=True,  # Ctrl-C on the terminal must not end commands that clean up
        )
    except FileNotFoundError:
        raise CommandError(f"{argv[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"{' '.join(argv)} took more than {limit:g} s") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise CommandError(f"{' '.join(argv)}: {lines[-1]}")
    return done.stdout


@contextmanager
def child_setup(death_signal: int = signal.SIGTERM, ignore: bool = False) -> Iterator[Callable[[], None]]:
    """A ``preexec_fn`` for one child that is started inside this block.

    The kernel sends the child ``death_signal`` when its parent dies, even by SIGKILL. SIGINT, SIGTERM and
    SIGHUP are blocked meanwhile in the calling thread, because they would run the parent's handlers in the
    child, between fork and exec. A signal that arrives meanwhile is for the parent, which ends its children;
    the child discards it. After exec the child has the default actions, or with ``ignore`` it ignores these
    signals.
    """
    # The library is opened here, before the fork, since little is safe between fork and exec.
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # the parent ended between fork and prctl
            os._exit(1)
        for number in END_SIGNALS:
            # A signal that the parent ignores stays ignored, as with exec. Ignoring discards a pending one.
            keep = ignore or signal.getsignal(number) is signal.SIG_IGN
            signal.signal(number, signal.SIG_IGN)
            if not keep:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield prepare
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process_mark(pid: int) -> str:
    """``PID.START``, START in clock ticks since boot: the kernel reuses process ids, so a pid is not enough.

    ``ProcessLookupError`` if the process does not exist.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        raise ProcessLookupError(pid) from None
    # proc(5): starttime is field 22; the first two fields, up to the parenthesis, were cut off.
    return f"{pid}.{fields[19]}"


def is_alive(mark: str) -> bool:
    """Whether the process of a `process_mark` still exists. ``ValueError`` if ``mark`` is not one."""
    pid = mark.partition(".")[0]
    try:
        return process_mark(int(pid)) == mark
    except ProcessLookupError:
        return False


def end_process(process: subprocess.Popen[bytes], patience: float = 5.0) -> None:
    """End a child process: SIGTERM, and SIGKILL after ``patience`` seconds. No effect if it has ended."""
    end_processes([process], patience)


def end_processes(processes: Sequence[subprocess.Popen[bytes]], patience: float = 5.0) -> None:
    """End several child processes: SIGTERM to all, SIGKILL after ``patience`` seconds (`patient` ones)."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + patient(patience)
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def has_kernel_datapath() -> bool:
    """Whether the kernel has Open vSwitch's datapath (module loaded, loadable, or built in).

    This asks the kernel by generic netlink, because OVS lists the datapath type ``system`` even if the kernel
    does not have it.
    """
    name = b"ovs_datapath\0"
    attribute = struct.pack("=HH", 4 + len(name), _CTRL_ATTR_FAMILY_NAME) + name
    attribute += bytes(-len(attribute) % 4)
    body = struct.pack("=BBH", _CTRL_CMD_GETFAMILY, 1, 0) + attribute
    message = struct.pack("=IHHII", 16 + len(body), _GENL_ID_CTRL, _NLM_F_REQUEST, 1, 0) + body
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC) as netlink:
            netlink.settimeout(5.0)
            netlink.send(message)
            answer = netlink.recv(65536)
    except OSError:
        return False
    kind: int = struct.unpack_from("=IH", answer)[1]
    return kind != _NLMSG_ERROR
