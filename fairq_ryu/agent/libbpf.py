"""A thin layer over libbpf (ctypes): open, size, load, attach, and read and write maps.

Works with libbpf 0.5 (``libbpf.so.0``) and later. Everything raises :class:`BpfError` with libbpf's
own message when the kernel refuses.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError

_LAST_LINES = 12
_BATCH = 2048
_NOEXIST = 1  # linux/bpf.h: BPF_NOEXIST
_F_LINK = 1 << 13  # linux/bpf.h: the table is registered by a link, since Linux 6.4
_STRUCT_OPS = 44  # linux/bpf.h: the attachment type


class BpfError(Exception):
    """The kernel or libbpf refused a call; the message names the call and the reason."""


_PRINT_FN = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)
_log: list[str] = []
_libc = ctypes.CDLL(None, use_errno=True)


def _vprint(level: int, fmt: bytes, args: int | None) -> int:
    # libbpf explains every refusal here; keep the last lines for the error message.
    if level > 1:
        return 0
    buffer = ctypes.create_string_buffer(8192)
    _libc.vsnprintf(buffer, c_size_t(len(buffer)), fmt, c_void_p(args))
    _log.extend(buffer.value.decode(errors="replace").splitlines())
    del _log[:-_LAST_LINES]
    return 0


_PRINT = _PRINT_FN(_vprint)


def load_library() -> Any:
    """The libbpf shared library. Raises :class:`UserError` when there is none."""
    for name in ("libbpf.so.1", "libbpf.so.0"):
        try:
            lib = ctypes.CDLL(name, use_errno=True)
        except OSError:
            continue
        _declare(lib)
        lib.libbpf_set_print(_PRINT)
        return lib
    raise UserError("libbpf is not installed", "apt-get install libbpf1 (or libbpf0)")


def _declare(lib: Any) -> None:
    ptr, fd = c_void_p, c_int
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "libbpf_set_print": (c_void_p, [_PRINT_FN]),
        "bpf_object__open_file": (ptr, [c_char_p, c_void_p]),
        "bpf_object__load": (c_int, [ptr]),
        "bpf_object__close": (None, [ptr]),
        "bpf_object__find_map_by_name": (ptr, [ptr, c_char_p]),
        "bpf_object__find_program_by_name": (ptr, [ptr, c_char_p]),
        "bpf_map__set_max_entries": (c_int, [ptr, c_uint32]),
        "bpf_map__set_map_flags": (c_int, [ptr, c_uint32]),
        "bpf_map__reuse_fd": (c_int, [ptr, fd]),
        "bpf_map__fd": (c_int, [ptr]),
        "bpf_map__name": (c_char_p, [ptr]),
        "bpf_program__fd": (c_int, [ptr]),
        "bpf_program__name": (c_char_p, [ptr]),
        "bpf_program__set_autoload": (c_int, [ptr, c_bool]),
        "bpf_program__attach": (ptr, [ptr]),
        "bpf_link__destroy": (c_int, [ptr]),
        "bpf_map__attach_struct_ops": (ptr, [ptr]),
        "bpf_link_create": (c_int, [fd, fd, c_uint32, c_void_p]),
        "bpf_map_lookup_elem": (c_int, [fd, c_void_p, c_void_p]),
        "bpf_map_update_elem": (c_int, [fd, c_void_p, c_void_p, c_uint64]),
        "bpf_map_delete_elem": (c_int, [fd, c_void_p]),
        "bpf_map_get_next_key": (c_int, [fd, c_void_p, c_void_p]),
        "bpf_map_lookup_batch": (
            c_int,
            [fd, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_uint32), c_void_p],
        ),
        "bpf_map_delete_batch": (c_int, [fd, c_void_p, POINTER(c_uint32), c_void_p]),
        "bpf_link_get_next_id": (c_int, [c_uint32, POINTER(c_uint32)]),
        "bpf_link_get_fd_by_id": (c_int, [c_uint32]),
        "bpf_prog_get_fd_by_id": (c_int, [c_uint32]),
        "bpf_map_get_fd_by_id": (c_int, [c_uint32]),
        "bpf_obj_get_info_by_fd": (c_int, [fd, c_void_p, POINTER(c_uint32)]),
    }
    for name in ("bpf_object__next_map", "bpf_object__next_program", "bpf_map__next", "bpf_program__next"):
        if hasattr(lib, name):  # two of them, by version
            signatures[name] = (ptr, [ptr, ptr])
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


def error_code(result: int) -> int:
    """The errno of a failed call: libbpf 1 sets errno, libbpf 0 returns it negated."""
    return -result if result < -1 else (ctypes.get_errno() or errno.EIO)


def failure(what: str, code: int) -> BpfError:
    """The error to raise: what failed, its errno in words, and what libbpf has logged since the last call."""
    logged = "; ".join(line for line in _log if line)
    clear_log()
    return BpfError(f"{what}: {os.strerror(code)}" + (f" ({logged})" if logged else ""))


def in_short(error: Exception | str) -> str:
    """An error without what the verifier has logged, but with its reason: the last line before its counts."""
    text = str(error)
    reason = re.search(r"([^;(]+); processed \d+ insns", text)
    return f"{text.partition(' (')[0]}: {reason[1].strip()}" if reason else text


def clear_log() -> None:
    """Forget what libbpf has logged: the call did not fail, or its failure is expected."""
    _log.clear()


def _valid(pointer: int | None) -> bool:
    # libbpf 0 returns errors as pointers in the last page.
    return bool(pointer) and int(pointer or 0) < 2**64 - 4096


def _makes_links(lib: Any) -> bool:
    """Whether libbpf links a table of operations by itself: since 1.2."""
    # Before 0.7, it has no such functions.
    return hasattr(lib, "libbpf_minor_version") and (
        (int(lib.libbpf_major_version()), int(lib.libbpf_minor_version())) >= (1, 2)
    )


def _next(lib: Any, what: str, of: int, previous: int | None) -> int | None:
    """The map or program that follows ``previous`` in an object; None: there is none."""
    found: int | None
    if hasattr(lib, f"bpf_object__next_{what}"):
        found = getattr(lib, f"bpf_object__next_{what}")(of, previous)
    else:  # before libbpf 0.6 or 0.7
        found = getattr(lib, f"bpf_{what}__next")(previous, of)
    return found


class Map:
    """A map of a loaded object: keys and values are ctypes structures or integers' bytes."""

    def __init__(self, lib: Any, fd: int, name: str, key: Any, value: Any) -> None:
        self._lib, self.fd, self.name, self._key, self._value = lib, fd, name, key, value

    def get(self, key: Any) -> Any | None:
        """The value of ``key``, or None."""
        value = self._value()
        result = self._lib.bpf_map_lookup_elem(self.fd, ctypes.byref(key), ctypes.byref(value))
        return value if result == 0 else None

    def set(self, key: Any, value: Any) -> None:
        """Write an entry. Raises :class:`BpfError`, as when the map is full."""
        result = self._lib.bpf_map_update_elem(self.fd, ctypes.byref(key), ctypes.byref(value), 0)
        if result != 0:
            raise failure(f"cannot write to eBPF map {self.name}", error_code(result))

    def add(self, key: Any, value: Any) -> bool:
        """Write an entry if there is none yet; False if there is one, or no room."""
        result = self._lib.bpf_map_update_elem(self.fd, ctypes.byref(key), ctypes.byref(value), _NOEXIST)
        return int(result) == 0

    def delete(self, key: Any) -> bool:
        """Remove an entry; False if there was none."""
        return int(self._lib.bpf_map_delete_elem(self.fd, ctypes.byref(key))) == 0

    def delete_all(self, keys: bytes) -> int:
        """Remove the entries of these keys, which are concatenated, by few system calls. Returns how many
        there were.
        """
        width = ctypes.sizeof(self._key)
        given = ctypes.create_string_buffer(keys, len(keys))
        number, at, gone = len(keys) // width, 0, 0
        while at < number:
            count = c_uint32(number - at)
            here = c_void_p(ctypes.addressof(given) + at * width)
            result = self._lib.bpf_map_delete_batch(self.fd, here, ctypes.byref(count), None)
            # The kernel stops at a key without an entry, and says how many it has removed before.
            gone += count.value
            at += count.value + (result != 0)
        return gone

    def keys(self) -> Iterator[Any]:
        """All keys. Entries that are added or removed meanwhile may or may not be returned."""
        key, following = None, self._key()
        while True:
            pointer = ctypes.byref(key) if key is not None else None
            if self._lib.bpf_map_get_next_key(self.fd, pointer, ctypes.byref(following)) != 0:
                return
            key = self._key.from_buffer_copy(following)
            yield self._key.from_buffer_copy(following)

    def batches(self) -> tuple[bytes, bytes]:
        """All entries, keys and values each in one piece, by few system calls; caveat as for :meth:`keys`.

        Raises :class:`BpfError`.
        """
        parts = list(self.parts())
        return b"".join(keys for keys, _ in parts), b"".join(values for _, values in parts)

    def parts(self) -> Iterator[tuple[bytes, bytes]]:
        """The same in parts of a few thousand entries, read when they are asked for. No entry is in two
        parts.

        Python's other threads run during a system call, which takes long in a large map with few entries.
        """
        size = _BATCH
        # A hash map's cursor is the number of a bucket: 4 bytes; room for a key is enough for every kind of
        # map.
        cursor = ctypes.create_string_buffer(max(4, ctypes.sizeof(self._key)))
        begun = False
        while True:
            some_keys, some_values = (self._key * size)(), (self._value * size)()
            count = c_uint32(size)
            result = self._lib.bpf_map_lookup_batch(
                self.fd, cursor if begun else None, cursor, some_keys, some_values, ctypes.byref(count), None
            )
            code = 0 if result == 0 else error_code(result)
            if code == errno.ENOSPC:
                size *= 2  # one bucket has more entries than this
                continue
            if code not in (0, errno.ENOENT):
                raise failure(f"cannot read eBPF map {self.name}", code)
            yield (
                bytes(memoryview(some_keys).cast("B")[: count.value * ctypes.sizeof(self._key)]),
                bytes(memoryview(some_values).cast("B")[: count.value * ctypes.sizeof(self._value)]),
            )
            if code == errno.ENOENT:
                return
            begun = True

    def lookup_all(self, keys: bytes) -> tuple[bytes, bytes]:
        """The entries of these keys, which are concatenated: of those that exist, keys and values each in one
        piece.
        """
        width, size = ctypes.sizeof(self._key), ctypes.sizeof(self._value)
        wanted = ctypes.create_string_buffer(keys, len(keys))
        values = ctypes.create_string_buffer(max(1, len(keys) // width * size))
        here, there = ctypes.addressof(wanted), ctypes.addressof(values)
        look, fd = self._lib.bpf_map_lookup_elem, self.fd
        kept: list[bytes] = []
        for at in range(0, len(keys), width):
            if look(fd, c_void_p(here + at), c_void_p(there + len(kept) * size)) == 0:
                kept.append(keys[at : at + width])
        return b"".join(kept), values.raw[: len(kept) * size]

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All entries, with the caveat of :meth:`keys`."""
        for key in self.keys():
            value = self.get(key)
            if value is not None:
                yield key, value


_remembered: dict[Path, bytes] = {}


def remember_objects(paths: Iterable[Path]) -> None:
    """From now on, none of these compiled objects is loaded if it has changed: its programs may belong to
    another version, and would share the maps of those that run.
    """
    _remembered.update({path: _digest(path) for path in paths})


def _digest(path: Path) -> bytes:
    return hashlib.blake2b(path.read_bytes()).digest()


class BpfObject:
    """A compiled object, loaded into the kernel. Close it to free programs and maps."""

    def __init__(
        self,
        lib: Any,
        path: Path,
        sizes: dict[str, int],
        reuse: dict[str, int] | None = None,
        operations: str = "",
        later: Iterable[str] = (),
    ) -> None:
        """Load ``path``; ``sizes`` gives maps their number of entries; ``reuse`` gives maps the file
        descriptor of an existing map instead; ``operations`` names the object's table of operations (a
        struct_ops map), for `register`; ``later`` names programs that are not loaded before `program_fd`
        asks for them, because the kernel takes long to verify a program. Raises :class:`UserError` when the
        file is missing, :class:`BpfError` when the kernel refuses.
        """
        if not path.exists():
            raise UserError(
                f"the compiled eBPF object {path.name} is missing", "make bpf, or reinstall the package"
            )
        if _remembered.get(path) not in (None, _digest(path)):
            raise BpfError(
                f"the eBPF object {path.name} has changed since the agent began: start the agent again"
            )
        self._lib, self._path = lib, path
        self._links: list[int] = []
        self._registered = -1
        self._later: dict[str, BpfObject | None] = dict.fromkeys(later)
        self._object = lib.bpf_object__open_file(str(path).encode(), None)
        if not _valid(self._object):
            raise failure(f"cannot read eBPF object {path.name}", error_code(-1))
        for name, entries in sizes.items():
            lib.bpf_map__set_max_entries(self._find_map(name), entries)
        for name, fd in (reuse or {}).items():
            result = lib.bpf_map__reuse_fd(self._find_map(name), fd)
            if result != 0:
                raise failure(f"cannot take over eBPF map {name}", error_code(result))
        if operations:
            lib.bpf_map__set_map_flags(self._find_map(operations), _F_LINK)
        for name in self._later:
            lib.bpf_program__set_autoload(self._find_program(name), False)
        result = lib.bpf_object__load(self._object)
        if result != 0:
            error = failure(f"the kernel refused eBPF object {path.name}", error_code(result))
            self.close()
            raise error

    def _find_map(self, name: str) -> int:
        pointer = self._lib.bpf_object__find_map_by_name(self._object, name.encode())
        if not _valid(pointer):
            raise BpfError(f"the eBPF object has no map {name}")
        return int(pointer)

    def map(self, name: str, key: Any, value: Any) -> Map:
        """A map by its name; ``key`` and ``value`` are ctypes types."""
        return Map(self._lib, int(self._lib.bpf_map__fd(self._find_map(name))), name, key, value)

    def _find_program(self, name: str) -> int:
        pointer = self._lib.bpf_object__find_program_by_name(self._object, name.encode())
        if not _valid(pointer):
            raise BpfError(f"the eBPF object has no program {name}")
        return int(pointer)

    def _names(self, what: str) -> list[str]:
        """The names of its maps (``what`` is ``map``) or programs (``program``)."""
        found: list[str] = []
        at: int | None = None
        while at := _next(self._lib, what, self._object, at):
            found.append(getattr(self._lib, f"bpf_{what}__name")(at).decode())
        return found

    def program_fd(self, name: str) -> int:
        """The file descriptor of a program, which is loaded now if that was left for later. Raises
        :class:`BpfError`.
        """
        if name not in self._later:
            return int(self._lib.bpf_program__fd(self._find_program(name)))
        loaded = self._later[name]
        if loaded is None:
            maps = {each: int(self._lib.bpf_map__fd(self._find_map(each))) for each in self._names("map")}
            others = set(self._names("program")) - {name}
            loaded = self._later[name] = BpfObject(self._lib, self._path, {}, maps, later=others)
        return loaded.program_fd(name)

    def attach(self, name: str) -> None:
        """Attach a tracing program to the tracepoint of its section, until the object is closed."""
        link: int | None = self._lib.bpf_program__attach(self._find_program(name))
        if link is None or not _valid(link):
            raise failure(f"cannot attach eBPF program {name}", error_code(-1))
        self._links.append(link)

    def register(self, name: str) -> None:
        """Register the table of operations that was named when the object was loaded, until the object is
        closed or this process ends, however it ends. Raises :class:`BpfError`.
        """
        pointer = self._find_map(name)
        link: int | None = self._lib.bpf_map__attach_struct_ops(pointer)
        if link is None or not _valid(link):
            raise failure(f"cannot register {name}", error_code(-1))
        self._links.append(link)
        if _makes_links(self._lib):
            return
        # Older libraries only fill the map in, and the kernel registers what has a link.
        self._registered = self._lib.bpf_link_create(self._lib.bpf_map__fd(pointer), 0, _STRUCT_OPS, None)
        if self._registered < 0:
            raise failure(f"cannot register {name}", error_code(self._registered))

    def detach_all(self) -> None:
        """Detach the tracing programs, and unregister."""
        if self._registered >= 0:
            os.close(self._registered)
            self._registered = -1
        for link in self._links:
            self._lib.bpf_link__destroy(link)
        self._links.clear()

    def close(self) -> None:
        """Detach tracing programs, unregister, and free the object. A second call does nothing."""
        self.detach_all()
        for each in self._later.values():
            if each is not None:
                each.close()
        self._later.clear()
        if self._object:
            self._lib.bpf_object__close(self._object)
            self._object = None
