"""An agent ends when it is ordered to, whatever the state of its connections."""

import asyncio
import errno
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent import controller_connection
from fairq_ryu.agent.controller_connection import ControllerConnection
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.channel import flow_records
from fairq_ryu.channel.flow_records import FlowRecord
from fairq_ryu.channel.framing import message
from fairq_ryu.controller_target import parse_target
from tests.support.agent_peer import HELLO
from tests.support.fakes import DATAPATH, FakeDatapath, split, wire
from tests.support.flownet import KEY

TARGET = parse_target("tcp:127.0.0.1:6653")
BARRIER = message(ofp.OFPT_BARRIER_REPLY, 1)


@pytest.mark.parametrize("outcome", [ConnectionRefusedError(111, "refused"), TimeoutError()])
def test_a_connection_attempt_that_fails_while_the_agent_ends(monkeypatch, outcome):
    """The result of the attempt and the order to end arrive before either is handled."""

    async def main():
        attempt = asyncio.get_running_loop().create_future()
        attempts = []

        async def open_connection(*_arguments, **_options):
            attempts.append(1)
            return await attempt

        monkeypatch.setattr(asyncio, "open_connection", open_connection)
        connection = ControllerConnection(TARGET, None, None, lambda: None)
        task = asyncio.create_task(connection.run())
        while not attempts:
            await asyncio.sleep(0)
        attempt.set_exception(outcome)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=2)
        ended = task in done and task.cancelled()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return ended

    for turns in range(6):
        assert asyncio.run(main()), f"{turns} turns of the loop after the answer"


@pytest.mark.parametrize("host", ["10.0..5", "x" * 64])
def test_an_address_that_no_host_can_have_is_tried_like_any_other(monkeypatch, caplog, host):
    """The other controllers of the agent are well."""
    monkeypatch.setattr(controller_connection, "_FIRST_RETRY", 0.0)

    async def main():
        connection = ControllerConnection(parse_target(f"tcp:{host}:6653"), None, None, lambda: None)
        task = asyncio.create_task(connection.run())
        while "cannot be reached" not in caplog.text and not task.done():
            await asyncio.sleep(0.001)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_a_fault_of_the_agent_ends_one_connection_and_not_the_agent(monkeypatch, caplog):
    """It connects again."""
    monkeypatch.setattr(controller_connection, "_FIRST_RETRY", 0.0)
    connected = []

    async def main():
        async def accept(_reader, writer):
            connected.append(writer)
            writer.write(HELLO)

        listening = await asyncio.start_server(accept, "127.0.0.1", 0)
        target = parse_target(f"tcp:127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        connection = ControllerConnection(target, None, OpenFlowServer("s1", 1, None, 4), lambda: 1 / 0)
        task = asyncio.create_task(connection.run())
        while len(connected) < 2 and not task.done():
            await asyncio.sleep(0.001)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for writer in connected:
            writer.close()
        listening.close()

    asyncio.run(main())
    assert "a fault of the agent" in caplog.text and "ZeroDivisionError" in caplog.text


def test_a_fault_at_the_end_of_a_connection_ends_only_that(monkeypatch, caplog):
    monkeypatch.setattr(controller_connection, "_FIRST_RETRY", 0.0)
    connected = []

    class Failing(OpenFlowServer):
        def forget_session(self, session, now_ns):
            raise OSError(errno.EMFILE, "too many")

    async def main():
        async def accept(_reader, writer):
            connected.append(writer)
            writer.close()

        listening = await asyncio.start_server(accept, "127.0.0.1", 0)
        target = parse_target(f"tcp:127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        connection = ControllerConnection(target, None, Failing("s1", 1, None, 4), lambda: None)
        task = asyncio.create_task(connection.run())
        while len(connected) < 2 and not task.done():
            await asyncio.sleep(0.001)
        assert not task.done() and not connection.connected
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        listening.close()

    asyncio.run(main())
    assert "a fault of the agent" in caplog.text


def test_a_controller_that_reads_slowly_keeps_its_connection_and_gets_everything():
    """A reply of 11 MB, more than may wait for a controller that does not read."""
    record = FlowRecord(KEY, 1, 0, 7, 1460, 0, 0, 0, 0)
    parts = [flow_records.encode_reply([record]) * 600] * 160
    waiting: list[int] = []

    async def main() -> bytes:
        data: Any = FakeDatapath(1)
        data.flow_records = lambda *_: parts
        received, done = bytearray(), asyncio.Event()

        async def controller(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked = wire(flow_records.request(DATAPATH, 0)) + wire(parser.OFPBarrierRequest(DATAPATH))
            writer.write(HELLO + asked)
            while not received.endswith(BARRIER):
                received.extend(await reader.read(1 << 16))
                if len(waiting) < 200:  # as long as the agent has more than its socket takes
                    await asyncio.sleep(0.001)
                if connection._writer is not None:
                    waiting.append(connection._writer.transport.get_write_buffer_size())
            done.set()

        server = await asyncio.start_server(controller, "127.0.0.1", 0)
        target = parse_target(f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}")
        connection = ControllerConnection(target, None, OpenFlowServer("s1", 1, data, 4), lambda: None)
        task = asyncio.create_task(connection.run())
        async with asyncio.timeout(30):
            await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        server.close()
        return bytes(received)

    replies = [each for each in split(asyncio.run(main())) if each[1] == ofp.OFPT_MULTIPART_REPLY]
    assert sum(len(each) - 24 for each in replies) == sum(map(len, parts)) > 8 << 20
    assert 0 < max(waiting) < 1 << 20  # bytes that wait in the agent


def test_the_reason_of_a_controller_that_refuses_the_agent_is_logged_once(monkeypatch, caplog):
    monkeypatch.setattr(controller_connection, "_AFTER_REFUSAL", 0.05)
    kind = ofp.OFPET_HELLO_FAILED.to_bytes(2, "big") + ofp.OFPHFC_INCOMPATIBLE.to_bytes(2, "big")
    refusal = message(ofp.OFPT_ERROR, 1, kind + b"install the same release")

    async def main() -> str:
        came = asyncio.Semaphore(0)

        async def controller(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(HELLO + refusal)
            await writer.drain()
            writer.close()
            came.release()

        server = await asyncio.start_server(controller, "127.0.0.1", 0)
        target = parse_target(f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}")
        agent = OpenFlowServer("s1", 1, FakeDatapath(1), 4)
        task = asyncio.create_task(ControllerConnection(target, None, agent, lambda: None).run())
        async with asyncio.timeout(30):
            for _ in range(3):
                await came.acquire()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        server.close()
        return target.text

    who = f"controller {asyncio.run(main())}"
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        f"{who}: it refuses this agent: install the same release; connection closed, will reconnect"
    ]
