"""Makes a port law of any object, so that the engine calls typed methods only.

A law of another package need not derive from :class:`PortLaw`, and may have only some of its methods, or
provide them by ``__getattr__``. They are looked up once, when the law is made; in place of one that the
object lacks, :class:`PortLaw`'s method is called, which does nothing.
"""

from __future__ import annotations

from typing import Final

from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Policy, PortLaw, port_law, switch_law

METHODS: Final = tuple(name for name in vars(PortLaw) if not name.startswith("_"))


class AdaptedLaw(PortLaw):
    """A law that is not derived from :class:`PortLaw`: the object's methods replace those of that class."""

    def __init__(self, law: object) -> None:
        for name in METHODS:
            method = getattr(law, name, None)
            if callable(method):
                setattr(self, name, method)


def adapted(law: object) -> PortLaw:
    """The law as a :class:`PortLaw`: itself, if it is one."""
    return law if isinstance(law, PortLaw) else AdaptedLaw(law)


def takes_announcements(policy: Policy) -> bool:
    """Whether a policy uses the announced sizes or deadlines of flows: its laws have ``announced``, or new
    connections take turns.
    """
    # Made for a port that does not exist: a law does nothing before its first event.
    nowhere = PortKey(0, 0)
    spec = switch_law(policy, nowhere)
    if spec is not None and spec.turns:
        return True
    law = port_law(policy, nowhere)
    if isinstance(law, PortLaw):
        return type(law).announced is not PortLaw.announced
    return callable(getattr(law, "announced", None))
