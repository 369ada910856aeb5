"""The end of long TCP transfers: what has arrived of each is compared with what was sent of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairq_ryu.experiments.traffic.workers import Worker
from fairq_ryu.experiments.workloads.common.measurement import Measurement
from mininet_topos.patience import patient

FINISH_S = 30.0
"""Time limit for the data that hosts still have queued; what arrived by then is compared."""
_CHECKSUM_S, _CHECKSUM_RATE = 60.0, 50_000_000
"""Time limit for a checksum: 60 s, and a second for each 50 MB. A free processor does some GB/s."""


def checksum_limit_s(size: int) -> float:
    """Time limit for the checksums of ``size`` bytes in all, seconds."""
    return _CHECKSUM_S + size / _CHECKSUM_RATE


def finish_transfers(measurement: Measurement[Any], workers: Sequence[Worker], *sinks: Worker) -> None:
    """End the flows of generators that send to these sinks, and compare the length and the checksum of what
    arrived of each. `RunError` if a generator does not answer in time.
    """
    for worker in workers:
        worker.send("finish", timeout_s=patient(FINISH_S))
    answers = [worker.receive("finish", FINISH_S + 10.0) for worker in workers]
    received = {number: flow for sink in sinks for number, flow in sink.ask("sums")["flows"].items()}
    for worker, answer in zip(workers, answers, strict=True):
        for number, sent in answer["sent"].items():
            size, crc = received.get(number, (0, 0))
            sums = worker.ask("checksum", checksum_limit_s(size), bytes={number: size})["crc"]
            measurement.integrity.flow(size <= sent and crc == sums[number])
