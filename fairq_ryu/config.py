"""Every setting of fairq_ryu: one list, with type, unit, default and bounds.

The file is the one that ``ryu-manager --config-file`` reads (INI, as oslo.config has it); our
sections stand beside Ryu's own ``[DEFAULT]``. Unknown keys and values out of bounds are refused with
one line that says where; nothing is guessed. A policy of another package declares the settings of its
section itself, as its attribute ``settings``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from fairq_ryu import inifile
from fairq_ryu.errors import UserError
from fairq_ryu.model import Service
from fairq_ryu.policies.base import available, find
from fairq_ryu.services import PORTS, SERVICE, SERVICE_SETTINGS, read_ports, read_service
from fairq_ryu.setting import Setting, Value, closest, read_value

__all__ = ["SECTIONS", "SERVICE_SETTINGS", "SETTINGS", "Config", "Setting", "Value", "load", "settings_of"]


def _deadline_settings(section: str) -> tuple[Setting, ...]:
    """What SED and RSED have in common, which is all of SED."""
    return (
        Setting(section, "interval", 0.01, "s", "T: how often windows are worked out anew.", 0.0005, 10),
        Setting(
            section, "threshold", 0.25, "", "K: a queue of this part of the buffer is congested.", 0.01, 1
        ),
        Setting(section, "nom", 0.2, "", "It ceases to be at this part of K.", 0, 0.95),
        Setting(
            section,
            "base_rtt",
            0.001,
            "s",
            "Round-trip time with empty queues, until flows of the port have shown theirs.",
            0.00001,
            10,
        ),
        Setting(
            section, "base_segments", 1, "segments", "Window that every flow without deadline gets.", 1, 10
        ),
        Setting(
            section,
            "margin",
            0.9,
            "",
            "Flows are planned to end after this part of the time to their deadline (1: at the deadline).",
            0.1,
            1,
        ),
        Setting(
            section,
            "missed",
            "demote",
            "",
            "A flow whose deadline has passed: demote (it has none any more) or pause (it gets nothing).",
            choices=("demote", "pause"),
        ),
        Setting(
            section,
            "partial",
            False,
            "",
            "A deadline flow that needs more than is left gets what is left, and not nothing.",
        ),
        Setting(
            section,
            "keep",
            0.5,
            "",
            "A flow that sends already is not paused while this part of its need is left (1: it is).",
            0,
            1,
        ),
        Setting(
            section,
            "floors",
            True,
            "",
            "A deadline flow's window, at least a segment, is taken off the total, not only its need.",
        ),
        Setting(
            section,
            "spare",
            True,
            "",
            "What no deadline flow needs goes to them, the earliest first, when all flows have deadlines.",
        ),
        Setting(
            section,
            "settle",
            0.004,
            "s",
            "Flows that come or go within this time are worked out together.",
            0,
            1,
        ),
        Setting(
            section,
            "anticipate",
            True,
            "",
            "Windows stand as soon as the first windows of new flows would make the queue congested.",
        ),
        Setting(
            section,
            "initial_window",
            10,
            "segments",
            "What a new flow of these hosts sends at once.",
            1,
            1000,
        ),
        Setting(
            section,
            "idle_after",
            0.2,
            "s",
            "A flow that has sent nothing for this long takes no share (0: it takes its share always).",
            0,
            3600,
        ),
        Setting(
            section,
            "linger",
            0.1,
            "s",
            "Windows go when the queue has been at NOM for this long (0: at once).",
            0,
            60,
        ),
        Setting(
            section,
            "syn_allowance",
            256,
            "flows",
            "Of those who open connections on one port, so many that nobody has answered yet count.",
            1,
            1_000_000,
        ),
    )


SETTINGS: tuple[Setting, ...] = (
    # The controller, whatever its policy.
    Setting(
        "fairq_ryu",
        "policy",
        "",
        "",
        "The policy of ports that section [ports] does not name (empty: the one in the application's name).",
    ),
    Setting("fairq_ryu", "lease", 2, "s", "How long a window rule stands without being renewed.", 1, 60),
    Setting(
        "fairq_ryu",
        "flow_idle_timeout",
        60.0,
        "s",
        "A flow whose packets its switch has not seen for this long leaves the flow table.",
        1,
        86400,
    ),
    Setting(
        "fairq_ryu",
        "flow_poll_interval",
        1.0,
        "s",
        "How often the switches' flow records are compared with the controller's flow table.",
        0.1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "default_buffer",
        0,
        "bytes",
        "Buffer of ports whose queueing discipline does not say (0: leave such ports alone).",
        0,
        1 << 31,
    ),
    Setting(
        "fairq_ryu",
        "packet_in_rate",
        10000,
        "packets/s",
        "At most so many packets are copied to the controller by a bridge that has meters (0: no limit).",
        0,
        10_000_000,
    ),
    Setting(
        "fairq_ryu",
        "host_idle_timeout",
        300,
        "s",
        "A host that sends nothing for this long is forgotten; it is learnt again with its next packet.",
        10,
        65535,
    ),
    Setting(
        "fairq_ryu",
        "syn",
        "copy",
        "",
        "copy: a SYN goes on while its copy is handled; hold: it goes on once path and windows stand.",
        choices=("copy", "hold"),
    ),
    Setting(
        "fairq_ryu",
        "hold_lease",
        3,
        "s",
        "With syn = hold: new connections pass unheld once the controller has been gone for this long.",
        1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "path_choice",
        "hash",
        "",
        "Which shortest path a new flow gets: hash (of addresses and ports), or least-loaded (fewest flows).",
        choices=("hash", "least-loaded"),
    ),
    Setting(
        "fairq_ryu",
        "pins",
        "choice",
        "",
        "Flows between switches get rules of their own: where there is a choice of ways, or always.",
        choices=("choice", "always"),
    ),
    Setting(
        "fairq_ryu",
        "discovery_time",
        1.5,
        "s",
        "A port that no switch has shown itself at for this long is a host's.",
        0.1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "token_file",
        "",
        "",
        "File with the token for changes over REST (empty: that of FAIRQ_TOKEN, or no changes at all).",
    ),
    Setting(
        "fairq_ryu",
        "rest_names",
        "",
        "",
        "By these names, blanks between them, requests may call the controller; also by its addresses.",
    ),
    Setting("fairq_ryu", "rest_body", 65536, "bytes", "A request over REST is no larger.", 1024, 1 << 20),
    Setting("fairq_ryu", "rest_page", 1000, "rows", "A page of a list is no longer.", 200, 1000),
    Setting("fairq_ryu", "rest_streams", 16, "", "Open streams of events and of the live page.", 0, 256),
    # FairQ.
    Setting("fairq", "interval", 0.002, "s", "T: how often the queue is read.", 0.0005, 10),
    Setting("fairq", "increments", 8, "", "M: the window moves once in so many readings.", 1, 1000),
    Setting("fairq", "alpha", 0.25, "", "Target queue as a fraction of the buffer.", 0.01, 1),
    Setting("fairq", "slow_start", True, "", "Open the window fast until the queue first meets the target."),
    Setting(
        "fairq",
        "base_rtt",
        0.001,
        "s",
        "Round-trip time with empty queues; the pool never exceeds the buffer plus this times the rate.",
        0,
        10,
    ),
    Setting(
        "fairq",
        "linger",
        2.0,
        "s",
        "A port that has had no flows for this long loses its windows.",
        0,
        3600,
    ),
    Setting(
        "fairq",
        "floor_segments",
        2,
        "segments",
        "Windows are not pressed below this, as long as the buffer holds them all.",
        1,
        10,
    ),
    # Fixed.
    Setting("fixed", "pool", 100000, "bytes", "The pool that the flows of a port share.", 1, 1 << 31),
    Setting(
        "fixed",
        "interval",
        0.1,
        "s",
        "How often the queue is read, to see whether there are flows.",
        0.0005,
        10,
    ),
    # IQM.
    Setting("iqm", "interval", 0.01, "s", "T_i: new flows are counted over this long.", 0.0005, 10),
    Setting(
        "iqm", "alpha", 0.2, "", "Incast has passed when the queue is below this part of the buffer.", 0, 1
    ),
    Setting(
        "iqm", "initial_window", 10, "segments", "What a new flow of these hosts sends at once.", 1, 1000
    ),
    Setting(
        "iqm",
        "syn_allowance",
        256,
        "flows",
        "Of those who open connections on one port, so many that nobody has answered yet count.",
        1,
        1_000_000,
    ),
    Setting(
        "iqm",
        "linger",
        0.05,
        "s",
        "The queue must have been that short for this long (0: at the end of one interval).",
        0,
        60,
    ),
    # SED, and RSED, which has all of it.
    *_deadline_settings("sed"),
    *_deadline_settings("rsed"),
    Setting(
        "rsed",
        "recovery",
        "reinject",
        "",
        "What is done about a dropped segment: dupack, reinject, both or none.",
        choices=("dupack", "reinject", "both", "none"),
    ),
    Setting(
        "rsed",
        "recovery_bytes",
        1 << 20,
        "bytes",
        "So much of dropped segments is remembered for each port.",
        0,
        1 << 31,
    ),
    Setting("rsed", "recovery_age", 1.0, "s", "A dropped segment is given up after this.", 0.001, 60),
    # The agent.
    Setting("agent", "flows", 65536, "", "Connections remembered per bridge.", 64, 16_777_216),
    Setting("agent", "rules", 4096, "", "Rules for single flows per bridge.", 1, 1_048_576),
    Setting("agent", "ports", 512, "", "Ports per bridge.", 1, 65279),
    Setting(
        "agent",
        "active_timeout",
        0.2,
        "s",
        "A flow that has sent no data for this long takes no share of the pool.",
        0.008,
        60,
    ),
    Setting(
        "agent",
        "flow_idle_timeout",
        300.0,
        "s",
        "A silent flow is forgotten after this; its window scale with it.",
        1,
        86400,
    ),
    Setting("agent", "closed_timeout", 2.0, "s", "A closed flow is forgotten after this.", 0.1, 3600),
    Setting(
        "agent",
        "congestion_gap",
        0.002,
        "s",
        "Controllers are told of a port's congestion at most once in this time; the last state always.",
        0,
        10,
    ),
    Setting(
        "agent",
        "drop_rate",
        20000,
        "packets/s",
        "At most so many dropped packets are handed to controllers that asked for them.",
        1,
        1_000_000,
    ),
    Setting(
        "agent", "reconnect_max", 8.0, "s", "Longest pause between attempts to reach a controller.", 0.1, 300
    ),
)

SECTIONS: Mapping[str, Mapping[str, Setting]] = MappingProxyType(
    {
        section: MappingProxyType({s.name: s for s in SETTINGS if s.section == section})
        for section in dict.fromkeys(s.section for s in SETTINGS)
    }
)


def settings_of(section: str) -> Mapping[str, Setting]:
    """The settings of a section by name: of the list above, or else those that the policy of that name
    declares. Empty for a section that is nobody's. Raises :class:`UserError` if the policy cannot be loaded,
    or what it declares are not settings of its own section.
    """
    if section in SECTIONS:
        return SECTIONS[section]
    if section not in available():
        return {}
    declared = tuple(getattr(find(section), "settings", ()))
    for setting in declared:
        if not isinstance(setting, Setting) or setting.section != section:
            raise UserError(
                f"policy {section} declares {setting!r}, which is no setting of section [{section}]",
                "correct the package it comes from",
            )
    return {setting.name: setting for setting in declared}


class Config:
    """The settings in force. Frozen; ``config.value("fairq", "alpha")`` or ``config.section("fairq")``."""

    def __init__(
        self,
        values: Mapping[tuple[str, str], Value] | None = None,
        ports: tuple[tuple[str, str], ...] = (),
        services: tuple[Service, ...] = (),
    ) -> None:
        """``values`` are those that differ from the defaults. KeyError if there is no such setting."""
        given = dict(values or {})
        sections = [*SECTIONS, *dict.fromkeys(section for section, _ in given if section not in SECTIONS)]
        self._values: dict[tuple[str, str], Value] = {
            (section, name): given.pop((section, name), setting.default)
            for section in sections
            for name, setting in settings_of(section).items()
        }
        if given:
            raise KeyError(f"no such settings: {sorted(given)}")
        self._ports = ports
        self._services = services

    def changed(self, section: str, values: Mapping[str, Value]) -> Config:
        """The same with other values in a section. UserError if they do not fit the rest."""
        new = {(section, name): value for name, value in values.items()}
        config = Config(self._values | new, self._ports, self._services)
        _check_together(config)
        return config

    def value(self, section: str, name: str) -> Value:
        """One setting. KeyError if there is no such."""
        return self._values[section, name]

    def number(self, section: str, name: str) -> float:
        """One setting that is a number."""
        value = self._values[section, name]
        assert not isinstance(value, str)
        return float(value)

    def section(self, section: str) -> dict[str, Value]:
        """All settings of a section, by name. Raises :class:`UserError` as :func:`settings_of` does."""
        return {
            name: self._values.get((section, name), setting.default)
            for name, setting in settings_of(section).items()
        }

    def policy(self) -> str:
        """The policy that the file names for all ports; "" if it leaves that to the application."""
        return str(self.value("fairq_ryu", "policy"))

    def port_policies(self) -> tuple[tuple[str, str], ...]:
        """Patterns on ports and the policies of these, in the order in which they are tried."""
        return self._ports

    def services(self) -> tuple[Service, ...]:
        """What is known beforehand of the flows of services; the first that covers a flow holds."""
        return self._services

    def as_dict(self) -> dict[str, dict[str, Value]]:
        """Everything, by section and name."""
        sections = dict.fromkeys(section for section, _ in self._values)
        found = {section: self.section(section) for section in sections}
        if self._ports:
            found[PORTS] = dict(self._ports)
        for service in self._services:
            found[f"{SERVICE}{service.name}"] = {
                "port": service.port,
                "host": service.host,
                "size": service.size or 0,
                "deadline": service.deadline or 0.0,
                "direction": "to-server" if service.to_server else "to-client",
            }
        return found


def load(paths: Iterable[str | Path]) -> Config:
    """Read files in order, later ones winning. Raises :class:`UserError` naming the first thing wrong.

    Sections that are not ours (``[DEFAULT]``, Ryu's and other applications') are passed over. Of ``[ports]``
    and of each ``[service.NAME]`` the last file's holds as a whole: their lines mean something together.
    """
    values: dict[tuple[str, str], Value] = {}
    ports: tuple[tuple[str, str], ...] = ()
    services: dict[str, Service] = {}
    for path in paths:
        for section, lines in inifile.read(Path(path)).items():
            if section == PORTS:
                ports = read_ports(str(path), lines, available())
            elif section.startswith(SERVICE):
                services[section] = read_service(str(path), section, lines)
            else:
                values.update(_read(str(path), section, lines))
    config = Config(values, ports, tuple(services.values()))
    _check_together(config)
    return config


def _check_together(config: Config) -> None:
    """What single bounds cannot say. Raises :class:`UserError`."""
    lease = config.number("fairq_ryu", "lease")
    for section, values in config.as_dict().items():
        interval = values.get("interval")
        if isinstance(interval, float) and interval > lease / 4:
            raise UserError(
                f"[{section}] interval = {interval:g} s is too long for [fairq_ryu] lease = {lease:g} s: "
                "rules would end before they are renewed",
                "make the interval at most a quarter of the lease",
            )
    # Those that are named must be there to be loaded, too.
    for _, policy in config.port_policies():
        find(policy)


def _read(where: str, section: str, lines: Mapping[str, str]) -> dict[tuple[str, str], Value]:
    known = settings_of(section)
    if not known:
        if section in available():
            raise UserError(f"{where}: policy {section} has no settings", f"take section [{section}] out")
        names = [*SECTIONS, PORTS, *available()]
        close = f"{SERVICE}NAME" if section in ("service", "services") else closest(section, names)
        if close:
            raise UserError(f"{where}: unknown section [{section}]", f"did you mean [{close}]?")
        return {}
    values = {}
    for name, text in lines.items():
        value = values[section, name] = read_value(where, known, section, name, text)
        if (section, name) == ("fairq_ryu", "policy") and value and value not in available():
            raise UserError(
                f"{where}: [{section}] policy: there is no policy {str(value)!r}",
                f"known are {', '.join(available())}",
            )
    return values
