"""Periodic jobs: run, sleep for the current interval, run again."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from fairq_ryu.apps import jobs
from fairq_ryu.apps.jobs import Job, every


class Enough(Exception):
    """Ends the job after the wanted number of runs."""


def run(monkeypatch, job, sleeps):
    """Run a job in this greenlet until it has slept ``sleeps`` times. Returns the duration of each sleep."""
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == sleeps:
            raise Enough

    monkeypatch.setattr(
        jobs, "hub", SimpleNamespace(sleep=sleep, spawn=lambda function, *args: function(*args))
    )
    with pytest.raises(Enough):
        jobs.start([job], [])
    return slept


def test_a_job_runs_before_each_sleep(monkeypatch):
    done = []
    assert run(monkeypatch, Job("test", every(0.25), lambda: done.append(1)), 3) == [0.25] * 3
    assert len(done) == 3


def test_the_interval_is_asked_for_after_each_run(monkeypatch):
    done = []
    job = Job("test", lambda: 0.05 if len(done) < 2 else 0.25, lambda: done.append(1))
    assert run(monkeypatch, job, 3) == [0.05, 0.25, 0.25]


def test_a_job_that_fails_is_named_in_the_log(monkeypatch, caplog):
    monkeypatch.setattr(jobs, "hub", SimpleNamespace(spawn=lambda function, *args: function(*args)))
    with caplog.at_level(logging.ERROR), pytest.raises(ZeroDivisionError):
        jobs.start([Job("expiry", every(1.0), lambda: 1 / 0)], [])
    assert caplog.messages == ["job expiry has failed and does not run any more"]


def test_workers_are_started(monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "hub", SimpleNamespace(spawn=lambda function, *args: function(*args)))
    jobs.start([], [lambda: started.append("a"), lambda: started.append("b")])
    assert started == ["a", "b"]
