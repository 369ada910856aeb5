"""What the kernel says of loaded programs and their maps."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_uint32, c_uint64
from typing import Any


class MapInfo(ctypes.Structure):
    """The head of ``struct bpf_map_info``."""

    _fields_ = [
        ("type", c_uint32),
        ("id", c_uint32),
        ("key_size", c_uint32),
        ("value_size", c_uint32),
        ("max_entries", c_uint32),
        ("map_flags", c_uint32),
        ("name", ctypes.c_char * 16),
    ]


class ProgInfo(ctypes.Structure):
    """The head of ``struct bpf_prog_info``, up to the name."""

    _fields_ = [
        ("type", c_uint32),
        ("id", c_uint32),
        ("tag", ctypes.c_uint8 * 8),
        ("jited_len", c_uint32),
        ("xlated_len", c_uint32),
        ("jited", c_uint64),
        ("xlated", c_uint64),
        ("load_time", c_uint64),
        ("uid", c_uint32),
        ("nr_map_ids", c_uint32),
        ("map_ids", c_uint64),
        ("name", ctypes.c_char * 16),
    ]


def map_info(lib: Any, fd: int) -> MapInfo | None:
    """What the kernel says of a map; None if the file descriptor is of no map."""
    about = MapInfo()
    size = c_uint32(ctypes.sizeof(about))
    if lib.bpf_obj_get_info_by_fd(fd, ctypes.byref(about), ctypes.byref(size)) != 0:
        return None
    return about


def program_id(lib: Any, fd: int) -> int:
    """The id of a program; 0 if the file descriptor is of no program."""
    info = ProgInfo()
    size = c_uint32(ctypes.sizeof(info))
    found = lib.bpf_obj_get_info_by_fd(fd, ctypes.byref(info), ctypes.byref(size)) == 0
    return int(info.id) if found else 0


def program_name(lib: Any, program: int) -> str:
    """The name of a program by its id; "" if it is not loaded any more, or without CAP_SYS_ADMIN."""
    fd = lib.bpf_prog_get_fd_by_id(program)
    if fd < 0:
        return ""
    try:
        info = ProgInfo()
        size = c_uint32(ctypes.sizeof(info))
        lib.bpf_obj_get_info_by_fd(fd, ctypes.byref(info), ctypes.byref(size))
        return str(info.name.decode(errors="replace"))
    finally:
        os.close(fd)


def program_maps(lib: Any, program_id: int) -> dict[str, tuple[int, MapInfo]]:
    """The maps that a loaded program uses: name -> (new file descriptor, info). The caller closes
    the descriptors. Empty if the program is not loaded any more, or without CAP_SYS_ADMIN.
    """
    program_fd = lib.bpf_prog_get_fd_by_id(program_id)
    if program_fd < 0:
        return {}
    try:
        ids = (c_uint32 * 64)()
        info = ProgInfo(nr_map_ids=len(ids), map_ids=ctypes.addressof(ids))
        size = c_uint32(ctypes.sizeof(info))
        if lib.bpf_obj_get_info_by_fd(program_fd, ctypes.byref(info), ctypes.byref(size)) != 0:
            return {}
        maps: dict[str, tuple[int, MapInfo]] = {}
        for map_id in ids[: min(info.nr_map_ids, len(ids))]:
            fd = lib.bpf_map_get_fd_by_id(map_id)
            if fd < 0:
                continue
            about = map_info(lib, fd)
            if about is None:
                os.close(fd)
                continue
            maps[about.name.decode()] = (fd, about)
        return maps
    finally:
        os.close(program_fd)
