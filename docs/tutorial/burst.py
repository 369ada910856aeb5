"""A small incast for docs/tutorial.md, with Python's standard library only.

burst.py serve                 answer every connection with 11,500 bytes, until interrupted
burst.py fetch HOST [HOST...]  five times, open 8 connections to each host at once and fetch all answers
"""

from __future__ import annotations

import asyncio
import sys
import time

PORT = 5002
ANSWER_BYTES = 11_500
CONNECTIONS = 8  # to each host
BURSTS = 5
PAUSE = 1.0  # between two bursts, seconds


async def _answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(bytes(ANSWER_BYTES))
    await writer.drain()
    writer.close()


async def serve(port: int = PORT) -> None:
    """Answer every connection to ``port``, until cancelled."""
    server = await asyncio.start_server(_answer, port=port, backlog=1000)
    await server.serve_forever()


async def fetch(host: str, port: int = PORT) -> float:
    """Milliseconds from the start of a connection to the last byte. OSError if there is no whole answer."""
    start = time.monotonic()
    reader, writer = await asyncio.open_connection(host, port)
    received = len(await reader.read(-1))
    writer.close()
    if received != ANSWER_BYTES:
        raise OSError(f"{host} sent {received} bytes of {ANSWER_BYTES}")
    return 1000 * (time.monotonic() - start)


async def burst(hosts: list[str], port: int = PORT) -> list[float]:
    """The times of one burst, sorted."""
    waiting = [fetch(host, port) for host in hosts for _ in range(CONNECTIONS)]
    return sorted(await asyncio.gather(*waiting))


async def main(arguments: list[str]) -> None:
    """Run one of the two commands. SystemExit when there is no such command."""
    match arguments:
        case ["serve"]:
            await serve()
        case ["fetch", *hosts] if hosts:
            for number in range(1, BURSTS + 1):
                times = await burst(hosts)
                median = times[len(times) // 2]
                print(
                    f"burst {number}: {len(times)} answers, "
                    f"first {times[0]:.0f} ms, median {median:.0f} ms, last {times[-1]:.0f} ms"
                )
                await asyncio.sleep(PAUSE)
        case _:
            sys.exit("usage: burst.py serve | burst.py fetch HOST [HOST...]")


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:]))
    except OSError as error:
        sys.exit(f"burst.py: {error}")
