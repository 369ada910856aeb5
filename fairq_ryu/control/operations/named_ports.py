"""Bridges and ports by what requests call them: the name of a bridge or its dpid, the name of a port's
interface or its number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.errors import UserError
from fairq_ryu.model import PortKey, dpid_text, short_dpid

# A port with its bridge, as `PortKey` writes it.
_NUMBERS = re.compile("[0-9a-f]{1,16}:[0-9]+")
# Names that an error lists.
_MOST_NAMES = 8


class NotHere(UserError):
    """There is no such bridge or port here; another controller may know it."""


@dataclass(eq=False)
class NamedPorts:
    """The bridges and ports of one controller. ``shared``: others have bridges, too."""

    fabric: FabricController
    windows: WindowController
    shared: bool = False

    def ports(self) -> list[PortKey]:
        """All ports that are known, in order."""
        found = {PortKey(dpid, number) for dpid, link in self.windows.links.items() for number in link.named}
        topology = self.fabric.topology
        found |= {key for dpid in topology.switches for key in topology.ports(dpid)}
        return sorted(found)

    def name(self, key: PortKey) -> str:
        """The name of a port's interface; "": it is not known."""
        return self.windows.modes.name(key) or self.fabric.names.get(key, "")

    def bridge(self, text: str) -> int:
        """The dpid of a bridge. Raises :class:`UserError` if there is none."""
        known, modes = sorted({*self.windows.links, *self.fabric.topology.switches}), self.windows.modes
        for dpid in known:
            if text and text == modes.bridge(dpid):
                return dpid
        for dpid in known:
            if text.lower() in (dpid_text(dpid), short_dpid(dpid)):
                return dpid
        names = [f"{modes.bridge(dpid) or 'bridge'} ({short_dpid(dpid)})" for dpid in known]
        raise NotHere(f"there is no bridge {text!r} here", _known("bridge", names))

    def port(self, text: str, dpid: int | None) -> PortKey:
        """A port of a bridge (None: of any). Raises :class:`UserError` if there is none, or more than one, or
        if another controller may have one as well.
        """
        if dpid is None and self.shared and not _NUMBERS.fullmatch(text):
            raise UserError(
                f"several controllers share the fabric, and more than one may have a port {text!r}",
                "name the bridge as well",
            )
        ports = [key for key in self.ports() if dpid in (None, key.dpid)]
        found = [key for key in ports if text and text == self.name(key)]
        if not found:
            found = [key for key in ports if text in (str(key.port), key.short, str(key))]
        if len(found) == 1:
            return found[0]
        if found:
            at = ", ".join(key.short for key in found[:_MOST_NAMES])
            raise UserError(f"there is more than one port {text!r}: {at}", "name the bridge as well")
        names = [f"{self.name(key) or 'port'} ({key.short})" for key in ports]
        where = "here" if dpid is None else f"at bridge {short_dpid(dpid)}"
        raise NotHere(f"there is no port {text!r} {where}", _known("port", names))


def _known(what: str, names: list[str]) -> str:
    if not names:
        return f"no {what} is connected yet"
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"known are {', '.join(names[:_MOST_NAMES])}{more}"
