"""Announces flows to the controller over its REST interface, as an application would."""

from __future__ import annotations

import http.client
import json
from typing import Any

from fairq_ryu.experiments.traffic.workers import RunError
from mininet_topos.patience import patient

PATH = "/v1/announcements"
PATIENCE_S = 5.0
_NOT_ACCEPTED = (404, 405, 409, 501)


class Announcer:
    """A connection to the REST interface on ``port`` of this machine; None: there is no controller.
    ``token`` is the controller's.

    If the policy accepts no announcements, the first one is refused, and no further ones are sent.
    """

    def __init__(self, port: int | None, token: str = "") -> None:
        self._connection = (
            http.client.HTTPConnection("127.0.0.1", port, timeout=patient(PATIENCE_S))
            if port is not None
            else None
        )
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        self.accepted = 0
        """announcements that the controller has accepted"""

    def announce(self, src: str, dst: str, sport: int, dport: int, size: int, deadline: float) -> None:
        """One flow: ``size`` in bytes, ``deadline`` in s after its start. `RunError` when it is refused."""
        if self._connection is None:
            return
        body = {"src": src, "dst": dst, "sport": sport, "dport": dport, "size": size, "deadline": deadline}
        status, text = self._post(self._connection, body)
        if status in _NOT_ACCEPTED and not self.accepted:
            self.close()
        elif 200 <= status < 300:
            self.accepted += 1
        else:
            raise RunError(f"the controller refused an announcement ({status}): {text.strip()[:300]}")

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, connection: http.client.HTTPConnection, body: dict[str, Any]) -> tuple[int, str]:
        # Two attempts, because the server may have closed a connection that was idle between two rounds.
        for last in (False, True):
            try:
                connection.request("POST", PATH, json.dumps(body), self._headers)
                with connection.getresponse() as response:
                    return response.status, response.read().decode(errors="replace")
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if last:
                    raise RunError(f"cannot announce a flow to the controller: {error!r}") from None
        raise AssertionError("unreachable")
