"""Slots of ports: the numbers by which the programs find a port's entries in their arrays."""

from __future__ import annotations

from fairq_ryu.agent.libbpf import BpfError


class PortSlots:
    """At most ``capacity`` ports. Ports are interface indices."""

    def __init__(self, capacity: int) -> None:
        self._free = list(range(capacity - 1, -1, -1))
        self._slots: dict[int, int] = {}

    def __contains__(self, ifindex: int) -> bool:
        return ifindex in self._slots

    def __getitem__(self, ifindex: int) -> int:
        return self._slots[ifindex]

    def take(self, ifindex: int) -> int:
        """A free slot, for this port. Raises :class:`BpfError` if there is none, or if it has one."""
        if ifindex in self._slots:
            raise BpfError(f"port {ifindex} has a slot already")
        if not self._free:
            raise BpfError(
                f"{len(self._slots)} ports and transmit queues are watched already, as many as the setting "
                "[agent] ports allows: raise it and start the agent again"
            )
        slot = self._slots[ifindex] = self._free.pop()
        return slot

    def release(self, ifindex: int) -> None:
        """The port has gone."""
        slot = self._slots.pop(ifindex, None)
        if slot is not None:
            self._free.append(slot)
