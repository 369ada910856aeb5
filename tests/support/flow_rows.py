"""A flow map in memory, and the connections in it, as the window program records them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.flow_changes import FlowChanges
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.flow_map import KEY_WIDTH, FlowMap
from fairq_ryu.model import FlowKey

_C = layout.CONSTANTS
ESTABLISHED = _C["FQ_KNOWN"] | _C["FQ_ACK"] | _C["FQ_SEQ"]


class FakeMap:
    """An eBPF map of ``fq_flow_key`` and ``fq_flow``, which is read in parts of ``part`` entries."""

    def __init__(self, part: int = 3) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.part = part

    def parts(self) -> Iterator[tuple[bytes, bytes]]:
        keys = list(self.entries)
        for at in range(0, len(keys), self.part):
            some = [key for key in keys[at : at + self.part] if key in self.entries]
            yield b"".join(some), b"".join(self.entries[key] for key in some)

    def batches(self) -> tuple[bytes, bytes]:
        return b"".join(self.entries), b"".join(self.entries.values())

    def lookup_all(self, keys: bytes) -> tuple[bytes, bytes]:
        wanted = [keys[at : at + KEY_WIDTH] for at in range(0, len(keys), KEY_WIDTH)]
        found = [key for key in wanted if key in self.entries]
        return b"".join(found), b"".join(self.entries[key] for key in found)

    def set(self, key: Any, value: Any) -> None:
        self.entries[bytes(key)] = bytes(value)

    def delete(self, key: Any) -> bool:
        return self.entries.pop(bytes(key), None) is not None

    def delete_all(self, keys: bytes) -> int:
        return sum(self.delete(keys[at : at + KEY_WIDTH]) for at in range(0, len(keys), KEY_WIDTH))


class FlowRows:
    """A flow map on a bridge: port n has the interface 100 + n."""

    def __init__(self, ports: int = 4, part: int = 3) -> None:
        self.flows, self.silent = FakeMap(part), FakeMap()
        self.map: Any = FlowMap(self.flows, self.silent)  # type: ignore[arg-type]
        self.changes = FlowChanges(KEY_WIDTH)
        self.ofports = {100 + number: number for number in range(1, ports + 1)}

    def put(
        self,
        key: FlowKey,
        there: int,
        back: int,
        *,
        last: float = 0.0,
        flags: int = ESTABLISHED,
        packets: int = 1,
        **more: int,
    ) -> None:
        """A connection whose direction ``key`` leaves by port ``there`` and the other by ``back``; 0: not
        seen. ``more``: other fields of both directions.
        """
        state = layout.fq_flow()
        own = flow_key(key, directed=True).dir
        for direction, port in ((own, there), (1 - own, back)):
            end = state.dir[direction]
            end.out.ifindex, end.flags, end.packets = 100 + port if port else 0, flags, packets
            end.last_ns, end.mss, end.wscale = int(last * 1e9), 1460, 7
            for name, value in more.items():
                setattr(end, name, value)
        self.flows.set(flow_key(key), state)

    def remove(self, key: FlowKey) -> None:
        """It is evicted."""
        self.flows.delete(flow_key(key))
