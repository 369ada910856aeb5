"""Announcements of applications, made and withdrawn by request.

Where several controllers share a fabric, each has all announcements: a flow may pass bridges of several, and
a bridge may get another owner. A request has the number of its announcement as its name, which is random
then, and the time of the day when the announcement ends. Every controller assigns an announcement to the
flows that it sees itself, ``count`` of them at most.

A request is removed when its announcement has ended at one controller: it was replaced, its time is over, or
all the flows that it is for have ended. Every controller notices that by itself: so a removed row means
nothing. One that is withdrawn says so, until some time after it would have ended; and so long a request is
kept that no controller has been able to carry out.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from fairq_ryu.control.operations.requests import Key, Requests, Unstored
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.fabric.deadlines.announcements import Entry, Full
from fairq_ryu.fabric.deadlines.request import Request

INTERVAL = 5.0
"""Seconds between two looks for requests that may be removed."""
# So long after their end they are, seconds. Clocks may differ by less.
_KEPT = 30.0
_KIND = "announcement"
# Numbers are exact in the JSON of every language up to 53 bits.
_BITS = 48


@dataclass(eq=False)
class Announcing:
    """Makes and withdraws announcements; ``now`` in seconds of the monotonic clock."""

    windows: WindowController
    requests: Requests
    log: logging.Logger

    def __post_init__(self) -> None:
        """Follow the requests of all controllers."""
        self._known: set[str] = set()  # requests with announcements here, some of which may have ended
        if self.requests.shared:
            self.requests.follow(_KIND, self._requested)

    def announce(self, wanted: Request, now: float) -> Entry:
        """An application announces a flow. Other greenlets may run before it counts. Raises
        :class:`~fairq_ryu.fabric.deadlines.announcements.Full`, or
        :class:`~fairq_ryu.control.operations.requests.Unstored`.
        """
        if not self.requests.shared:
            return self.windows.announce(wanted, now)
        announcements = self.windows.announcements
        replaced = announcements.check_room(wanted, now)
        stored = len(self.requests.of(_KIND))
        if stored >= announcements.capacity and not replaced:
            raise Full(
                f"the database has {stored} announcements already, some of which may have ended or been "
                "withdrawn a short while ago: wait"
            )
        number = secrets.randbits(_BITS) + 1
        value = asdict(wanted) | {"until": round(time.time() + wanted.ttl, 3)}
        removed: dict[Key, Any] = {Key(_KIND, str(each.id)): None for each in replaced}
        self.requests.store({**removed, Key(_KIND, str(number)): value})
        try:
            return announcements.get(number, now)
        except KeyError:
            raise Unstored("the announcement has just been withdrawn: ask again") from None

    def withdraw(self, number: int, now: float) -> None:
        """Withdraw an announcement. Raises KeyError if there is none with this number, or
        :class:`~fairq_ryu.control.operations.requests.Unstored`.
        """
        if not self.requests.shared:
            self.windows.withdraw(number, now)
            return
        self.windows.announcements.get(number, now)
        until = _until(self.requests.get(_KIND, str(number)))
        self.requests.store({Key(_KIND, str(number)): {"withdrawn": True, "until": until}})

    def remove_ended(self) -> None:
        """Remove the requests whose announcements have ended here, or a while ago."""
        if not self.requests.shared:
            return
        today = time.time()
        valid = {each.id for each in self.windows.announcements.listed(time.monotonic())}
        ended = {name for name in self._known if int(name) not in valid}
        wanted = self.requests.of(_KIND).items()
        over = [name for name, value in wanted if name in ended or _until(value) + _KEPT < today]
        if not over:
            return
        with contextlib.suppress(Unstored):  # then at the next look
            self.requests.store({Key(_KIND, name): None for name in over})

    def _requested(self, names: Iterable[str]) -> None:
        wanted = {name: self.requests.get(_KIND, name) for name in names}
        now, today = time.monotonic(), time.time()
        for name in sorted(names):
            value = wanted.get(name)
            self._known.discard(name)
            if not isinstance(value, dict):
                continue
            fields = {key: each for key, each in value.items() if key not in ("until", "withdrawn")}
            try:
                ttl = min(_until(value) - today, fields.get("ttl", 0.0))
                if value.get("withdrawn"):
                    self.windows.withdraw(int(name), now)
                elif ttl > 0:
                    self.windows.announce(Request(**{**fields, "ttl": ttl}), now, int(name))
                    self._known.add(name)
            except KeyError:
                continue  # it has ended
            except (TypeError, ValueError) as error:
                self.log.warning("announcement %s of another controller: %s", name, error)


def _until(value: Any) -> float:
    """When an announcement ends, a time of the day."""
    found = value.get("until") if isinstance(value, dict) else None
    return found if isinstance(found, int | float) else 0.0
