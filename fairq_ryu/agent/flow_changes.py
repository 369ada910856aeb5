"""What has changed in a bridge's flow map, for controllers that ask for flow records as changes.

Theory of operation. The agent reads its flow map once a second. Every reading is a *pass*, in parts, and each
part is compared with what is remembered of its connections:

    a new connection; another port, flag or option; a direction that is listed or not any more
        -> changed at once
    segments since it changed last, which is `refresh` ago (or, if that is long, a part of it: so that not
    all change at once), and that change was sent to a controller
        -> changed
    it has ended, and a controller wants such connections again
        -> changed
    not in the pass
        -> removed

For controllers that have asked for connections that last only, a new connection is left out of the first
pass that sees it, and of all passes if it is over before the second: copies of its segments have told of it.
A pass that begins late leaves nothing out, because a controller removes a connection without a record some
seconds after its copies.

A connection that changes gets the next *generation*, a number that only increases. A controller names the
generation that it has, and gets the connections with later ones, the earliest first, as many as it asks for;
the last one's generation is the next that it names. So nothing is kept for a controller, it may ask at any
pace, and an answer that is lost is asked for again. A list that begins anew comes in parts, too, whose
generations may be older than what is remembered of removed connections. So these carry the number of the list
in their upper bits, and for each list the highest generation at its beginning is kept: what was removed
before does not matter to its controller. Connections without segments keep their generation and
cost a controller nothing. One that was not sent yet keeps its place in the order, however much it
sends: its record is read from the flow map when it is its turn.

Pure, and of any key; times are nanoseconds of one monotonic clock. Bounded: removed connections are
remembered for :data:`KEEP_NS`, and as many as there are others, at most; a controller that is behind them is
told to begin anew. Of the last :data:`LISTS` lists something is kept. In numpy, because there may be tens of
thousands of connections.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairq_ryu.channel.flow_changes import LEAVE_OUT_MS

KEEP_NS = 30_000_000_000
# So many removed connections are remembered in any case.
MIN_REMOVED = 4096
# A list that so many others have followed begins anew.
LISTS = 64
_LIST_BIT = 48  # generations are below, the number of a list above
DEFAULT_REFRESH_NS = 1_000_000_000
# Passes are not exactly a second apart.
_EARLY = 0.9
# From this interval on, ns, connections change again after different parts of it, from a half to the whole:
# those that were first seen in one pass would otherwise change in one pass for ever. Successive multiples of
# the golden ratio are spread evenly.
_SPREAD_FROM_NS = 5_000_000_000
_GOLDEN = 0.618033988749895
# A pass that begins later than this after the one before, ns, leaves no new connection out.
_LEAVE_OUT_NS = LEAVE_OUT_MS * 1_000_000
# Columns of what is compared of a connection, besides its directions that are listed.
MARKS = 7
_FIRST_ROOM = 1024

_Ints = NDArray[np.int64]


class Seen(NamedTuple):
    """A part of a pass, a row for each connection: the state whose change is a change of the connection,
    :data:`MARKS` numbers; its directions that are listed (bits 1 and 2), and of these, those whose window
    scale is not known; whether a direction has ended, and whether the connection has: by FIN in both
    directions, or by RST; the time of its last segment.
    """

    marks: NDArray[np.uint32]
    listed: NDArray[np.uint8]
    unscaled: NDArray[np.uint8]
    ended: NDArray[np.bool_]
    over: NDArray[np.bool_]
    last_ns: _Ints


class ChangedFlows(NamedTuple):
    """An answer: connections that have changed or were removed; of each, the directions that are listed, and
    those that were (bits 1 and 2). ``anew``: the list begins with them; ``more``: others follow.
    """

    generation: int
    anew: bool
    more: bool
    keys: list[bytes]
    listed: list[int]
    gone: list[int]


class FlowChanges:
    """The changes of one flow map; keys have ``width`` bytes."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._place: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._free: list[int] = []
        self._next = 1
        self._forgotten = 0  # the highest generation of a removed connection that is not remembered any more
        self._sent = 0  # the highest generation that was sent to a controller
        self._list = 0
        self._began_at: dict[int, int] = {}  # lists by number: the highest generation when it began
        self._pass = 0
        self._began_ns: int | None = None
        self._refresh_ns = self._asked_ns = DEFAULT_REFRESH_NS
        self._ended_again = self._asked_again = False
        self._lasting = self._asked_lasting = self._leaves_out = False
        # New connections that the last pass has left out, and those that this one has; was each over?
        self._young: dict[bytes, bool] = {}
        self._left_out: dict[bytes, bool] = {}
        self.read_ns: int | None = None
        """When the last complete pass began; None: there was none yet."""
        self.listed = self.active = self.unscaled = 0
        """Directions in the last complete pass: all, those that had sent within the refresh interval, and
        those whose window scale is not known."""
        self._grow(_FIRST_ROOM)

    def _grow(self, room: int) -> None:
        def longer(old: NDArray[Any]) -> NDArray[Any]:
            new = np.zeros((room, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            return new

        empty = np.zeros(0, dtype=np.int64)
        first = not hasattr(self, "_generation")
        self._generation: _Ints = longer(empty if first else self._generation)  # 0: the place is free
        self._last: _Ints = longer(empty if first else self._last)  # last segment when it changed
        self._changed: _Ints = longer(empty if first else self._changed)  # when the pass of that began
        self._in_pass: _Ints = longer(empty if first else self._in_pass)  # its number
        bits = np.zeros(0, dtype=np.uint8)
        self._listed: NDArray[np.uint8] = longer(bits if first else self._listed)  # 0: removed
        self._ever: NDArray[np.uint8] = longer(bits if first else self._ever)
        marks = np.zeros((0, MARKS), dtype=np.uint32)
        self._marks: NDArray[np.uint32] = longer(marks if first else self._marks)

    @property
    def refresh_ns(self) -> int:
        """A connection with segments changes this long after its last change, ns; if that is long, after a
        part of it.
        """
        return self._refresh_ns

    def ask(self, refresh_ns: int, ended_again: bool, lasting: bool = False) -> None:
        """A controller asks for this interval, for connections that have ended again in every pass, or not,
        and only for connections that last, or for all. What the controllers have asked for since the last
        pass is in force from the next pass on: the shortest interval, ended connections again for one that
        wants them, and only those that last if all want it so.
        """
        self._asked_ns = min(self._asked_ns, refresh_ns) if self._asked_ns else refresh_ns
        self._asked_again |= ended_again
        self._asked_lasting &= lasting

    # Passes

    def begin(self, now_ns: int) -> None:
        """A pass begins. One that was not finished is forgotten."""
        self._pass += 1
        self._began_ns = now_ns
        if self._asked_ns:
            self._refresh_ns, self._asked_ns = self._asked_ns, 0
            self._ended_again, self._asked_again = self._asked_again, False
            self._lasting, self._asked_lasting = self._asked_lasting, True
        soon = self.read_ns is not None and now_ns - self.read_ns <= _LEAVE_OUT_NS
        self._leaves_out, self._left_out = self._lasting and soon, {}
        self._counts = [0, 0, 0]

    def observe(self, keys: bytes, seen: Seen) -> None:
        """A part of the pass: the concatenated keys of connections, and what is known of them. A connection
        must not be in two parts.
        """
        assert self._began_ns is not None
        width, find = self._width, self._place.get
        names = [keys[at : at + width] for at in range(0, len(keys), width)]
        places = np.array([find(name, -1) for name in names], dtype=np.int64)
        here = seen.listed != 0
        for row in np.flatnonzero((places < 0) & here).tolist():
            over = bool(seen.over[row])
            if self._is_left_out(names[row], over, int(seen.last_ns[row])):
                self._left_out[names[row]] = over
            else:
                places[row] = self._enter(names[row])
        here &= places >= 0
        places = places[here]
        marks, listed, last = seen.marks[here], seen.listed[here], seen.last_ns[here]
        changed = (marks != self._marks[places]).any(axis=1) | (listed != self._listed[places])
        due = self._began_ns - self._changed[places] >= self._waits(places)
        changed |= due & (last != self._last[places]) & (self._generation[places] <= self._sent)
        if self._ended_again:
            changed |= seen.ended[here]
        self._in_pass[places] = self._pass
        self._count(listed, seen.unscaled[here], last)
        places, marks, listed, last = places[changed], marks[changed], listed[changed], last[changed]
        self._marks[places], self._last[places] = marks, last
        self._listed[places] = listed
        self._ever[places] |= listed
        self._change(places)

    def _is_left_out(self, key: bytes, over: bool, last_ns: int) -> bool:
        """Whether a new connection is left out of this pass. One that sends although it was over before is
        not: its reset was forged.
        """
        if not self._leaves_out:
            return False
        was_over = self._young.get(key)
        return was_over is None or (over and not (was_over and last_ns > (self.read_ns or 0)))

    def _waits(self, places: _Ints) -> NDArray[np.float64]:
        """How long connections that send wait until they change again, ns."""
        whole = np.full(len(places), _EARLY * self._refresh_ns)
        return whole if self._refresh_ns < _SPREAD_FROM_NS else whole * (1 - places * _GOLDEN % 1 / 2)

    def _enter(self, key: bytes) -> int:
        if self._free:
            place = self._free.pop()
            self._keys[place] = key
        else:
            place = len(self._keys)
            if place == len(self._generation):
                self._grow(2 * place)
            self._keys.append(key)
        self._place[key] = place
        # No connection has these marks: it changes, whatever is seen of it.
        self._listed[place] = 0
        self._ever[place] = 0
        return place

    def _change(self, places: _Ints) -> None:
        assert self._began_ns is not None
        self._changed[places] = self._began_ns
        self._generation[places] = np.arange(self._next, self._next + len(places))
        self._next += len(places)

    def _count(self, listed: NDArray[np.uint8], unscaled: NDArray[np.uint8], last: _Ints) -> None:
        assert self._began_ns is not None
        active = listed[last >= self._began_ns - self._refresh_ns]
        for number, bits in enumerate((listed, active, unscaled)):
            self._counts[number] += int((bits & 1).sum() + (bits >> 1).sum())

    def end(self) -> None:
        """The pass is complete: what was not in it has gone."""
        assert self._began_ns is not None
        used = len(self._keys)
        gone = np.flatnonzero((self._listed[:used] != 0) & (self._in_pass[:used] != self._pass))
        self._listed[gone] = 0
        self._change(gone)
        self._forget_removed()
        self._young = self._left_out
        self.read_ns, self._began_ns = self._began_ns, None
        self.listed, self.active, self.unscaled = self._counts

    def _forget_removed(self) -> None:
        used = len(self._keys)
        removed = np.flatnonzero((self._listed[:used] == 0) & (self._generation[:used] != 0))
        limit = max(MIN_REMOVED, len(self._place) - len(removed))
        old = self._changed[removed] < (self._began_ns or 0) - KEEP_NS
        if len(removed) > limit:
            by_age = np.argsort(self._generation[removed])
            old[by_age[: len(removed) - limit]] = True
        places = removed[old]
        if not len(places):
            return
        self._forgotten = max(self._forgotten, int(self._generation[places].max()))
        self._generation[places] = 0
        for place in places.tolist():
            del self._place[self._keys[place]]
            self._keys[place] = b""
            self._free.append(place)

    # Answers

    def since(self, generation: int, limit: int) -> ChangedFlows:
        """The changes after a generation, at most ``limit`` connections. All that there are, if 0 is named or
        the changes after it are not all remembered.
        """
        used = len(self._keys)
        generations = self._generation[:used]
        listing, generation = divmod(generation, 1 << _LIST_BIT)
        # Up to this generation, the controller needs to hear of no removed connection.
        knows = self._began_at.get(listing, 0) if listing else generation
        anew = not 0 < generation < self._next or knows < self._forgotten
        if anew:
            listing, knows = 0, self._next - 1
        chosen = np.flatnonzero(self._listed[:used] if anew else generations > generation)
        more = len(chosen) > limit
        if more:
            chosen = chosen[np.argpartition(generations[chosen], limit - 1)[:limit]]
        chosen = chosen[np.argsort(generations[chosen])]
        # Without any, the present: only what changes from now on is of interest.
        through = int(generations[chosen[-1]]) if more else self._next - 1
        self._sent = max(self._sent, through)
        if more and anew:
            listing = self._begin_list(knows)
        return ChangedFlows(
            through + (listing << _LIST_BIT if more else 0),
            anew,
            more,
            [self._keys[place] for place in chosen.tolist()],
            self._listed[chosen].tolist(),
            (self._ever[chosen] & ~self._listed[chosen]).tolist(),
        )

    def _begin_list(self, at: int) -> int:
        """The number of a list that begins when this is the highest generation."""
        self._list = self._list % 0xFFFF + 1
        self._began_at.pop(self._list, None)
        self._began_at[self._list] = at
        if len(self._began_at) > LISTS:
            del self._began_at[next(iter(self._began_at))]
        return self._list
