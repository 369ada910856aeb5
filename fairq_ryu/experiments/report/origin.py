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
    return text(whole["metadata"], policies, whole["repeat"], series=whole.get("series"))


def text(
    metadata: Mapping[str, Any],
    policies: Sequence[str],
    repeat: int | None = None,
    axes: Axes | None = None,
    series: str | None = None,
) -> str:
    """Of the parts of a result, or of a sweep with these ``axes``; ``repeat``: None where it differs;
    ``series``: the command that makes the series of which it is a part.
    """
    changed = "".join(f" {name}={value}" for name, value in _changed(metadata, axes))
    parts = [
        f"scenario {metadata['scenario_name']}{changed}",
        f"policies {', '.join(policies)}",
        *([] if repeat is None else [f"{repeat} repetition{'' if repeat == 1 else 's'}"]),
        "simulated" if metadata.get("simulator") else f"Linux {metadata['kernel']}",
        f"commit {commit(metadata)}",
        f"command {series or command(metadata, policies, repeat, axes)}",
    ]
    return "; ".join(parts)


def command(
    metadata: Mapping[str, Any],
    policies: Sequence[str],
    repeat: int | None = None,
    axes: Axes | None = None,
) -> str:
    """What runs the scenario again; a configuration file is in the result."""
    simulated = metadata.get("simulator")
    verb = "sweep" if axes is not None else "simulate" if simulated else "run"
    words = ["fairq", verb, metadata["scenario_name"]]
    words += [f"{axis}={value}" for axis, value in _axes(axes)]
    words += ["--policy", ",".join(policies)]
    for setting, value in metadata["overrides"].items():
        words += ["--set", f"{setting}={value}"]
    words += ["--repeat", str(repeat)] if repeat and repeat > 1 else []
    for option, key in (("--link-mbit", "link_mbit"), ("--ack-every", "ack_every")):
        words += [option, f"{simulated[key]:g}"] if simulated else []
    words += ["--config-file", "FILE"] if metadata["policy_config"] else []
    return shlex.join(words)


def commit(metadata: Mapping[str, Any]) -> str:
    """The beginning of the commit; with + if files were changed since."""
    changed = metadata["git_changes"] or metadata["git_dirty"]
    return (metadata["git_commit"] or "unknown")[:12] + ("+" if changed else "")


def _changed(metadata: Mapping[str, Any], axes: Axes | None) -> list[tuple[str, Any]]:
    return [*metadata["overrides"].items(), *_axes(axes)]


def _axes(axes: Axes | None) -> list[tuple[str, str]]:
    return [(name, ",".join(map(str, values))) for name, values in (axes or {}).items()]
