"""FairQ for stock Open vSwitch: shorter queues for data-centre TCP, from the network alone.

``fairq_ryu.announce(...)`` announces a flow to a controller (:func:`fairq_ryu.client.announce`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairq_ryu.client import announce

__all__ = ["__version__", "announce"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported on first use, because nothing else here needs an HTTP client.
    if name == "announce":
        from fairq_ryu.client import announce

        return announce
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
