"""Who gets the events of Ryu, for messages that need not become events."""

from __future__ import annotations

from typing import Any


def only_one(datapath: Any, event: type) -> bool:
    """Whether exactly one application observes this kind of event of a connected datapath."""
    brick = datapath.ofp_brick
    return brick is not None and len(brick.observers.get(event, ())) == 1
