"""A network or lab that successive tests share: to make and to remove one takes longer than most tests."""

import contextlib


class Kept:
    """At most one thing at a time, kept while successive tests ask for the same. Things are made by
    ``make(key)``, a context manager.
    """

    def __init__(self, make):
        self._make, self._key, self._thing, self._made = make, None, None, contextlib.ExitStack()

    def of(self, key):
        """The thing of this key; another one is removed before it is made."""
        if key != self._key:
            self.close()
            self._thing = self._made.enter_context(self._make(key))
            self._key = key
        return self._thing

    def close(self):
        """Remove what is kept, if anything is."""
        self._key = self._thing = None
        self._made.close()
