"""The tables of the window channel: its numbers, messages, layouts and errors."""

from __future__ import annotations

import importlib
import pkgutil
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ryu.ofproto import ofproto_v1_3 as ofp

from docs.generate.marks import ROOT, Old, Rows
from fairq_ryu import channel
from fairq_ryu.agent import window_channel
from fairq_ryu.channel import oxm
from fairq_ryu.channel.dispatch import DispatchTable
from fairq_ryu.control.arrivals import agent_messages
from fairq_ryu.law_spec import LawSpec, Parameters
from fairq_ryu.laws.registry import queue_laws, window_laws
from fairq_ryu.model import WindowKind
from fairq_ryu.queue_law_spec import QueueLawSpec

MODULES: Mapping[str, Any] = {
    each.name: importlib.import_module(f"{channel.__name__}.{each.name}")
    for each in pkgutil.iter_modules(channel.__path__)
}
"""The modules of the channel."""
Bounds: TypeAlias = tuple[int, int]


def _named(path: str) -> Any:
    """``MODULE.NAME`` of the channel."""
    module, _, name = path.partition(".")
    return getattr(MODULES[module], name)


# Numbers


def numbers(_old: Old) -> Rows:
    """Those that are no message's."""
    cookies = [
        (name.replace("_", " "), value)
        for name, module in MODULES.items()
        for constant, value in vars(module).items()
        if constant.startswith("COOKIE_")
    ]
    return [
        ("what", "value"),
        ("experimenter id", f"`{oxm.EXPERIMENTER_ID:#010x}`"),
        ("datapath id marker", f"`{oxm.DPID_MARKER:#06x}`"),
        *((f"OXM field `{kind.field}`", str(kind.oxm_number)) for kind in WindowKind),
        *((f"cookie of PACKET_INs: {name}", f"`{value:#x}`") for name, value in cookies),
    ]


def messages(_old: Old) -> Rows:
    """The messages with the project's experimenter id, from the tables of the two ends that receive them."""
    ends: tuple[tuple[str, int, DispatchTable[Any, Any]], ...] = (
        ("message", 0, window_channel._COMMANDS),
        ("multipart", 0, window_channel._REQUESTS),
        ("message", 1, agent_messages._NOTIFICATIONS),
        ("multipart", 1, agent_messages._REPLIES),
    )
    found: dict[tuple[int, str], list[str]] = {}
    for kind, end, table in ends:
        for number, route in table._routes.items():
            row = found.setdefault((number, kind), ["", "", ""])
            row[end] = route.incoming.name
            row[2] = f"`{route.incoming.decode.__module__.rpartition('.')[2]}`"
    head = ("number", "kind", "controller to agent", "agent to controller", "module")
    return [head, *((str(number), kind, *row) for (number, kind), row in sorted(found.items()))]


# Layouts


def _sizes(part: str) -> Iterator[tuple[int, bool]]:
    """The size of each field of a struct of the channel, or a size, and whether it is padding."""
    layout = _named(part)
    if isinstance(layout, int):
        yield layout, False
        return
    for count, code in re.findall(r"(\d*)(x+|\w)", layout.format.lstrip("!")):
        if code == "s" or code.startswith("x"):
            yield int(count or 1) * len(code), code != "s"
        else:
            yield from [(struct.calcsize(f"!{code}"), False)] * int(count or 1)


def _with_bounds(text: str, least: int, most: int) -> str:
    """The text with these bounds in the place of the last ones that it has, or else at its end."""
    found = re.findall(r"\b\d[\d,]* to \d[\d,]*\b", text) or [""]
    head, _, tail = text.rpartition(found[-1]) if found[-1] else (f"{text}, ", "", "")
    return f"{head}{least:,} to {most:,}{tail}"


def _layout(old: Old, parts: Iterable[str], names: Mapping[int, str], bounds: Mapping[str, Bounds]) -> Rows:
    """The fields, with the texts of the page: of fields that have names, by name; of others, by place. The
    bounds of a field are written where its text has some, or at the end.
    """
    texts = [row[-1] for row in old.rows if row[-1] != "padding"]
    sizes = [size for part in parts for size in _sizes(part)]
    count = sum(not padding for _, padding in sizes)
    if len(texts) != count:
        raise ValueError(f"the code has {count} fields, and the page describes {len(texts)}: change the rows")
    rows, offset, place = [], 0, 0
    for size, padding in sizes:
        text = "padding"
        if not padding:
            text, name, place = texts[place], names.get(place, ""), place + 1
            if name:
                text = next((each for each in texts if re.match(rf"{name}\b", each)), "")
            if not text:
                raise ValueError(f"no row begins with the name of the field {name}")
            if name in bounds:
                text = _with_bounds(text, *bounds[name])
        rows.append((str(offset), str(size), text))
        offset += size
    return [("offset", "size", "field"), *rows]


