"""Serves ``/metrics`` through Ryu's web application."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from ryu.app.wsgi import ControllerBase, WSGIApplication

from fairq_ryu.apps.metrics import Metrics
from fairq_ryu.apps.rest_answer import problem, response

LOG = logging.getLogger(__name__)
PATH = "/metrics"


class MetricsPage(ControllerBase):
    """Answers one request; Ryu makes one for each."""

    def answer(self, req: Any, **_: str) -> Any:
        """Called by Ryu for :data:`PATH`."""
        if req.environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            allowed = {"Allow": "GET, HEAD"}
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, f"{PATH} can only be read", allowed)
        try:
            body, content_type = self.data["metrics"].render(req.environ.get("HTTP_ACCEPT", ""))
        except Exception:
            # Caught here, because Ryu's server would send the traceback to whoever asked.
            LOG.exception("cannot answer %s", PATH)
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "see the controller's log", {})
        return response(HTTPStatus.OK, None, body, {"Content-Type": content_type})


def register(wsgi: WSGIApplication, metrics: Metrics) -> None:
    """Serve the metrics under :data:`PATH`."""
    wsgi.registory[MetricsPage.__name__] = {"metrics": metrics}
    wsgi.mapper.connect(PATH, PATH, controller=MetricsPage, action="answer")
