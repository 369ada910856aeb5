"""The eBPF map layout for Python, read from ``bpf/layout.h`` and its further parts:
``bpf/queue_law_layout.h``, and the header of each law, ``law.h`` in its folder.

The headers are the only source: their ``#define`` numbers become :data:`CONSTANTS`, its structs become
ctypes structures (:class:`fq_flow` is ``STRUCTS["fq_flow"]``, and so on). A test compares sizes and
offsets with what clang made of the same header.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairq_ryu.law_spec import Parameters
from fairq_ryu.laws.registry import FOLDER

BPF_DIR = Path(__file__).parent / "bpf"
HEADERS = BPF_DIR / "layout.h", BPF_DIR / "queue_law_layout.h", *sorted(FOLDER.glob("*/law.h"))

_SCALARS: dict[str, Any] = {
    "__u8": ctypes.c_uint8,
    "__u16": ctypes.c_uint16,
    "__u32": ctypes.c_uint32,
    "__u64": ctypes.c_uint64,
}
_DEFINE = re.compile(r"^#define\s+(\w+)\s+(\d+)\s*$", re.M)
_STRUCT = re.compile(r"struct\s+(\w+)\s*\{(.*?)\}\s*;", re.S)
_MEMBER = re.compile(r"^(?:struct\s+)?(\w+)\s+(\w+)(?:\[(\w+)\])?$")


class LayoutError(Exception):
    """The header has a construct that this reader does not know: change the header or the reader."""


def _strip_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def read_layout(text: str) -> tuple[dict[str, int], dict[str, type[ctypes.Structure]]]:
    """Constants and structures of a header like ``layout.h``.

    Raises :class:`LayoutError` for a member it cannot read, or a struct with hidden padding (its
    size would depend on the compiler).
    """
    text = _strip_comments(text)
    constants = {name: int(value) for name, value in _DEFINE.findall(text)}
    structs: dict[str, type[ctypes.Structure]] = {}
    for name, body in _STRUCT.findall(text):
        fields: list[tuple[str, Any]] = []
        for line in body.split(";"):
            member = " ".join(line.split())
            if not member:
                continue
            match = _MEMBER.match(member)
            if match is None:
                raise LayoutError(f"struct {name}: cannot read member {member!r}")
            type_name, field, count = match.groups()
            kind = _SCALARS.get(type_name) or structs.get(type_name)
            if kind is None:
                raise LayoutError(f"struct {name}: unknown type {type_name}")
            if count is not None:
                kind = kind * (constants[count] if count in constants else int(count))
            fields.append((field, kind))
        struct = type(name, (ctypes.Structure,), {"_fields_": fields})
        packed = sum(ctypes.sizeof(kind) for _, kind in fields)
        if packed != ctypes.sizeof(struct):
            raise LayoutError(f"struct {name}: {ctypes.sizeof(struct) - packed} bytes of hidden padding")
        structs[name] = struct
    return constants, structs


_DEFINED, STRUCTS = read_layout("".join(part.read_text(encoding="utf-8") for part in HEADERS))
CONSTANTS = {name: value for name, value in _DEFINED.items() if name.startswith("FQ_")}

# ctypes structures are built at run time, so their fields have no static types.
fq_config: Any = STRUCTS["fq_config"]
fq_queue_config: Any = STRUCTS["fq_queue_config"]
fq_far_queue: Any = STRUCTS["fq_far_queue"]
fq_hidden: Any = STRUCTS["fq_hidden"]
fq_least: Any = STRUCTS["fq_least"]
fq_flow_key: Any = STRUCTS["fq_flow_key"]
fq_flow: Any = STRUCTS["fq_flow"]
fq_port: Any = STRUCTS["fq_port"]
fq_rule: Any = STRUCTS["fq_rule"]
fq_shim_config: Any = STRUCTS["fq_shim_config"]
fq_shim_counts: Any = STRUCTS["fq_shim_counts"]
fq_shim_flow: Any = STRUCTS["fq_shim_flow"]
fq_counter: Any = STRUCTS["fq_counter"]
fq_law: Any = STRUCTS["fq_law"]
fq_port_law: Any = STRUCTS["fq_port_law"]
fq_law_state: Any = STRUCTS["fq_law_state"]
fq_arrivals: Any = STRUCTS["fq_arrivals"]
fq_law_input: Any = STRUCTS["fq_law_input"]
fq_round: Any = STRUCTS["fq_round"]
fq_queue: Any = STRUCTS["fq_queue"]
fq_queue_check: Any = STRUCTS["fq_queue_check"]
fq_histogram: Any = STRUCTS["fq_histogram"]
fq_threshold: Any = STRUCTS["fq_threshold"]
fq_threshold_event: Any = STRUCTS["fq_threshold_event"]
fq_ring_count: Any = STRUCTS["fq_ring_count"]
fq_drop: Any = STRUCTS["fq_drop"]
fq_copy_limit: Any = STRUCTS["fq_copy_limit"]
fq_copy_rule: Any = STRUCTS["fq_copy_rule"]
fq_copy_count: Any = STRUCTS["fq_copy_count"]
fq_copy_state: Any = STRUCTS["fq_copy_state"]
fq_copy: Any = STRUCTS["fq_copy"]
fq_taildrop: Any = STRUCTS["fq_taildrop"]
fq_turns: Any = STRUCTS["fq_turns"]
fq_turn_port: Any = STRUCTS["fq_turn_port"]
fq_turn_agent: Any = STRUCTS["fq_turn_agent"]
fq_held: Any = STRUCTS["fq_held"]
fq_leaving: Any = STRUCTS["fq_leaving"]
fq_law_flow: Any = STRUCTS["fq_law_flow"]
fq_law_ack: Any = STRUCTS["fq_law_ack"]
fq_queue_law: Any = STRUCTS["fq_queue_law"]
fq_port_queue_law: Any = STRUCTS["fq_port_queue_law"]
fq_queue_law_input: Any = STRUCTS["fq_queue_law_input"]
fq_queue_law_counts: Any = STRUCTS["fq_queue_law_counts"]
fq_queue_law_state: Any = STRUCTS["fq_queue_law_state"]
fq_locked_queue_law: Any = STRUCTS["fq_locked_queue_law"]
fq_codel: Any = STRUCTS["fq_codel"]
fq_flow_table: Any = STRUCTS["fq_flow_table"]
fq_sfb_bins: Any = STRUCTS["fq_sfb_bins"]
fq_depth: Any = STRUCTS["fq_depth"]
fq_owner_key: Any = STRUCTS["fq_owner_key"]
fq_tenant: Any = STRUCTS["fq_tenant"]
fq_tenant_key: Any = STRUCTS["fq_tenant_key"]
fq_tenant_port: Any = STRUCTS["fq_tenant_port"]
fq_port_tenants: Any = STRUCTS["fq_port_tenants"]


def own(name: str, common: Any) -> Any:
    """What a kind of law has of its own within a common structure: its ``struct NAME``."""
    return STRUCTS[name].from_buffer(common, type(common).own.offset)


def fill(struct: Any, values: Mapping[str, int | Mapping[str, int]]) -> None:
    """Set fields of a structure; those of one within it by its names."""
    for name, value in values.items():
        if isinstance(value, int):
            setattr(struct, name, value)
        else:
            fill(getattr(struct, name), value)


def fill_own(law: Parameters, common: Any, limit: int, rate: int) -> None:
    """Set what a law has of its own on a port with this buffer (bytes) and rate (bytes/s)."""
    values = law.own(limit, rate)
    if values:
        fill(own(f"{law.name}_law", common), values)


LITTLE_ENDIAN = sys.byteorder == "little"
BUCKETS = CONSTANTS["FQ_BUCKETS"]


def histogram_bounds(index: int) -> tuple[int, int]:
    """Depths in bytes, ``(lowest, highest)``, that fall into a bin of ``fq_histogram``.

    The inverse of ``fq_bin()`` in ``lib/histogram.h``: 16 bins to the octave; the last takes all above.
    """
    if index < 16:
        return index, index
    octave, step = divmod(index, 16)
    width = 1 << (octave - 1)
    low = (16 + step) * width
    return low, low + width - 1


def active_flows(port: Any, now_ns: int, bucket_ns: int) -> int:
    """Flows active on a port (an ``fq_port``) at ``now_ns``, counted as the eBPF program does."""
    return counted_flows(port.active, now_ns, bucket_ns)


def counted_flows(buckets: Any, now_ns: int, bucket_ns: int) -> int:
    """Flows in a count of a port (``fq_port.active``, ``sharing``, ``young``) at ``now_ns``."""
    epoch = (now_ns // bucket_ns) & 0xFFFFFFFF
    count = 0
    for bucket in buckets:
        stamp = bucket >> 32
        if stamp and (epoch - stamp) & 0xFFFFFFFF < BUCKETS:
            count += bucket & 0xFFFFFFFF
    return count


def merged_ports(ifindex: int, states: list[Any]) -> Any:
    """The counters of several ``fq_port`` as those of one port: sums. Of a count of flows, which is in
    buckets of time, a bucket has the flows of its latest time.
    """
    made = fq_port(ifindex=ifindex)
    for name, kind in fq_port._fields_:
        if hasattr(kind, "_length_"):
            for place, found in enumerate(zip(*(getattr(each, name) for each in states), strict=True)):
                stamp = max(each >> 32 for each in found)
                count = sum(each & 0xFFFFFFFF for each in found if each >> 32 == stamp)
                getattr(made, name)[place] = stamp << 32 | count
        elif name not in ("ifindex", "bridge"):
            setattr(made, name, sum(getattr(each, name) for each in states))
    return made
