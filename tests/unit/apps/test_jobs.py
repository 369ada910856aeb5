"""Periodic jobs: run, sleep for the current interval, run again. Nothing ends because of an exception."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fairq_ryu.apps import jobs
from fairq_ryu.apps.jobs import Job, every
from fairq_ryu.control.reports.faults import Faults


class Enough(Exception):
    """Ends the job after the wanted number of runs."""


def run(monkeypatch, job, sleeps, faults=None, workers=None):
    """Run a job, or workers, in this greenlet until it has slept ``sleeps`` times. Returns the duration of
    each sleep.
    """
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == sleeps:
            raise Enough

    monkeypatch.setattr(
        jobs, "hub", SimpleNamespace(sleep=sleep, spawn=lambda function, *args: function(*args))
    )
    with pytest.raises(Enough):
        jobs.start([] if job is None else [job], workers or {}, faults or Faults())
    return slept


def test_a_job_runs_before_each_sleep(monkeypatch):
    done = []
    assert run(monkeypatch, Job("test", every(0.25), lambda: done.append(1)), 3) == [0.25] * 3
    assert len(done) == 3


def test_the_interval_is_asked_for_after_each_run(monkeypatch):
    done = []
    job = Job("test", lambda: 0.05 if len(done) < 2 else 0.25, lambda: done.append(1))
    assert run(monkeypatch, job, 3) == [0.05, 0.25, 0.25]


def test_a_job_that_fails_runs_again_after_its_interval(monkeypatch):
    done, faults = [], Faults()

    def function():
        done.append(1)
        if len(done) != 3:
            raise ZeroDivisionError

    assert run(monkeypatch, Job("expiry", every(0.25), function), 4, faults) == [0.25] * 4
    assert len(done) == 4 and faults.counts == {"expiry": 3}


def test_a_job_whose_interval_fails_runs_again_after_a_second(monkeypatch):
    faults = Faults()
    assert run(monkeypatch, Job("tick", lambda: 1 / 0, lambda: None), 2, faults) == [1.0] * 2
    assert faults.counts == {"tick": 2}


def test_a_worker_that_fails_is_started_again(monkeypatch):
    faults, started = Faults(), []

    def worker():
        started.append(1)
        raise KeyError

    assert run(monkeypatch, None, 3, faults, {"copies": worker}) == [jobs._WORKER_AGAIN] * 3
    assert len(started) == 3 and faults.counts == {"copies": 3}


def test_each_worker_and_each_job_has_a_greenlet(monkeypatch):
    spawned = []
    monkeypatch.setattr(jobs, "hub", SimpleNamespace(spawn=lambda function, *args: spawned.append(args[0])))
    job = Job("tick", every(1.0), lambda: None)
    jobs.start([job], {"a": lambda: None, "b": lambda: None}, Faults())
    assert spawned == ["a", "b", job]


def test_the_connection_of_an_agent_whose_polling_fails_is_closed():
    ended, faults = [], Faults()
    link = SimpleNamespace(datapath=SimpleNamespace(end=ended.append))
    jobs.poll(lambda _: None, link, faults)
    assert not ended and not faults.counts
    jobs.poll(lambda polled: polled.nothing, link, faults)
    assert ended == ["its polling has failed"] and faults.counts == {"polling of agents": 1}