def layout(old: Old, *words: str) -> Rows:
    """``layout STRUCT ...``; ``layout STRUCT ... names MODULE.TUPLE``: its fields are those of the wire."""
    parts, names = (words[:-2], _named(words[-1])._fields) if "names" in words else (words, ())
    return _layout(old, parts, dict(enumerate(names)), getattr(MODULES[words[0].split(".")[0]], "BOUNDS", {}))


_KINDS: Mapping[str, tuple[type[Parameters], Callable[[], Mapping[int, type[Parameters]]]]] = {
    "window_law": (LawSpec, window_laws),
    "queue_law": (QueueLawSpec, queue_laws),
}


def law(old: Old, module: str) -> Rows:
    """The part of SET_LAW or SET_QUEUE_LAW that all kinds have."""
    common, kinds = _KINDS[module]
    part = "window_law._SET"
    head = _layout(Old(old.head, old.rows[: len(list(_sizes(part)))]), [part], {}, {})
    numbers = ", ".join(f"{number} `{kind.name}`" for number, kind in kinds().items())
    rows = [(*row[:2], f"kind: {numbers}" if row[2].startswith("kind:") else row[2]) for row in head]
    return rows + [row[1:] for row in _parameters(common, 0)]


def law_kinds(old: Old, module: str) -> Rows:
    """The parameters that the kinds have of their own."""
    common, kinds = _KINDS[module]
    shared = len(common.parameters())
    rows: Rows = [("kind", "offset", "size", "field")]
    for kind in kinds().values():
        rows += _parameters(kind, shared)
        end = _named("window_law._SET").size + kind.layout().size
        rows.append((f"`{kind.name}`", str(end), "", "end"))
    return rows


def _parameters(kind: type[Parameters], first: int) -> Rows:
    rows: Rows = []
    offset = _named("window_law._SET").size
    for place, (name, code, least, most, text) in enumerate(kind.parameters()):
        size = struct.calcsize(f"!{code}")
        if place >= first:
            bounds = f"{name}: {text}, {least:,} to {most:,}"
            rows.append((f"`{getattr(kind, 'name', '')}`", str(offset), str(size), bounds))
        offset += size
    return rows


def segment_counts(old: Old) -> Rows:
    """The groups and items of segment counts; the page describes the groups."""
    module = MODULES["segment_counts"]
    outcomes = ", ".join(f"{item} {name}" for item, name in enumerate(module.OUTCOMES))
    reasons = ", ".join(f"{item} {reason}" for item, reason in module.REASONS.items())
    items = outcomes, f"0 sent; not sent, because: {reasons}", "0"
    return [old.head, *((row[0], text) for row, text in zip(old.rows, items, strict=True))]


# Errors


# By the prefix of its codes in Ryu.
_TYPES = {
    "HFC": "HELLO_FAILED", "BRC": "BAD_REQUEST", "BAC": "BAD_ACTION", "BIC": "BAD_INSTRUCTION",
    "BMC": "BAD_MATCH", "FMFC": "FLOW_MOD_FAILED", "QOFC": "QUEUE_OP_FAILED", "RRFC": "ROLE_REQUEST_FAILED",
}  # fmt: skip


def errors(old: Old) -> Rows:
    """OpenFlow's errors that agents send, by type and code."""
    used: set[tuple[str, str]] = set()
    for folder in ("agent", "channel"):
        for path in (ROOT / "fairq_ryu" / folder).glob("*.py"):
            used.update(re.findall(rf"\bOFP({'|'.join(_TYPES)})_(\w+)", path.read_text(encoding="utf-8")))
    texts = {row[1:]: row[0] for row in old.rows}
    rows = []
    for prefix, code in used:
        numbers_of = getattr(ofp, f"OFPET_{_TYPES[prefix]}"), getattr(ofp, f"OFP{prefix}_{code}")
        key = f"{_TYPES[prefix]} ({numbers_of[0]})", f"{code} ({numbers_of[1]})"
        if key not in texts:
            raise ValueError(f"no row describes {' '.join(key)}: add one")
        rows.append((numbers_of, (texts[key], *key)))
    return [old.head, *(row for _, row in sorted(rows))]


def error_codes(old: Old) -> Rows:
    """The codes of the project's own errors."""
    codes = {code for module in MODULES.values() for code in getattr(module, "ERRORS", ())}
    return [old.head, *((str(code), *old.texts(str(code))) for code in sorted(codes))]
