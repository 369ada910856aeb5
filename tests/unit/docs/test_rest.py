"""The numbers in the text of docs/rest.md."""

from __future__ import annotations

from fairq_ryu.control import yielding
from fairq_ryu.control.reports.events import History
from fairq_ryu.rest import cached_reply, connections, guard, handler, server, streams
from fairq_ryu.rest.schema.requests import MAX_LIMIT
from tests.support.documents import read


def test_the_page_has_the_code_s_numbers():
    text = " ".join(read("docs/rest.md").split())
    assert f"`limit` is {MAX_LIMIT} at most" in text
    assert f"after every {yielding.ROWS_PER_STEP} rows" in text
    assert f"longer than {cached_reply.KEEP * 100:g} ms, it is generated less often" in text
    assert f"up to {cached_reply.MAX_AGE:g} s old." in text
    assert f"at most the latest {streams._MAX_FRAMES // 2}." in text
    assert f"{handler.DEFAULT_HOST}, port 8080" in text
    assert f"without traffic for {server.IDLE:g} s" in text
    assert f"there are {connections.CONNECTIONS} connections" in text
    assert f"have not read {connections.UNREAD >> 20} MiB of replies" in text
    assert f"at most once in {cached_reply.KEEP * 1000:g} ms" in text
    assert f"at most {guard.MAX_BODY >> 10} KiB" in text
    assert f"A token has at least {guard._MIN_TOKEN} characters" in text
    history = History()
    assert f"{history.capacity} events of each kind, and to {history.share} of each kind at one port" in text
    assert f"a frame `state` every {streams.INTERVAL:g} s" in text
    assert f"a comment is sent every {streams.HEARTBEAT:g} s" in text
    assert f"more than {streams._MAX_FRAMES} frames or {streams.MAX_BYTES >> 20} MiB behind" in text
    assert f"At most {streams.MAX_STREAMS} streams can be open" in text
