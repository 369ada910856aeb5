"""A connection between two programs that can be cut as a network is: nothing arrives, and nobody is told."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path


class Relay:
    """Programs that connect to the Unix socket ``near`` talk to the one that listens at ``far``."""

    def __init__(self, near: Path, far: Path) -> None:
        self._far = far
        self._whole = threading.Event()
        self._whole.set()
        self._closed = False
        self._ends: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(near))
        self._listener.listen()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """What is sent from now on, both ways, arrives when this is mended: packets are sent again until
        then. New connections and the ends of old ones wait, too.
        """
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def close(self) -> None:
        self._closed = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        self._whole.set()
        for each in list(self._ends):
            _end(each)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._ends.add(near)
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        with near, socket.socket(socket.AF_UNIX) as far:
            self._whole.wait()
            self._ends.add(far)
            with contextlib.suppress(OSError):
                if not self._closed:
                    far.connect(str(self._far))
                    back = threading.Thread(target=self._pass, args=(far, near), daemon=True)
                    back.start()
                    self._pass(near, far)
                    back.join()
            self._ends -= {near, far}

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                found = source.recv(65536)
                self._whole.wait()
                if not found:
                    break
                target.sendall(found)
        _end(source)
        _end(target)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
