"""How long a flow is slowed down by a window that no law stands behind any more."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fairq_ryu.errors import UserError
from tests.faults.site import has_law

if TYPE_CHECKING:
    from tests.faults.load import Load
    from tests.faults.site import Site

_STEP = 0.05


class Unruled:
    """``longest``: the longest time in which data was acknowledged, an elephant had a lowered window, and the
    agent had no law at the port, seconds. Time in which no data passes does not count: a window slows nothing
    down then. An agent that does not answer has no law.
    """

    def __init__(self, site: Site, load: Load) -> None:
        self.longest = 0.0
        self._site, self._load = site, load
        self._end = threading.Event()

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Look meanwhile. At the end it raises what a look has raised."""
        with ThreadPoolExecutor(1) as pool:
            looks = pool.submit(self._look)
            try:
                yield
            finally:
                self._end.set()
        looks.result()

    def _look(self) -> None:
        passed, before, at = 0.0, sum(self._load.acknowledged()), time.monotonic()
        while not self._end.wait(_STEP):
            now, acknowledged = time.monotonic(), sum(self._load.acknowledged())
            if self._site.is_free(self._load) or self._has_law():
                passed = 0.0
            elif acknowledged > before:
                passed += now - at
            before, at = acknowledged, now
            self.longest = max(self.longest, passed)

    def _has_law(self) -> bool:
        try:
            return has_law(self._site.port_status())
        except (UserError, LookupError):
            return False
