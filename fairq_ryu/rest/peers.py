"""The other controllers of the fabric: their REST interfaces are asked, so that each answers for all.

A request goes to the others with the header ``Fairq-Scope: controller``; one that has it is answered for the
bridges of this controller only, so nobody asks in a circle. A controller that does not answer is named in
``missing``: what it would have said is not left out without a word.

A change that names a bridge or a port goes to the controller that knows it, with the client's own token: all
controllers of a fabric have the same.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from fairq_ryu.control.operations.named_ports import NotHere
from fairq_ryu.errors import UserError
from fairq_ryu.rest.reply import JSON, Answer, Reply, RequestRefused
from fairq_ryu.ryu_compat.runtime import hub

SCOPE = "Fairq-Scope"
OWN, ELSEWHERE = "controller", "elsewhere"
"""Values of the header: of a request, that it is for one controller; of a reply, that this one does not know
the bridge or the port."""
# A controller that is alive accepts a connection, and answers a question, within this, seconds.
_TIMEOUT = 3.0
# So long is waited for a turn to ask.
_TURN = 3.0
# A change may wait for an agent and for the database first.
_CHANGE_TIMEOUT = 10.0
# 16,384 hosts with 64 addresses each, which nothing else reaches, are less.
MOST_BYTES = 32 << 20
"""Of one answer."""
AT_ONCE = 8
"""Questions to other controllers under way; more wait. Each takes a connection and the memory of its answer,
at both ends.
"""

Rows = list[dict[str, Any]]


def refusal(status: HTTPStatus, error: UserError) -> RequestRefused:
    """The refusal of a request about a bridge or a port, which says if another controller may know it."""
    headers = {SCOPE: ELSEWHERE} if isinstance(error, NotHere) else {}
    return RequestRefused(status, f"{error.message}; {error.remedy}", headers)


class Peer(NamedTuple):
    """Another controller, and where its REST interface is. ``silent``: it has gone, or is not heard of."""

    name: str
    rest: str
    silent: bool = False


class Said(NamedTuple):
    """What a controller has answered."""

    status: int
    body: bytes
    elsewhere: bool


class Unanswered(OSError):
    """The request was sent, and may have been carried out."""


class Peers:
    """Asks the other controllers, which ``listed`` returns. Other greenlets run meanwhile."""

    def __init__(self, listed: Callable[[], Sequence[Peer]]) -> None:
        self._listed = listed
        self._turns = hub.Semaphore(AT_ONCE)

    def listed(self) -> list[Peer]:
        """The other controllers, in the order of their names."""
        return sorted(self._listed())

    def ask_all(self, target: str) -> Iterator[tuple[Peer, Answer | str]]:
        """The answers of all to ``GET target``, or why there is none, in the order of their names. They are
        asked at the same time, as far as :data:`AT_ONCE` allows.
        """
        found: dict[Peer, Answer | str] = {}

        def ask(peer: Peer) -> None:
            found[peer] = self.ask(peer, target)

        peers = self.listed()
        hub.joinall([hub.spawn(ask, peer) for peer in peers])
        return ((peer, found[peer]) for peer in peers)

    def ask(self, peer: Peer, target: str) -> Answer | str:
        """The answer of one controller to ``GET target``, or why there is none."""
        if peer.silent:
            return "it is silent"
        # A client must have its answer some time, whatever others have asked for.
        if not self._turns.acquire(timeout=_TURN):
            return f"not asked: {AT_ONCE} questions to controllers take longer than {_TURN:g} s"
        try:
            return self._answer(peer, target)
        finally:
            self._turns.release()

    @staticmethod
    def _answer(peer: Peer, target: str) -> Answer | str:
        try:
            said = request(peer.rest, "GET", target, {})
            if said.status != HTTPStatus.OK:
                return f"it has answered with status {said.status}"
            answer = json.loads(said.body)
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            return f"{peer.rest}: {error}"
        return answer if isinstance(answer, dict) else f"{peer.rest}: its answer is not an object"

    def pass_on(self, environ: Mapping[str, Any], body: bytes | None, refused: RequestRefused) -> Reply:
        """Let the controller carry out a change that knows the bridge or port. Raises ``refused`` if none
        does; after one that has not answered nobody else is asked.
        """
        target = quote(environ.get("PATH_INFO", ""), encoding="latin-1")
        headers = {"Authorization": environ.get("HTTP_AUTHORIZATION", "")}
        if body is not None:
            headers["Content-Type"] = JSON
        missing = []
        for peer in self.listed():
            try:
                if peer.silent:
                    raise OSError("it is silent")
                said = request(peer.rest, environ["REQUEST_METHOD"], target, headers, body, _CHANGE_TIMEOUT)
            except Unanswered as error:
                raise RequestRefused(
                    HTTPStatus.GATEWAY_TIMEOUT,
                    f"controller {peer.name} was asked, and has not answered ({error}): the change may be "
                    "carried out or not; see what is so now, and ask again",
                ) from None
            except (OSError, http.client.HTTPException) as error:
                missing.append(f"{peer.name} ({error})")
                continue
            if not said.elsewhere:
                status = HTTPStatus(said.status)
                kind = JSON if said.status < HTTPStatus.BAD_REQUEST else "application/problem+json"
                return Reply(status, body=said.body, content_type=kind if said.body else None)
        if missing:
            raise RequestRefused(refused.status, f"{refused}; not asked: {', '.join(missing)}")
        raise refused


def request(
    address: str,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    timeout: float = _TIMEOUT,
) -> Said:
    """One request to a controller, for its own bridges; ``timeout``: for its answer, seconds. Raises OSError
    or HTTPException; :class:`Unanswered`, if the controller may have the request.
    """
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
    try:
        connection.connect()
        connection.sock.settimeout(timeout)
        try:
            connection.request(method, target, body, {**headers, SCOPE: OWN})
            answer = connection.getresponse()
            data = answer.read(MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(str(error) or type(error).__name__) from error
        return Said(answer.status, data, answer.headers.get(SCOPE) == ELSEWHERE)
    finally:
        connection.close()


def rows(name: str) -> Callable[[Sequence[Answer]], Answer]:
    """Joins answers that have a list of this name."""

    def joined(answers: Sequence[Answer]) -> Answer:
        return {name: [row for each in answers for row in each[name]]}

    return joined


def whole(peers: Peers, path: str, own: Answer, join: Callable[[Sequence[Answer]], Answer]) -> Answer:
    """The answer for the whole fabric."""
    answers, missing = [own], []
    for peer, answer in peers.ask_all(path):
        if isinstance(answer, str):
            missing.append({"controller": peer.name, "reason": answer})
        else:
            answers.append(answer)
    return {**join(answers), "missing": missing}


def whole_page(
    peers: Peers, path: str, query: Mapping[str, Any], name: str, own: Callable[[int, int], Answer]
) -> Answer:
    """A page of the rows of the whole fabric: first this controller's, then the others' in the order of their
    names. ``own`` returns the rows of this one, by limit and offset.
    """
    limit, offset = query["limit"], query["offset"]
    found: Rows = []
    total, missing = 0, []

    def add(answer: Answer) -> None:
        nonlocal total
        found.extend(answer[name])
        total += answer["total"]

    def rest() -> tuple[int, int]:
        return limit - len(found), max(0, offset - total)

    def part(limit: int, offset: int) -> str:
        wanted = {**query, "limit": limit, "offset": offset}
        return f"{path}?{urlencode({key: value for key, value in wanted.items() if value is not None})}"

    add(own(*rest()))
    # All are asked for their totals at once, so those that do not answer cost time once.
    for peer, answer in list(peers.ask_all(part(1, 0))):
        wanted, skipped = rest()
        if not isinstance(answer, str):
            if not wanted or skipped >= answer["total"]:
                total += answer["total"]
                continue
            answer = peers.ask(peer, part(wanted, skipped))
        if isinstance(answer, str):
            missing.append({"controller": peer.name, "reason": answer})
        else:
            add({**answer, name: answer[name][:wanted]})
    return {name: found, "total": total, "limit": limit, "offset": offset, "missing": missing}
