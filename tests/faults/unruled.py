"""How long a flow is throttled by a window that nobody stands behind any more."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from fairq_ryu.errors import UserError

if TYPE_CHECKING:
    from tests.faults.load import Load
    from tests.faults.site import Site

_STEP = 0.05


class Unruled:
    """Looks while it is entered. ``longest``: for how long at most data was acknowledged, an elephant had a
    lowered window, and the agent had no law at the port, seconds. Time in which no data passes does not
    count: an old window slows nothing then. An agent that does not answer has no law.
    """

    def __init__(self, site: Site, load: Load) -> None:
        self.longest = 0.0
        self._site, self._load = site, load
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="unruled", daemon=True)

    def __enter__(self) -> Unruled:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

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
            rule = self._site.port_status()["rule"]
        except (UserError, LookupError):
            return False
        return bool(rule and "law" in rule)
