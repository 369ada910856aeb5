"""Long TCP flows that start at times of their own, each with its own congestion control."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable

from fairq_ryu.experiments.traffic import congestion
from fairq_ryu.experiments.traffic.bulk import HEADER, Elephants, _Sending
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer


class LongFlows(Elephants):
    """Elephants that ``begin`` names: each has a number (``index``), a congestion control (``cc``), a start
    (``at_ns`` of the monotonic clock) and the ``address`` and ``port`` of its sink. ``controls`` answers with
    the congestion control that the socket of each uses now. A flow without a connection counts as one that
    has sent nothing.
    """

    def __init__(self, loop: Loop) -> None:
        self._connected: set[int] = set()
        super().__init__(loop)

    def command(self, order: Json) -> None:
        match order["cmd"]:
            case "begin":
                for each in order["flows"]:
                    self._plan(each, order["seed"] + each["index"])
                answer("begin")
            case "controls":
                answer("controls", flows={i: congestion.of(each.sock) for i, each in self._flows.items()})
            case _:
                super().command(order)

    def _plan(self, order: Json, seed: int) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        congestion.choose(sock, order["cc"])
        flow = self._flows[order["index"]] = _Sending(sock, seed)
        self._loop.call_at(order["at_ns"] / 1e9, self._opener(order, flow))

    def _opener(self, order: Json, flow: _Sending) -> Callable[[], None]:
        index: int = order["index"]

        def connected(_events: int) -> None:
            code = flow.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise RuntimeError(f"flow {index} cannot connect: {os.strerror(code)}")
            flow.sock.send(HEADER.pack(index))
            self._connected.add(index)
            self._loop.change(flow.sock, selectors.EVENT_WRITE, self._sender(index, flow))

        def opened() -> None:
            if flow.open:
                flow.sock.connect_ex((order["address"], order["port"]))
                self._loop.add(flow.sock, selectors.EVENT_WRITE, connected)

        return opened

    def _finish(self, timeout: float) -> None:
        """As with elephants; a connection that is not open by now is given up."""
        for index in set(self._flows) - self._connected:
            self._give_up(self._flows.pop(index))
        super()._finish(timeout)

    def _give_up(self, flow: _Sending) -> None:
        flow.open = False
        if flow.sock.fileno() in self._loop.selector.get_map():
            self._loop.drop(flow.sock)
        else:
            flow.sock.close()
