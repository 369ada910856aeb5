"""Section ``[uplink.NAME]``: a port of a switch above by which the data of several bridges arrives.

    rate = 10gbit
    buffer = 1000000
    ports = br1/eth0, br2/eth0

Rates and sizes are written as tc(8) has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fairq_ryu.config.far_queues import is_interface, read_far_queue
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import far_name
from fairq_ryu.setting import Value
from fairq_ryu.uplink import Member, Uplink, least_rate

UPLINK = "uplink."
_PORTS = "write the bridge and the interface of each, for example ports = br1/eth0, br2/eth0"
_WORDS = ("rate", "buffer", "share", "ports")
_MOST_PORTS = 1000
_DPID = re.compile("[0-9a-fA-F]{16}")


def read_uplink(where: str, section: str, lines: Mapping[str, str]) -> Uplink:
    """The uplink of a section ``[uplink.NAME]``. Raises :class:`UserError`."""
    where, name = f"{where}: [{section}]", section.removeprefix(UPLINK)
    if not name:
        raise UserError(f"{where} has no name", "write [uplink.NAME]")
    for word in lines:
        if word not in _WORDS:
            raise UserError(f"{where}: there is no {word!r} of an uplink", f"known are {', '.join(_WORDS)}")
    if "rate" not in lines:
        raise UserError(f"{where} has no rate", "write it as tc does, for example rate = 10gbit")
    queue = read_far_queue(where, name, {word: text for word, text in lines.items() if word != "ports"})
    members = tuple(_member(where, text.strip()) for text in lines.get("ports", "").split(","))
    if not 2 <= len(members) <= _MOST_PORTS:
        raise UserError(
            f"{where} has {len(members)} port{'' if len(members) == 1 else 's'}",
            f"name from 2 to {_MOST_PORTS}; a single one has a line of [far_queues]",
        )
    if queue.rate < least_rate(len(members)):
        raise UserError(
            f"{where}: the rate is too little for {len(members)} ports",
            f"it is at least {8 * least_rate(len(members))}bit",
        )
    return Uplink(name, members, queue.rate, queue.buffer, queue.share)


def check_uplinks(uplinks: Iterable[Uplink]) -> None:
    """Each port is behind one uplink. Raises :class:`UserError`."""
    named: dict[tuple[str, str], tuple[Uplink, Member]] = {}
    for uplink in uplinks:
        for member in uplink.members:
            far = far_name(member.port)
            # A dpid has several forms; a short one may be the name of a bridge, too.
            bridge = f"{int(member.bridge, 16):x}" if _DPID.fullmatch(member.bridge) else member.bridge
            other, earlier = named.setdefault((bridge, far), (uplink, member))
            if earlier is not member:
                raise UserError(
                    f"[{UPLINK}{uplink.name}] {_text(member)}: its far queue and that of {_text(earlier)} of "
                    f"[{UPLINK}{other.name}] are both {far}",
                    "name each port once",
                )


def written(uplink: Uplink) -> dict[str, Value]:
    """An uplink as its section has it."""
    buffer: dict[str, Value] = {"buffer": str(uplink.buffer)} if uplink.buffer else {}
    ports = ", ".join(map(_text, uplink.members))
    return {"rate": f"{8 * uplink.rate}bit", **buffer, "share": uplink.share, "ports": ports}


def _text(member: Member) -> str:
    return f"{member.bridge}/{member.port}"


def _member(where: str, text: str) -> Member:
    bridge, _, port = text.partition("/")
    if not re.fullmatch(r"\S+", bridge) or not is_interface(port):
        raise UserError(f"{where}: ports: {text!r} is not the interface of a bridge", _PORTS)
    return Member(bridge, port)
