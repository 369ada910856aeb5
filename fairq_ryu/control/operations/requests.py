"""What requests have changed in a running controller, as values by kind and key, and who carries it out.

A controller alone keeps them in memory. Where several share a fabric, they are in the database between them:
:meth:`Requests.store` returns when they are there, and every controller carries out what it finds there,
whoever was asked, and whichever bridges it owns later.

A value is whatever JSON has. None in place of a value removes it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fairq_ryu.cluster.view import Texts
from fairq_ryu.errors import UserError

LOG = logging.getLogger(__name__)


class Key(NamedTuple):
    """What a request is about: ``name`` is unique among those of its ``kind``."""

    kind: str
    name: str = ""


Values = Mapping[Key, Any]
Store = Callable[[Texts, Texts], bool | None]
"""Stores texts, provided that others are as expected. Returns whether they are stored; False: others were not
as expected, None: the database cannot be reached, or something else was stored between two attempts
"""


WRONG = (UserError, ValueError, TypeError, KeyError, AttributeError)
"""What reading a value raises that people, or another version, have written into the database."""


class Unstored(Exception):
    """The change is not known to be stored; other controllers may carry it out or not."""


class Requests:
    """All requests. ``elsewhere``: what stores them; None: they are kept here."""

    def __init__(self, elsewhere: Store | None = None) -> None:
        self._elsewhere = elsewhere
        self._values: dict[str, dict[str, Any]] = {}  # by kind and name
        self._found: dict[tuple[str, str], str] = {}
        """as the database has them: people may have written them"""
        self._handlers: dict[str, Callable[[set[str]], None]] = {}

    @property
    def shared(self) -> bool:
        """Whether other controllers carry them out as well."""
        return self._elsewhere is not None

    def follow(self, kind: str, handler: Callable[[set[str]], None]) -> None:
        """Let ``handler`` carry out requests of a kind; it is called with the names of those that have
        changed. One that cannot be read must not keep it from the others: people may write into the database,
        and so may controllers of another version.
        """
        self._handlers[kind] = handler

    def of(self, kind: str) -> Mapping[str, Any]:
        """All values of a kind, by name, as they are now and later: nothing is copied."""
        return MappingProxyType(self._values.setdefault(kind, {}))

    def get(self, kind: str, name: str = "") -> Any:
        """One value; None: there is none."""
        return self.of(kind).get(name)

    def store(self, changes: Values, expected: Values | None = None) -> bool:
        """Store all changes or none, and have them carried out here. Returns False, and changes nothing, if
        one of the ``expected`` values is another. Raises :class:`Unstored`; alone, what a handler raises, and
        nothing is stored then.
        """
        if self._elsewhere is None:
            if any(self.get(*key) != value for key, value in (expected or {}).items()):
                return False
            before = _texts({key: self.get(*key) for key in changes})
            try:
                for kind, names in self._keep(_texts(changes)).items():
                    if kind in self._handlers:
                        self._handlers[kind](names)
            except Exception:
                self._keep(before)  # whoever asks again is not told that nothing has to change
                raise
            return True
        there: Texts = {key: self._there(key, value) for key, value in (expected or {}).items()}
        stored = self._elsewhere(_texts(changes), there)
        if stored is None:
            raise Unstored(
                "the database of the controllers does not answer, or another controller has changed the same "
                "meanwhile: the change may be stored or not; see what is so now, and ask again"
            )
        return stored

    def found(self, changes: Texts) -> None:
        """These are in the database from now on: carry them out. What a handler raises is logged: whatever
        stands there, the others are carried out.
        """
        for key, text in changes.items():
            if text is None:
                self._found.pop(key, None)
            else:
                self._found[key] = text
        for kind, names in self._keep(changes).items():
            handler = self._handlers.get(kind)
            if handler is None:
                continue
            try:
                handler(names)
            except Exception:
                LOG.exception("requests of kind %s cannot be carried out: %s", kind, ", ".join(sorted(names)))

    def _there(self, key: Key, value: Any) -> str | None:
        """The text of a value that is expected. One that is there may be written in another way, or be none
        that can be read.
        """
        return self._found.get(key) if self.get(*key) == value else _text(value)

    def _keep(self, changes: Texts) -> dict[str, set[str]]:
        """The names of those that are changed by this, by kind."""
        changed: dict[str, set[str]] = {}
        for (kind, name), text in changes.items():
            values, value = self._values.setdefault(kind, {}), None if text is None else _read(text)
            if values.get(name) != value:
                changed.setdefault(kind, set()).add(name)
            if value is None:
                values.pop(name, None)
            else:
                values[name] = value
        return changed


def _texts(values: Values) -> Texts:
    return {key: _text(value) for key, value in values.items()}


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None  # people may write into the database as well
