"""eBPF filters at tc egress (or ingress) of ports, and the clsact qdiscs that carry them."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
from collections.abc import Callable
from ctypes import POINTER, c_int, c_size_t, c_uint32
from functools import partial
from typing import Any, NamedTuple

from fairq_ryu.agent import tcx
from fairq_ryu.agent.bpf_info import program_id
from fairq_ryu.agent.libbpf import BpfError, clear_log, error_code, failure
from fairq_ryu.agent.qdisc import has_filters
from fairq_ryu.agent.rtnetlink import egress_filters, filter_qdisc, ingress_filters
from fairq_ryu.agent.tcx import TcxLink
from fairq_ryu.errors import plain

log = logging.getLogger(__name__)
INGRESS = 1
"""Where a device hands packets to the stack of this machine."""
EGRESS = 2
"""Where packets leave by a device."""
_REPLACE = 1
# What could not be detached yet: how, by priority, interface and point.
_left: dict[tuple[int, int, int], Callable[[], None]] = {}


def detach_left() -> None:
    """Detach what could not be detached before, because there was no file descriptor for it."""
    for detach in list(_left.values()):
        detach()


def _now_or_later(place: tuple[int, int, int], detach: Callable[[], None]) -> None:
    """Detach now, or else by :func:`detach_left`: what a caller does next to a removed port has to go on."""
    try:
        detach()
    except OSError as error:
        if place not in _left:
            log.warning("interface %d: a filter cannot be removed yet: %s", place[1], error)
        _left[place] = partial(_now_or_later, place, detach)
    else:
        _left.pop(place, None)


def _check_descriptors(result: int) -> None:
    """Whatever else prevents that something is removed, it is not there: that is no error."""
    if result != 0 and error_code(result) in (errno.EMFILE, errno.ENFILE):
        raise OSError(error_code(result), os.strerror(error_code(result)))


class _TcHook(ctypes.Structure):
    """``struct bpf_tc_hook``."""

    _fields_ = [
        ("sz", c_size_t),
        ("ifindex", c_int),
        ("attach_point", c_int),
        ("parent", c_uint32),
        ("tail", c_uint32),
    ]


class _TcOpts(ctypes.Structure):
    """``struct bpf_tc_opts``."""

    _fields_ = [
        ("sz", c_size_t),
        ("prog_fd", c_int),
        ("flags", c_uint32),
        ("prog_id", c_uint32),
        ("handle", c_uint32),
        ("priority", c_uint32),
        ("tail", c_uint32),
    ]


def _declare(lib: Any) -> None:
    hook, opts = POINTER(_TcHook), POINTER(_TcOpts)
    for name, arguments in {
        "bpf_tc_hook_create": [hook],
        "bpf_tc_hook_destroy": [hook],
        "bpf_tc_attach": [hook, opts],
        "bpf_tc_detach": [hook, opts],
        "bpf_tc_query": [hook, opts],
    }.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = c_int, arguments


class NoPlaceError(BpfError):
    """An interface has no place for filters at egress, because its qdisc for filters is of kind ingress."""


INGRESS_QDISC = (
    "its ingress qdisc (of policing, libvirt, Neutron or hw-offload) is in the place of clsact, the qdisc "
    "that carries filters at egress"
)
UNPOLICED = (
    "Open vSwitch cannot police it (ingress_policing_rate; its log says File exists), because the qdisc "
    "clsact is in the place of the ingress qdisc. End the agent, delete the port from the bridge, add it "
    "again and start the agent: from Linux 6.6 it does without clsact there"
)
NO_PLACE = f"{INGRESS_QDISC}, and only Linux 6.6 or later has another place for them"


class _Attached(NamedTuple):
    """A filter as it was attached: ``id`` is that of its program."""

    program_fd: int
    point: int
    id: int


class TcFilter:
    """One eBPF filter at tc egress of interfaces, or at ingress, at a fixed priority and handle. ``point`` is
    :data:`EGRESS` or :data:`INGRESS`.

    ``program``: the name of its program, where others may use the priority; their filters stay. "": nobody
    else uses it.
    """

    def __init__(self, lib: Any, priority: int, program: str = "") -> None:
        _declare(lib)
        self._lib, self._priority, self._program, self._handle = lib, priority, program, 1
        self._attached: dict[int, _Attached] = {}

    def _hook(self, ifindex: int, point: int) -> _TcHook:
        return _TcHook(sz=ctypes.sizeof(_TcHook), ifindex=ifindex, attach_point=point)

    def _opts(self, **extra: int) -> _TcOpts:
        return _TcOpts(sz=ctypes.sizeof(_TcOpts), handle=self._handle, priority=self._priority, **extra)

    def attach(self, ifindex: int, program_fd: int, point: int = EGRESS, create: bool = False) -> bool:
        """Attach, in place of what a dead agent may have left. There must be a clsact qdisc, or ``create``
        makes one. Returns whether it is new.

        Raises :class:`NoPlaceError` where only filters at ingress can be, else :class:`BpfError`.
        """
        other = self._other(ifindex, point)
        if other:
            raise BpfError(f"a filter of others, {other}, is in the agent's place: give it another pref")
        hook = self._hook(ifindex, point)
        created = create and self._create_clsact(ifindex, hook)
        # The kernel would attach a filter for egress to the ingress qdisc, at ingress.
        if not created and point == EGRESS and filter_qdisc(ifindex) == "ingress":
            raise NoPlaceError(INGRESS_QDISC)
        opts = self._opts(prog_fd=program_fd, flags=_REPLACE)
        result = self._lib.bpf_tc_attach(ctypes.byref(hook), ctypes.byref(opts))
        if result != 0:
            error = failure(f"cannot attach to tc of interface {ifindex}", error_code(result))
            if created:
                self.remove_clsact(ifindex)
            raise error
        self._attached[ifindex] = _Attached(program_fd, point, self.attached_program(ifindex, point))
        _left.pop(self.place(ifindex, point), None)
        return created

    def _create_clsact(self, ifindex: int, hook: _TcHook) -> bool:
        """Returns False if there is a qdisc in its place."""
        result = self._lib.bpf_tc_hook_create(ctypes.byref(hook))
        clear_log()  # libbpf logs "Exclusivity flag on" when there is such a qdisc already
        if result != 0 and error_code(result) != errno.EEXIST:
            raise failure(f"cannot create a clsact qdisc on interface {ifindex}", error_code(result))
        return bool(result == 0)

    def _other(self, ifindex: int, point: int) -> str:
        """The filter of others in this place; "": there is none."""
        if not self._program or self.is_there(ifindex):
            return ""
        for each in (ingress_filters if point == INGRESS else egress_filters)(ifindex):
            # Before the colon libbpf writes the name of the program, behind it the id.
            if each.priority == self._priority and each.name.partition(":")[0] != self._program:
                side = "ingress" if point == INGRESS else "egress"
                name = f" {plain(each.name)}" if each.name else ""
                return f"{plain(each.kind)}{name} (pref {each.priority} at {side})"
        return ""

    def is_there(self, ifindex: int) -> bool:
        """Whether the filter was attached, and nobody else has removed or replaced it since."""
        known = self._attached.get(ifindex)
        return known is not None and self.attached_program(ifindex, known.point) == known.id

    def restore(self, ifindex: int) -> bool:
        """Attach again where somebody has removed the filter. Returns whether that was so. Raises as
        :meth:`attach`; the next call tries again.
        """
        if ifindex not in self._attached or self.is_there(ifindex):
            return False
        known = self._attached[ifindex]
        self.attach(ifindex, known.program_fd, known.point)
        return True

    def attached_program(self, ifindex: int, point: int = EGRESS) -> int:
        """The id of the program attached at this priority, 0 if none."""
        hook, opts = self._hook(ifindex, point), self._opts()
        found = self._lib.bpf_tc_query(ctypes.byref(hook), ctypes.byref(opts)) == 0
        clear_log()
        return int(opts.prog_id) if found else 0

    def detach(self, ifindex: int, point: int = EGRESS) -> None:
        """Detach, or else :func:`detach_left` does. An interface that was deleted has lost its filter, which
        is no error.
        """
        _now_or_later(self.place(ifindex, point), lambda: self.detach_now(ifindex, point))

    def place(self, ifindex: int, point: int) -> tuple[int, int, int]:
        """The place of the filter."""
        return self._priority, ifindex, point

    def detach_now(self, ifindex: int, point: int = EGRESS) -> None:
        """As :meth:`detach`. Raises OSError if there is no file descriptor for it."""
        if not self._other(ifindex, point):
            hook, opts = self._hook(ifindex, point), self._opts()
            result = self._lib.bpf_tc_detach(ctypes.byref(hook), ctypes.byref(opts))
            clear_log()
            _check_descriptors(result)
        self._attached.pop(ifindex, None)

    def remove_clsact(self, ifindex: int) -> None:
        """Remove the clsact qdisc with all that is on it. Raises as :meth:`detach_now`."""
        hook = self._hook(ifindex, INGRESS | EGRESS)
        result = self._lib.bpf_tc_hook_destroy(ctypes.byref(hook))
        clear_log()
        _check_descriptors(result)


class OwnFilter:
    """The filter of a program that never takes a packet away, at tc egress or ingress, together with the
    clsact qdiscs that were created for it. Where an ingress qdisc is in the place of clsact, the program is
    at tcx.

    The clsact qdisc of a port is removed with the filter if it was created for that filter, or if a dead
    agent had left one there; but not while others have filters on it.
    """

    def __init__(self, lib: Any, priority: int, program: str = "") -> None:
        """As :class:`TcFilter`."""
        self.filter = TcFilter(lib, priority, program)
        self._lib = lib
        self._own_clsact: set[int] = set()
        self._links: dict[int, TcxLink] = {}
        self._attached: dict[int, tuple[int, int]] = {}  # program and point

    def attach(self, ifindex: int, program_fd: int, point: int = EGRESS) -> None:
        """Attach. Raises :class:`BpfError`; then nothing is left on the interface."""
        try:
            stale = self.filter.attached_program(ifindex, point) != 0
            if self.filter.attach(ifindex, program_fd, point, create=True) or stale:
                self._own_clsact.add(ifindex)
        except NoPlaceError:
            if not tcx.is_available(self._lib):
                raise NoPlaceError(NO_PLACE) from None
            self._links[ifindex] = TcxLink(self._lib, ifindex, program_fd)
        self._attached[ifindex] = program_fd, point

    def tcx_program(self, ifindex: int) -> int:
        """The id of the program at tcx of an interface; 0: it is none, but a filter."""
        return program_id(self._lib, self._attached[ifindex][0]) if ifindex in self._links else 0

    def is_at_egress(self, ifindex: int) -> bool:
        """Whether the program is where packets leave by the interface."""
        return self._attached[ifindex][1] == EGRESS

    def exchange(self, ifindex: int, program_fd: int) -> None:
        """Attach another program in place of the one that is attached. Raises :class:`BpfError`."""
        point = self._attached[ifindex][1]
        if ifindex in self._links:
            self._links[ifindex].exchange(program_fd)
        else:
            self.filter.attach(ifindex, program_fd, point)
        self._attached[ifindex] = program_fd, point

    def _is_detached(self, ifindex: int) -> bool:
        return self.tcx_program(ifindex) not in tcx.programs(self._lib, ifindex)

    def restore(self, ifindex: int) -> bool:
        """Attach again where somebody has removed the program or its clsact, and to clsact where the ingress
        qdisc has gone. Returns whether somebody had removed the program. Raises :class:`BpfError`; the next
        call tries again.
        """
        if ifindex not in self._attached:
            return False
        link = self._links.get(ifindex)
        lost = self._is_detached(ifindex) if link is not None else not self.filter.is_there(ifindex)
        if not lost and (link is None or filter_qdisc(ifindex) == "ingress"):
            return False
        try:
            self._links.pop(ifindex, None)
            self.attach(ifindex, *self._attached[ifindex])
        except BaseException:
            if link is not None and not lost:
                self._links[ifindex], link = link, None
            raise
        finally:
            if link is not None:
                link.close()
        return lost

    def detach(self, ifindex: int) -> None:
        """Detach, and remove the clsact qdisc if it is ours and no filter is left on it; or else
        :func:`detach_left` does.
        """
        link = self._links.pop(ifindex, None)
        if link is not None:
            link.close()
        _, point = self._attached.get(ifindex, (0, EGRESS))
        _now_or_later(self.filter.place(ifindex, point), lambda: self._detach_now(ifindex, point))

    def _detach_now(self, ifindex: int, point: int) -> None:
        self.filter.detach_now(ifindex, point)
        if ifindex in self._own_clsact and not has_filters(ifindex):
            self.filter.remove_clsact(ifindex)
        self._own_clsact.discard(ifindex)
        self._attached.pop(ifindex, None)
