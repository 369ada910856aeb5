"""An agent ends when it is ordered to, whatever the state of its connections."""

import asyncio

import pytest

from fairq_ryu.agent.controller_connection import ControllerConnection
from fairq_ryu.agent.options import parse_target

TARGET = parse_target("tcp:127.0.0.1:6653")


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
        connection = ControllerConnection(TARGET, None, 8.0, None, lambda: None)
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
