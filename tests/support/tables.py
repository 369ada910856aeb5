"""Maps of eBPF programs, without a kernel."""

from __future__ import annotations

from typing import Any

from fairq_ryu.agent.libbpf import BpfError


class Table(dict[int, Any]):
    """A map with a number as its key; ``full`` makes it refuse entries."""

    full = False

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key.value, default)

    def set(self, key: Any, value: Any) -> None:
        if self.full:
            raise BpfError("no room")
        self[key.value] = value

    def delete(self, key: Any) -> None:
        self.pop(key.value, None)
