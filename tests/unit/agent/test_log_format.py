"""The agent's log has no control characters of names that others have chosen."""

from __future__ import annotations

import io
import logging

from fairq_ryu.agent.log_format import PlainFormatter


def test_names_are_plain_and_tracebacks_keep_their_lines() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainFormatter("fairq agent: br%s\x1b"))
    log = logging.Logger("test")
    log.addHandler(handler)
    log.warning("port %s: watched", "x\x1b[2J\n\x9b")
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("failed")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "fairq agent: br%s\N{REPLACEMENT CHARACTER}: port x{0}[2J{0}{0}: watched".replace(
        "{0}", "\N{REPLACEMENT CHARACTER}"
    )
    assert lines[1].endswith(": failed") and lines[-1] == "ValueError: no"
