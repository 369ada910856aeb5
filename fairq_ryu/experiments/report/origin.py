"""What a figure is of: the scenario, the policies and the commit, in one line that stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def line(whole: Mapping[str, Any]) -> str:
    """Of a result."""
    policies = [each["policy"] for each in whole["policies"]]
    return text(whole["metadata"], whole["scenario"], policies, whole.get("repeat", 1))


def text(
    metadata: Mapping[str, Any], scenario: Mapping[str, Any], policies: list[str], repeat: int | None = None
) -> str:
    """Of the parts of a result; ``repeat``: None where it differs."""
    changed = "".join(f" {name}={value}" for name, value in (metadata.get("overrides") or {}).items())
    parts = [
        f"scenario {metadata.get('scenario_name') or scenario['title']}{changed}",
        f"policies {', '.join(policies)}",
        *([] if repeat is None else [f"{repeat} repetition{'' if repeat == 1 else 's'}"]),
        "simulated" if metadata.get("simulator") else f"Linux {metadata.get('kernel', 'unknown')}",
        f"commit {commit(metadata)}",
    ]
    return "; ".join(parts)


def commit(metadata: Mapping[str, Any]) -> str:
    """The beginning of the commit; with + if files were changed since."""
    changed = metadata.get("git_changes") or metadata.get("git_dirty")
    return str(metadata.get("git_commit") or "unknown")[:12] + ("+" if changed else "")
