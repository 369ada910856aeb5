"""Greenlets of the controller: periodic jobs and workers, started by one function, and the polls of agents.

An exception ends none of them: it is noted, and the greenlet goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ryu.lib import hub

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.reports.faults import Faults

# Seconds until a worker is started again, and until a job is, if its interval is not known.
_WORKER_AGAIN, _JOB_AGAIN = 0.1, 1.0


class Job(NamedTuple):
    """``function`` runs again ``interval()`` seconds after it has returned."""

    name: str
    interval: Callable[[], float]
    function: Callable[[], object]


def every(seconds: float) -> Callable[[], float]:
    """An interval that does not change."""
    return lambda: seconds


def start(jobs: Iterable[Job], workers: Mapping[str, Callable[[], object]], faults: Faults) -> None:
    """Start each job and each worker in a greenlet of its own. Workers, by name, wait for work by
    themselves and do not return.
    """
    for name, worker in workers.items():
        hub.spawn(_keep_running, name, worker, faults)
    for job in jobs:
        hub.spawn(_repeat, job, faults)


def _repeat(job: Job, faults: Faults) -> None:
    while True:
        wait = _JOB_AGAIN
        with faults.noted(job.name):
            try:
                job.function()
            finally:
                wait = job.interval()
        hub.sleep(wait)


def _keep_running(name: str, worker: Callable[[], object], faults: Faults) -> None:
    while True:
        with faults.noted(name):
            worker()
        hub.sleep(_WORKER_AGAIN)


def poll(run: Callable[[AgentLink], object], link: AgentLink, faults: Faults) -> None:
    """Poll an agent until it disconnects. After an exception its connection is closed: it connects again,
    and is polled anew.
    """
    try:
        run(link)
    except Exception as error:
        faults.add("polling of agents", error)
        link.datapath.end("its polling has failed")
