"""The policy of a running controller: reading it, and changing it with the checks of the configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from ryu.lib import hub

from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import settings_of
from fairq_ryu.control.operations.requests import Key, Requests
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.errors import UserError
from fairq_ryu.policies.base import Policy, available, find, same
from fairq_ryu.policies.choice import PolicyChoice, make
from fairq_ryu.setting import Value, check_value

_POLICY, _PARAMETER = "policy", "parameter"


@dataclass(eq=False)
class PolicyControl:
    """Changes the policies. ``config`` is what they were made from; ``requests`` has the changes, which are
    not written to a file.
    """

    windows: WindowController
    config: Config
    requests: Requests
    report: Callable[[Occurrence], object]
    log: logging.Logger
    # One change at a time: its rules must be sent before those of the next.
    _lock: hub.Semaphore = field(default_factory=hub.Semaphore, init=False)

    def __post_init__(self) -> None:
        """Follow the requests."""
        self._first = self.config, self.windows.engine.policy.name
        for kind in (_POLICY, _PARAMETER):
            self.requests.follow(kind, self._requested)

    def policy(self) -> dict[str, Any]:
        """The current policy."""
        name = self.windows.engine.policy.name
        values = self.config.section(name)
        return {
            "policy": name,
            "parameters": [
                {
                    "name": setting.name,
                    "value": values[setting.name],
                    "type": setting.type_name,
                    "unit": setting.unit,
                    "default": setting.default,
                    "minimum": setting.minimum,
                    "maximum": setting.maximum,
                    "choices": list(setting.choices),
                    "help": setting.help,
                }
                for setting in settings_of(name).values()
            ],
            "ports": [{"match": match, "policy": name} for match, name in self.config.port_policies()],
            "available": available(),
        }

    def change(self, policy: str | None, parameters: Mapping[str, Value]) -> dict[str, Any]:
        """Change to ``policy`` (None: the one that runs) with ``parameters``. Everything is checked, and the
        new policies are made, before anything is done; raises :class:`UserError` otherwise.
        """
        name = policy if policy is not None else self.windows.engine.policy.name
        if name not in available():
            raise UserError(f"there is no policy {name!r}", f"known are {', '.join(available())}")
        values = _checked(name, parameters)
        self._made(name, self.config.changed(name, values), {name} if values else set())
        changes: dict[Key, Any] = {Key(_PARAMETER, f"{name}.{key}"): value for key, value in values.items()}
        if policy is not None:
            changes[Key(_POLICY)] = name
        self.requests.store(changes)
        return self.policy()

    def _requested(self, _: Iterable[str]) -> None:
        """The policy, or parameters of policies, are others than before."""
        with self._lock:
            try:
                self._carry_out()
            except UserError as error:
                # Another controller has accepted it; this one has another version, or other settings.
                self.log.error("the policy cannot be changed as it was requested: %s", error)
                self.report(Occurrence(Kind.POLICY, f"it cannot be changed as it was requested: {error}"))

    def _carry_out(self) -> None:
        before, config = self.windows.engine.choice, self._first[0]
        wanted: dict[str, dict[str, Value]] = {}
        for key, value in self.requests.of(_PARAMETER).items():
            policy, _, name = key.partition(".")
            wanted.setdefault(policy, {})[name] = value
        for policy, parameters in wanted.items():
            config = config.changed(policy, _checked(policy, parameters))
        name = self.requests.get(_POLICY) or self._first[1]
        if name not in available():
            raise UserError(f"there is no policy {name!r}", f"known are {', '.join(available())}")
        new = {policy: _new(self.config.section(policy), config.section(policy)) for policy in available()}
        made = self._made(name, config, {policy for policy, values in new.items() if values})
        choice = PolicyChoice(
            made[name], tuple((match, made[policy]) for match, policy in config.port_policies())
        )
        self.config = config
        if not _alike(before, choice):
            self.windows.use(choice)
            listed = ", ".join(f"{key} = {value}" for key, value in new[name].items())
            words = f"policy {name}{f' with {listed}' if listed else ''}"
            self.log.info("REST: now %s, was %s", words, before.default.name)
            self.report(Occurrence(Kind.POLICY, f"now {words}, was {before.default.name}"))

    def _made(self, name: str, config: Config, changed: Set[str]) -> Mapping[str, Policy]:
        """The policies by name; ``changed``: those whose own settings have changed. Those that do not change
        stay the same objects, with their state.
        """
        made = {policy.name: policy for policy in self.windows.engine.choice.policies}
        for each in {name, *(policy for _, policy in config.port_policies())}:
            if each not in made or _changes(each, config, changed):
                made[each] = make(each, config)
        return made


def _changes(name: str, config: Config, changed: Set[str]) -> bool:
    """Whether settings of a policy have changed, or those of a policy below, which a layer has a copy of."""
    if name in changed:
        return True
    return hasattr(find(name), "on") and _changes(str(config.section(name)["above"]), config, changed)


def _new(before: Mapping[str, Value], after: Mapping[str, Value]) -> dict[str, Value]:
    """The values that differ from those before."""
    return {name: value for name, value in after.items() if before[name] != value}


def _checked(policy: str, parameters: Mapping[str, Value]) -> dict[str, Value]:
    known = settings_of(policy)
    if parameters and not known:
        raise UserError(f"policy {policy} has no parameters", "leave them out")
    return {name: check_value("parameters", known, policy, name, value) for name, value in parameters.items()}


def _alike(one: PolicyChoice, other: PolicyChoice) -> bool:
    """Whether the two choices make no difference to any port."""
    if len(one.rules) != len(other.rules) or not same(one.default, other.default):
        return False
    pairs = zip(one.rules, other.rules, strict=True)
    return all(a == b and same(first, second) for (a, first), (b, second) in pairs)
