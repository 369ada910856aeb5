"""The agent's description (OpenFlow's DESC multipart): its bridge, the channel's version, what it can do.

It is the first message of an agent that a controller uses. ``hw_desc`` has the version and the capabilities
as text, because OpenFlow wants text there; ``dp_desc`` has the name of the bridge.
"""

from __future__ import annotations

import re
from enum import IntFlag
from typing import Any, NamedTuple

from fairq_ryu.channel.protocol import ofp

VERSION = 2
"""Of the window channel: the same at both ends, or the connection is refused. It grows with every change of a
message."""

_HARDWARE = "window channel {:04x} capabilities {:08x}"
_HARDWARE_READ = re.compile("window channel ([0-9a-f]{4}) capabilities ([0-9a-f]{8})")
_BRIDGE = "window table of bridge "


class Capability(IntFlag):
    """What the kernel of an agent may lack, and what an agent does that not all do. Everything else is the
    same in all agents of a version.
    """

    DROP_REPORTS = 1
    """It says why it frees a packet, so that drops of queues are seen."""
    INGRESS_QDISCS = 2
    """It has tcx: programs run at egress of ports that have an ingress qdisc."""
    UNIFIES_SCALES = 4
    """The agent lets no larger window scale pass than ``[agent] unify_scale``. That needs pinned paths."""


ALL = Capability.DROP_REPORTS | Capability.INGRESS_QDISCS
_LACKS = {
    Capability.DROP_REPORTS: "does not report dropped packets: none are recovered",
    Capability.INGRESS_QDISCS: "has no tcx: ports with an ingress qdisc have no windows",
}


class Description(NamedTuple):
    """What an agent says of itself. ``bridge``: the name of its bridge."""

    bridge: str
    capabilities: Capability = ALL

    @property
    def lacks(self) -> list[str]:
        """What the kernel of the agent lacks, and what that means, as lines for people."""
        return [words for each, words in _LACKS.items() if each not in self.capabilities]


def hardware(capabilities: Capability) -> bytes:
    """The text about the hardware (``hw_desc``)."""
    return _HARDWARE.format(VERSION, int(capabilities)).encode()


def datapath(bridge: str) -> bytes:
    """The text about the datapath (``dp_desc``)."""
    return f"{_BRIDGE}{bridge}".encode()[: ofp.DESC_STR_LEN - 1]


def decode(body: Any) -> Description:
    """A description as Ryu decodes it (``OFPDescStats``). Raises ValueError if it is of another version, or
    of no agent at all.
    """
    found = _HARDWARE_READ.fullmatch(_text(body.hw_desc))
    if found is None:
        raise ValueError("the agent does not say which version of the window channel it speaks")
    version, capabilities = (int(digits, 16) for digits in found.groups())
    if version != VERSION:
        raise ValueError(
            f"the agent speaks version {version} of the window channel, the controller version {VERSION}: "
            "install the same release of fairq_ryu for both"
        )
    return Description(_text(body.dp_desc).removeprefix(_BRIDGE), Capability(capabilities))


def _text(field: bytes | str) -> str:
    text = field.decode("utf-8", "replace") if isinstance(field, bytes) else field
    return text.rstrip("\0")
