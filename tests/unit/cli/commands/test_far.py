"""``fairq far`` against the real REST interface, served on 127.0.0.1."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from fairq_ryu.cli import main
from fairq_ryu.far_queue import FAR
from tests.support.restsite import RestSite


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[RestSite]:
    made = RestSite("fairq")
    server = make_server("127.0.0.1", 0, made.app, handler_class=Quiet)
    monkeypatch.setenv("FAIRQ_URL", f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    yield made
    server.shutdown()
    server.server_close()


def test_without_far_queues_it_says_where_they_come_from(
    site: RestSite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["far"]) == 0
    assert capsys.readouterr().out.startswith("no far queues: section [far_queues]")


def test_only_far_queues_are_listed(site: RestSite, capsys: pytest.CaptureFixture[str]) -> None:
    site.windows.links[2].ports[FAR | 2].name = "s2-eth2@far"
    assert main.main(["far"]) == 0
    *_, row, policy = capsys.readouterr().out.splitlines()
    assert row.split()[:3] == [f"2:{FAR | 2}", "s2-eth2@far", "far"] and policy == "policy fairq"
    assert main.main(["far", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["ports"]
    assert (found["port"], found["far_of"], found["name"]) == (FAR | 2, 2, "s2-eth2@far")
