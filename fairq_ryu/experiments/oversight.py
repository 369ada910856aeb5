"""Checks at the end of a run, by the controller's counters, that the policy was in force all the time."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path

from fairq_ryu.experiments.traffic.workers import RunError
from mininet_topos.patience import patient

PATIENCE_S = 5.0
_FAILURES = "fairq_policy_failures_total"
_CHANGES = 'fairq_events_total{kind="policy"}'
_MAX_BYTES = 4 << 20
_MAX_WORDS = 200


def unsound(rest_port: int | None, log: Path) -> str | None:
    """The reason why the figures are not those of the policy; None if it ran without failure and change.

    ``rest_port`` is the port of the controller's REST interface on this machine, None without a controller;
    ``log`` is the controller's log, which has the error. `RunError` when the controller does not answer.
    """
    if rest_port is None:
        return None
    return verdict(_metrics(rest_port), log.read_text(errors="replace"))


def verdict(metrics: str, log: str) -> str | None:
    """The same from the text of ``/metrics`` and of the controller's log."""
    failures, changes = _value(metrics, _FAILURES), _value(metrics, _CHANGES)
    reasons = []
    if failures:
        error = last_failure(log)
        reasons.append(f"the policy failed {_times(failures)}{f', at last with {error}' if error else ''}")
    if changes:
        reasons.append(f"the policy was changed {_times(changes)} over REST")
    if reason := refused_law(log):
        reasons.append(f"the switch did not run its law: {reason}")
    if reason := refused_queue_law(log):
        reasons.append(f"its queue law was not in force: {reason}")
    return " and ".join(reasons) or None


def last_failure(log: str) -> str:
    """The exception of the last failure of a policy in a controller's log; "" without any."""
    _before, failed, after = log.rpartition("windows are taken down for")
    if not failed:
        return ""
    # The traceback's last line is the first that is not indented.
    found = re.search(r"^Traceback.*\n(?:[ \t].*\n|\n)*(\S.*)$", after, re.M)
    return found[1][:_MAX_WORDS] if found else ""


def refused_law(log: str) -> str:
    """Why a switch did not run a law, by the controller's log; "" if all did."""
    found = re.search(r"no windows (?:on port \S+|by laws of the switch): (.+)$", log, re.M)
    return found[1][:_MAX_WORDS] if found else ""


def refused_queue_law(log: str) -> str:
    """Why an agent did not run a queue law, by the controller's log; "" if all did."""
    found = re.search(r"no queue law on port \d+: (.+)$", log, re.M)
    return found[1][:_MAX_WORDS] if found else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _value(metrics: str, name: str) -> int:
    """A counter; 0 when it has not been counted yet."""
    for line in metrics.splitlines():
        label, _, value = line.rpartition(" ")
        if label == name:
            return int(float(value))
    return 0


def _metrics(port: int) -> str:
    try:
        # Without a proxy of the environment, because the controller is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=patient(PATIENCE_S)) as response:
            text: str = response.read(_MAX_BYTES).decode(errors="replace")
    except (OSError, ValueError) as error:
        raise RunError(f"the controller does not report whether its policy failed: {error}") from None
    if not re.search(rf"^{_FAILURES} ", text, re.M):
        raise RunError(f"the controller's /metrics has no {_FAILURES}")
    return text
