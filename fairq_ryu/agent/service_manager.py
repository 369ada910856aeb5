"""What an agent tells systemd, and what systemd keeps for it: readiness, and the flow maps (sd_notify).

The maps of a dead agent can only be found with CAP_SYS_ADMIN, which a service does not have. So the agent
gives the file descriptors of its flow maps to systemd, which passes them to the agent that it starts in place
of one that has died. Without systemd nothing of this happens.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterable, Mapping

log = logging.getLogger(__name__)
_FIRST = 3  # the number of the first file descriptor that systemd passes to a service


def ready() -> None:
    """The agent serves."""
    _send("READY=1")


def keep(descriptors: Mapping[str, int]) -> None:
    """Let systemd keep these file descriptors, by name, in place of those with the same names."""
    forget(descriptors)
    for name, fd in descriptors.items():
        _send(f"FDSTORE=1\nFDNAME={name}\nFDPOLL=0", [fd])


def forget(names: Iterable[str]) -> None:
    """Let systemd close what it keeps under these names."""
    for name in names:
        _send(f"FDSTOREREMOVE=1\nFDNAME={name}")


def kept() -> dict[str, int]:
    """The file descriptors that systemd has kept for this process, by name; the caller closes them. A second
    call returns none.
    """
    about = {name: os.environ.pop(f"LISTEN_{name}", "") for name in ("PID", "FDS", "FDNAMES")}
    if about["PID"] != str(os.getpid()) or not about["FDS"].isdigit():
        return {}
    numbers = range(_FIRST, _FIRST + int(about["FDS"]))
    for fd in numbers:
        os.set_inheritable(fd, False)
    return dict(zip(about["FDNAMES"].split(":"), numbers, strict=False))


def _send(state: str, descriptors: Iterable[int] = ()) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"  # a name without a file
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect(address)
            socket.send_fds(channel, [state.encode()], list(descriptors))
    except OSError as error:
        log.warning("systemd cannot be told %s: %s", state.partition("\n")[0], error.strerror)
