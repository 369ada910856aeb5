import asyncio
import errno
import logging
import socket
from types import SimpleNamespace

from fairq_ryu.agent import bridge
from fairq_ryu.agent.bridge import AgentBridge


class Exhausted:
    """``accept`` fails so often for want of a file descriptor; then one asks, and nobody after it."""

    def __init__(self, failures):
        self.failures, self.tried = failures, 0

    async def accept(self, listening):
        self.tried += 1
        if self.tried <= self.failures:
            raise OSError(errno.EMFILE, "Too many open files")
        if self.tried > self.failures + 1:
            await asyncio.Event().wait()
        return socket.socket(socket.AF_UNIX), ""


def test_accept_without_a_descriptor_is_tried_again_and_said_once(monkeypatch, caplog):
    exhausted, asked = Exhausted(5), []

    async def answer(asking):
        asked.append(asking)
        asking.close()

    async def main():
        monkeypatch.setattr(asyncio.get_running_loop(), "sock_accept", exhausted.accept)
        agent = SimpleNamespace(name="s1", _answering=set(), _answer_status=answer)
        serving = asyncio.ensure_future(AgentBridge._serve_status(agent, None))
        while not asked:
            await asyncio.sleep(0)
        serving.cancel()

    monkeypatch.setattr(bridge, "_AGAIN", 0)
    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert exhausted.tried >= 6 and len(asked) == 1
    assert [record.message for record in caplog.records] == [
        "bridge s1: fairq status has no answer (Too many open files); trying again"
    ]
