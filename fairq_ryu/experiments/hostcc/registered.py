"""A coupled control that several processes use: the first registers it, the last one's end unregisters it."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from ctypes import c_uint8, c_uint32, c_uint64
from typing import Any

from fairq_ryu.agent.bpf_info import MapInfo, map_info, program_maps
from fairq_ryu.agent.libbpf import BpfError, BpfObject, Map, load_library
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.hostcc import layout
from fairq_ryu.experiments.hostcc.controls import TABLE, loaded, offered
from fairq_ryu.experiments.hostcc.coupling import Coupling

_STRUCT_OPS_LINK = 9  # linux/bpf.h: BPF_LINK_TYPE_STRUCT_OPS
_ATTEMPTS = 3


class _LinkInfo(ctypes.Structure):
    """The beginning of ``struct bpf_link_info``."""

    _fields_ = (
        *(("type", c_uint32), ("id", c_uint32), ("program", c_uint32), ("unused", c_uint32)),
        *(("map", c_uint32), ("rest", c_uint8 * 60)),
    )


class SharedControl:
    """A registered coupled control, until `close` or the end of the process."""

    def __init__(self, name: str) -> None:
        """Register it, or hold the registration of another process. Raises :class:`BpfError` when the kernel
        refuses, :class:`~fairq_ryu.errors.UserError` when the object is missing, or another version has
        registered it.
        """
        self._lib = load_library()
        self._object: BpfObject | None = None
        self._held: list[int] = []
        for attempt in range(_ATTEMPTS):
            # Another process may register it, or end, at any moment.
            with contextlib.ExitStack() as stack:
                stack.callback(self.close)
                try:
                    self.coupling = self._join(name) if name in offered() else self._register(name)
                except BpfError:
                    if attempt == _ATTEMPTS - 1:
                        raise
                    continue
                stack.pop_all()
                return

    def _register(self, name: str) -> Coupling:
        self._object = loaded(name)
        self._object.register(TABLE)
        return Coupling.of(self._object)

    def _join(self, name: str) -> Coupling:
        wanted = name.encode() + b"\0"
        for link in self._links():
            info, size = _LinkInfo(), c_uint32(ctypes.sizeof(_LinkInfo))
            if self._lib.bpf_obj_get_info_by_fd(link, ctypes.byref(info), ctypes.byref(size)) != 0:
                raise BpfError("the kernel does not describe a registered congestion control")
            if info.type == _STRUCT_OPS_LINK:
                value = self._value(info.map)
                if wanted in value:
                    return self._coupling(value)
            self._drop(link)
        raise BpfError(f"{name} is registered, and its registration is not found")

    def _links(self) -> Iterator[int]:
        number = c_uint32(0)
        while self._lib.bpf_link_get_next_id(number, ctypes.byref(number)) == 0:
            descriptor = self._lib.bpf_link_get_fd_by_id(number)
            if descriptor >= 0:
                self._held.append(descriptor)
                yield descriptor

    def _value(self, number: int) -> bytes:
        """The table of operations of a link: with the numbers of programs in place of pointers."""
        table = self._lib.bpf_map_get_fd_by_id(number)
        if table < 0:
            raise BpfError("a map of a registered congestion control has gone")
        try:
            about = map_info(self._lib, table)
            if about is None:
                raise BpfError("the kernel does not describe a map of a registered congestion control")
            value = ctypes.create_string_buffer(about.value_size)
            result = self._lib.bpf_map_lookup_elem(table, ctypes.byref(c_uint32(0)), value)
        finally:
            os.close(table)
        return value.raw if result == 0 else b""

    def _coupling(self, table: bytes) -> Coupling:
        found: dict[str, tuple[int, MapInfo]] = {}
        for number in (c_uint64 * (len(table) // 8)).from_buffer_copy(table):
            maps = program_maps(self._lib, number) if number >> 32 == 0 else {}
            self._held += [descriptor for descriptor, _ in maps.values()]
            found |= maps
            if found.keys() >= {"members", "groups"}:
                return Coupling(
                    self._opened(*found["members"], layout.fq_cc_member_key, layout.fq_cc_member),
                    self._opened(*found["groups"], layout.fq_cc_group_key, layout.LockedGroup),
                )
        raise BpfError("the maps of a registered congestion control are not found")

    def _opened(self, descriptor: int, info: MapInfo, key: Any, value: Any) -> Map:
        """A map with entries of these types. The kernel writes as many bytes as the map says, wherever to."""
        if (info.key_size, info.value_size) != (ctypes.sizeof(key), ctypes.sizeof(value)):
            raise UserError(
                "the coupled control that runs here is of another version of fairq_ryu",
                "end every `fairq host` of this machine, and start them again",
            )
        return Map(self._lib, descriptor, info.name.decode(), key, value)

    def _drop(self, descriptor: int) -> None:
        self._held.remove(descriptor)
        os.close(descriptor)

    def close(self) -> None:
        """Let it go. A second call does nothing."""
        if self._object is not None:
            self._object.close()
            self._object = None
        while self._held:
            os.close(self._held.pop())
