"""Which policy governs which port: by a pattern on the interface name, or by what the port leads to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from fairq_ryu.errors import UserError
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters, Policy, app_of, find, renewal_interval

ROLE = "role:"


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """``rules`` are tried in their order: the first whose pattern matches decides, or else ``default``.

    A pattern is a shell pattern on the interface name (``leaf1-eth*``), or ``role:host`` or ``role:link``. A
    port without a known name or role matches no pattern of that kind, but ``*`` matches all ports.
    """

    default: Policy
    rules: tuple[tuple[str, Policy], ...] = ()

    def policy(self, port: PortKey, name: str, role: str) -> Policy:
        """The policy for a port: its interface's ``name``, and its ``role`` ("host", "link" or "")."""
        for pattern, policy in self.rules:
            if _matches(pattern, name, role):
                return policy
        return self.default

    @property
    def policies(self) -> tuple[Policy, ...]:
        """All policies that may govern a port, the default first."""
        return tuple({id(p): p for p in (self.default, *(policy for _, policy in self.rules))}.values())


def _matches(pattern: str, name: str, role: str) -> bool:
    if pattern.startswith(ROLE):
        return role == pattern.removeprefix(ROLE)
    return fnmatchcase(name, pattern)


class Configuration(Protocol):
    """The part of the configuration (:class:`fairq_ryu.config.loader.Config`) that :func:`choose` reads."""

    def number(self, section: str, name: str) -> float: ...

    def section(self, section: str) -> Parameters: ...

    def port_policies(self) -> Sequence[tuple[str, str]]: ...

    def policy(self) -> str: ...


def choose(app: str, settings: Configuration) -> PolicyChoice:
    """The policies that an application and a configuration name, made from their settings.

    ``app``: the policy of the application, "" if it has none. Raises :class:`UserError` if the two contradict
    each other, no policy is named, one cannot be found or loaded, or its interval is too long for the lease.
    """
    named = settings.policy()
    if app and named and named != app:
        raise UserError(
            f"the application is {app_of(app)}, but [fairq_ryu] policy = {named}",
            f"start {app_of(named)}, or take that line out",
        )
    if not app and not named:
        raise UserError(
            "no policy is named", "start an application that has one, or set [fairq_ryu] policy = NAME"
        )
    made: dict[str, Policy] = {}

    def policy(name: str) -> Policy:
        if name not in made:
            made[name] = make(name, settings)
        return made[name]

    rules = tuple((pattern, policy(name)) for pattern, name in settings.port_policies())
    return PolicyChoice(policy(named or app), rules)


def make(name: str, settings: Configuration) -> Policy:
    """The policy of that name with its settings. Raises :class:`UserError` as :func:`choose` does."""
    policy_class = find(name)
    try:
        parameters = settings.section(name)
        layer: Callable[[Parameters, Policy], Policy] | None = getattr(policy_class, "on", None)
        if layer is None:
            policy = policy_class(parameters)
        else:
            policy = layer(parameters, make(str(parameters["above"]), settings))
        interval = float(policy.interval)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"policy {name} cannot be made: {type(error).__name__}: {error}",
            f"correct section [{name}], or the policy",
        ) from error
    lease = settings.number("fairq_ryu", "lease")
    if not 0 < interval <= renewal_interval(lease):
        raise UserError(
            f"policy {name} wants the queue every {interval:g} s; with [fairq_ryu] lease = {lease:g} s "
            "its rules would end before they are renewed",
            "make the interval at most a quarter of the lease, and more than 0",
        )
    return policy
