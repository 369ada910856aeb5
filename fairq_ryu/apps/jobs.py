"""Greenlets of the controller: periodic jobs and workers, started by one function."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ryu.lib import hub

LOG = logging.getLogger(__name__)


class Job(NamedTuple):
    """``function`` runs again ``interval()`` seconds after it has returned."""

    name: str
    interval: Callable[[], float]
    function: Callable[[], object]


def every(seconds: float) -> Callable[[], float]:
    """An interval that does not change."""
    return lambda: seconds


def start(jobs: Iterable[Job], workers: Iterable[Callable[[], object]]) -> None:
    """Start each job and each worker in a greenlet of its own. Workers wait for work by themselves."""
    for worker in workers:
        hub.spawn(worker)
    for job in jobs:
        hub.spawn(_repeat, job)


def _repeat(job: Job) -> None:
    try:
        while True:
            job.function()
            hub.sleep(job.interval())
    except Exception:
        LOG.error("job %s has failed and does not run any more", job.name)
        raise
