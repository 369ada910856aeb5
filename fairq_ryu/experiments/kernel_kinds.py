"""The kinds of qdiscs that experiments take from the kernel, and whether the kernel has them.

The kernel is asked in a network namespace that ends with the question, so that nothing is left behind. It
loads the modules of qdiscs by itself. Imports the standard library only, because doctor must work where other
parts do not.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

LEAST = {
    "cake": "cake",
    "codel": "codel",
    "fq": "fq",
    "fq_codel": "fq_codel",
    "pie": "pie",
    "red": "red limit 125000 avpkt 1500",
    "sfb": "sfb",
}
"""By kind, the least that ``tc`` takes to make one."""
_SECONDS = 60.0
_UNKNOWN = ("Specified qdisc kind is unknown", "No such file or directory", "Unknown qdisc")


def missing(kind: str) -> str:
    """That the kernel lacks a kind, in words."""
    return f"the kernel has no {kind} (module sch_{kind})"


def option(kind: str) -> str:
    """The option with which a kernel is built that has the kind."""
    return f"CONFIG_NET_SCH_{kind.upper()}"


def refused(wanted: Mapping[str, str]) -> dict[str, str]:
    """Why qdiscs cannot be made here, by name. ``wanted``: kind and options of each, as ``tc`` takes them.

    ``OSError`` where no network namespace can be made. As root.
    """
    script = "ip link add name fqk0 type veth peer name fqk1 || exit 1\n" + "".join(
        f"why=$(tc qdisc add dev fqk0 root {arguments} 2>&1) || echo {name}=$why\n"
        "tc qdisc del dev fqk0 root 2>/dev/null\n"
        for name, arguments in wanted.items()
    )
    try:
        done = subprocess.run(
            ["unshare", "-n", "--", "sh", "-c", script + "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"it took more than {_SECONDS:g} s") from None
    if done.returncode:
        raise OSError((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
    reasons = dict(line.split("=", 1) for line in done.stdout.splitlines())
    return {name: _in_words(wanted[name].split()[0], reason) for name, reason in reasons.items()}


def _in_words(kind: str, reason: str) -> str:
    if any(each in reason for each in _UNKNOWN):
        return missing(kind)
    return f"tc refuses {kind}: {reason.removeprefix('Error: ').rstrip('.')}"
