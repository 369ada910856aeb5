"""The policy of a running controller: reading it, and changing it with the checks of the configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ryu.lib import hub

from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import settings_of
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.errors import UserError
from fairq_ryu.policies.base import Policy, available, same
from fairq_ryu.policies.choice import PolicyChoice, make
from fairq_ryu.setting import Value, check_value


@dataclass(eq=False)
class PolicyControl:
    """Changes the policies. ``config`` is what they were made from; changes last until the controller ends
    and are not written to a file.
    """

    windows: WindowController
    config: Config
    report: Callable[[Occurrence], object]
    log: logging.Logger
    # One change at a time: its rules must be sent before those of the next.
    _lock: hub.Semaphore = field(default_factory=hub.Semaphore, init=False)

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
        with self._lock:
            self._change(policy, parameters)
        return self.policy()

    def _change(self, policy: str | None, parameters: Mapping[str, Value]) -> None:
        before = self.windows.engine.choice
        name = policy if policy is not None else before.default.name
        if name not in available():
            raise UserError(f"there is no policy {name!r}", f"known are {', '.join(available())}")
        values = _checked(name, parameters)
        config = self.config.changed(name, values)
        made = self._made(name, config, bool(values))
        choice = PolicyChoice(
            made[name], tuple((match, made[policy]) for match, policy in config.port_policies())
        )
        self.config = config
        if not _alike(before, choice):
            self.windows.use(choice)
            listed = ", ".join(f"{key} = {value}" for key, value in values.items())
            words = f"policy {name}{f' with {listed}' if listed else ''}"
            self.log.info("REST: now %s, was %s", words, before.default.name)
            self.report(Occurrence(Kind.POLICY, f"now {words}, was {before.default.name}"))

    def _made(self, name: str, config: Config, anew: bool) -> Mapping[str, Policy]:
        """The policies by name. Those that do not change stay the same objects, with their state."""
        made = {policy.name: policy for policy in self.windows.engine.choice.policies}
        for each in {name, *(policy for _, policy in config.port_policies())}:
            if each not in made or (each == name and anew):
                made[each] = make(each, config)
        return made


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
