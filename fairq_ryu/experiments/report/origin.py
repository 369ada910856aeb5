"""What a figure is of: the scenario, the policies, the commit and the command, in one line that stands beside
it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

Axes = Mapping[str, Sequence[Any]]
"""The values of each setting that a sweep has."""


def line(whole: Mapping[str, Any]) -> str:
    """Of a result."""
    policies = [each["policy"] for each in whole["policies"]]
    return text(whole["metadata"], whole["scenario"], policies, whole.get("repeat", 1))


def text(
    metadata: Mapping[str, Any],
    scenario: Mapping[str, Any],
    policies: Sequence[str],
    repeat: int | None = None,
    axes: Axes | None = None,
) -> str:
    """Of the parts of a result, or of a sweep with these ``axes``; ``repeat``: None where it differs."""
    name = metadata.get("scenario_name") or scenario["title"]
    changed = "".join(f" {name}={value}" for name, value in _changed(metadata, axes))
    parts = [
        f"scenario {name}{changed}",
        f"policies {', '.join(policies)}",
        *([] if repeat is None else [f"{repeat} repetition{'' if repeat == 1 else 's'}"]),
        "simulated" if metadata.get("simulator") else f"Linux {metadata.get('kernel', 'unknown')}",
        f"commit {commit(metadata)}",
        f"command {command(metadata, name, policies, repeat, axes)}",
    ]
    return "; ".join(parts)


def command(
    metadata: Mapping[str, Any],
    name: str,
    policies: Sequence[str],
    repeat: int | None = None,
    axes: Axes | None = None,
) -> str:
    """What runs the scenario ``name`` again; a configuration file is in the result."""
    simulated = metadata.get("simulator")
    words = ["fairq", "sweep" if axes is not None else "simulate" if simulated else "run", name]
    words += [f"{axis}={value}" for axis, value in _axes(axes)]
    words += ["--policy", ",".join(policies)]
    for setting, value in (metadata.get("overrides") or {}).items():
        words += ["--set", f"{setting}={value}"]
    words += ["--repeat", str(repeat)] if repeat and repeat > 1 else []
    for option, key in (("--link-mbit", "link_mbit"), ("--ack-every", "ack_every")):
        words += [option, f"{simulated[key]:g}"] if simulated and key in simulated else []
    words += ["--config-file", "FILE"] if metadata.get("policy_config") else []
    return shlex.join(words)


def commit(metadata: Mapping[str, Any]) -> str:
    """The beginning of the commit; with + if files were changed since."""
    changed = metadata.get("git_changes") or metadata.get("git_dirty")
    return str(metadata.get("git_commit") or "unknown")[:12] + ("+" if changed else "")


def _changed(metadata: Mapping[str, Any], axes: Axes | None) -> list[tuple[str, Any]]:
    return [*(metadata.get("overrides") or {}).items(), *_axes(axes)]


def _axes(axes: Axes | None) -> list[tuple[str, str]]:
    return [(name, ",".join(map(str, values))) for name, values in (axes or {}).items()]
