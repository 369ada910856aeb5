"""Ring buffers: records that eBPF programs send to the agent, read through libbpf."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from ctypes import c_int, c_size_t, c_void_p
from typing import Any

from fairq_ryu.agent.libbpf import BpfError, Map

_SAMPLE_FN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)


class RingBuffer:
    """The reading end of a ring buffer map. Register :attr:`fd` for reading, then call :meth:`read`."""

    def __init__(self, lib: Any, ring: Map, take: Callable[[int, int], None]) -> None:
        """``take`` is called with address and length of each record, which are valid until it returns.

        Raises :class:`BpfError`.
        """
        lib.ring_buffer__new.restype = c_void_p
        lib.ring_buffer__new.argtypes = [c_int, _SAMPLE_FN, c_void_p, c_void_p]
        for name in ("ring_buffer__consume", "ring_buffer__epoll_fd"):
            getattr(lib, name).restype, getattr(lib, name).argtypes = c_int, [c_void_p]
        lib.ring_buffer__free.restype, lib.ring_buffer__free.argtypes = None, [c_void_p]
        self._lib, self._take = lib, take
        self._left = 0
        self._failure: Exception | None = None
        self._callback = _SAMPLE_FN(self._sample)  # libbpf keeps no reference
        self._ring: int | None = lib.ring_buffer__new(ring.fd, self._callback, None, None)
        if not self._ring:
            raise BpfError(f"cannot read ring buffer {ring.name}")
        self.fd = int(lib.ring_buffer__epoll_fd(self._ring))

    def _sample(self, _context: int | None, address: int | None, size: int) -> int:
        try:
            self._take(address or 0, size)
        except Exception as error:  # it cannot pass through C
            self._failure = error
            return -errno.EIO
        self._left -= 1
        return 0 if self._left > 0 else -errno.EAGAIN

    def read(self, limit: int) -> None:
        """Read at most ``limit`` records; the file descriptor stays readable while more wait.

        Raises what ``take`` raises.
        """
        if self._ring is None:
            return
        self._left = limit
        self._lib.ring_buffer__consume(self._ring)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Free the buffer. A second call does nothing."""
        if self._ring:
            self._lib.ring_buffer__free(self._ring)
        self._ring = None
