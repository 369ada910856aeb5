"""The policy of a running controller: reading it, and changing it with the checks of the configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ryu.lib import hub

from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import settings_of
from fairq_ryu.control.operations.requests import WRONG, Key, Requests
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.windows.queue_laws import beside
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.errors import UserError
from fairq_ryu.policies.base import Policy, available, find, same
from fairq_ryu.policies.choice import PolicyChoice, make
from fairq_ryu.policies.common_settings import SHARED
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
            raise _unknown(name)
        values, known = _checked(name, parameters), settings_of(name)
        config = self.config.changed(name, values)
        self._made(name, config, self._changed(config))
        # By the section in which it is written: a shared setting is the same one for all policies.
        changes: dict[Key, Any] = {
            Key(_PARAMETER, f"{known[key].section}.{key}"): value for key, value in values.items()
        }
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
                self._not_done("the policy", error)

    def _not_done(self, what: str, error: Exception) -> None:
        """Another controller has accepted it; this one has another version, or other settings."""
        self.log.error("%s cannot be changed as it was requested: %s", what, error)
        self.report(Occurrence(Kind.POLICY, f"{what} cannot be changed as it was requested: {error}"))

    def _wanted(self) -> Config:
        """The configuration with all parameters that were requested, but those that it cannot have."""
        config, wanted = self._first[0], dict[str, dict[str, Value]]()
        for key, value in sorted(self.requests.of(_PARAMETER).items()):
            section, _, name = key.partition(".")
            try:
                if section not in available() and settings_of(section).get(name) not in SHARED:
                    raise UserError(f"no policy has a setting {key}", "another version wrote it")
                wanted.setdefault(section, {}).update(_checked(section, {name: value}))
            except WRONG as error:
                self._not_done(f"parameter {key}", error)
        for section, parameters in wanted.items():
            try:
                config = config.changed(section, parameters)
            except UserError:
                config = self._one_by_one(config, section, parameters)
        return config

    def _one_by_one(self, config: Config, section: str, parameters: dict[str, Value]) -> Config:
        """Not all of these are possible together: take as many as are."""
        refused: dict[str, UserError] = {}
        while parameters.keys() != refused.keys():
            name = next(each for each in parameters if each not in refused)
            try:
                config = config.changed(section, {name: parameters[name]})
            except UserError as error:
                refused[name] = error
            else:
                # What was not possible before may be now.
                parameters = {each: value for each, value in parameters.items() if each != name}
                refused.clear()
        for name, why in refused.items():
            self._not_done(f"parameter {section}.{name}", why)
        return config

    def _carry_out(self) -> None:
        before, config = self.windows.engine.choice, self._wanted()
        name = self.requests.get(_POLICY) or self._first[1]
        if name not in available():
            self._not_done("the policy", _unknown(name))
            name = before.default.name
        new = self._changed(config)
        made = self._made(name, config, new)
        choice = PolicyChoice(
            made[name], tuple((match, made[policy]) for match, policy in config.port_policies())
        )
        if config.value("fairq_ryu", "queue_law") in new:
            self.windows.queue_laws.use(beside(config))
        self.config = config
        if not _alike(before, choice):
            self.windows.use(choice)
            listed = ", ".join(f"{key} = {value}" for key, value in new.get(name, {}).items())
            words = f"policy {name}{f' with {listed}' if listed else ''}"
            self.log.info("REST: now %s, was %s", words, before.default.name)
            self.report(Occurrence(Kind.POLICY, f"now {words}, was {before.default.name}"))

    def _changed(self, config: Config) -> dict[str, dict[str, Value]]:
        """The policies that have other values in this configuration, and these. A layer changes with the
        policy that it stands on.
        """
        new = {policy: _new(self.config.section(policy), config.section(policy)) for policy in available()}
        found = {policy: values for policy, values in new.items() if values}
        below = {each: config.section(each)["above"] for each in available() if hasattr(find(each), "on")}
        # A policy of another package can be a layer on a layer.
        while layers := [each for each in below if each not in found and below[each] in found]:
            found.update({each: {} for each in layers})
        return found

    def _made(self, name: str, config: Config, anew: Iterable[str]) -> Mapping[str, Policy]:
        """The policies by name. Those that do not change stay the same objects, with their state."""
        made = {policy.name: policy for policy in self.windows.engine.choice.policies}
        for each in {name, *(policy for _, policy in config.port_policies())}:
            if each not in made or each in anew:
                made[each] = make(each, config)
        return made


def _unknown(policy: object) -> UserError:
    return UserError(f"there is no policy {policy!r}", f"known are {', '.join(available())}")


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
