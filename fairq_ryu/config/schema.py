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

from fairq_ryu.config import files
from fairq_ryu.config.services import PORTS, SERVICE, SERVICE_SETTINGS, read_ports, read_service
from fairq_ryu.errors import UserError
from fairq_ryu.model import Service
from fairq_ryu.policies.base import available, find
from fairq_ryu.setting import Setting, Value, closest, read_value

__all__ = ["SECTIONS", "SERVICE_SETTINGS", "SETTINGS", "Config", "Setting", "Value", "load", "settings_of"]


def _deadline_settings(section: str) -> tuple[Setting, ...]:
    """What SED and RSED have in common, which is all of SED."""
    return (
        Setting(
            section, "interval", 0.01, "s", "T: time between two computations of the windows.", 0.0005, 10
        ),
        Setting(
            section,
            "threshold",
            0.25,
            "",
            "K: the queue is congested (CNG) from this fraction of the buffer on.",
            0.01,
            1,
        ),
        Setting(
            section,
            "nom",
            0.2,
            "",
            "The queue is no longer congested (NOM) when it has fallen to this fraction of K.",
            0,
            0.95,
        ),
        Setting(
            section,
            "base_rtt",
            0.001,
            "s",
            "Round-trip time with empty queues, used until it is known from handshakes of the port's flows.",
            0.00001,
            10,
        ),
        Setting(section, "base_segments", 1, "segments", "Window of each flow without a deadline.", 1, 10),
        Setting(
            section,
            "margin",
            0.9,
            "",
            "Windows are planned so that a flow ends after this fraction of the time to its deadline "
            "(1: at the deadline).",
            0.1,
            1,
        ),
        Setting(
            section,
            "missed",
            "demote",
            "",
            "What happens to a flow after its deadline: demote (it is treated as a flow without a "
            "deadline) or pause (its window is 0).",
            choices=("demote", "pause"),
        ),
        Setting(
            section,
            "partial",
            False,
            "",
            "A deadline flow that needs a larger window than is available gets what is available "
            "instead of 0.",
        ),
        Setting(
            section,
            "keep",
            0.5,
            "",
            "A flow that is already sending gets a smaller window instead of a pause if at least "
            "this fraction of its need is available (1: never).",
            0,
            1,
        ),
        Setting(
            section,
            "floors",
            True,
            "",
            "The window of a deadline flow, which is at least one segment, is subtracted from the "
            "total instead of its need.",
        ),
        Setting(
            section,
            "spare",
            True,
            "",
            "When all flows of a port have deadlines, window that is left over is given to them, in "
            "the order of their deadlines.",
        ),
        Setting(
            section,
            "settle",
            0.004,
            "s",
            "Flows that start or end within this time are handled in one computation.",
            0,
            1,
        ),
        Setting(
            section,
            "anticipate",
            True,
            "",
            "Windows are installed as soon as the initial windows of the new flows, taken together, "
            "would make the queue congested.",
        ),
        Setting(
            section,
            "initial_window",
            10,
            "segments",
            "Initial window of the hosts: what a new flow sends before it receives an ACK.",
            1,
            1000,
        ),
        Setting(
            section,
            "idle_after",
            0.2,
            "s",
            "A flow that has sent nothing for this long gets no share (0: every flow always gets a share).",
            0,
            3600,
        ),
        Setting(
            section,
            "linger",
            0.1,
            "s",
            "Windows are removed when the queue has been at NOM for this long (0: immediately).",
            0,
            60,
        ),
        Setting(
            section,
            "syn_allowance",
            256,
            "flows",
            "Limit against SYN floods: at most this many unanswered new flows count for each port at "
            "which they enter the network.",
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
        "Policy of the ports that no line of section [ports] matches (empty: the policy in the "
        "application's name).",
    ),
    Setting(
        "fairq_ryu",
        "lease",
        2,
        "s",
        "A window rule ends after this time unless the controller renews it.",
        1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "flow_idle_timeout",
        60.0,
        "s",
        "A flow is removed from the flow table when its switch has seen no packet of it for this long.",
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
        "Buffer size of ports whose queueing discipline does not report one (0: set no windows "
        "on such ports).",
        0,
        1 << 31,
    ),
    Setting(
        "fairq_ryu",
        "packet_in_rate",
        10000,
        "packets/s",
        "Maximum rate of packets from one bridge to the controller, if the bridge has meters (0: no limit).",
        0,
        10_000_000,
    ),
    Setting(
        "fairq_ryu",
        "host_idle_timeout",
        300,
        "s",
        "A host that sends nothing for this long is removed; it is learnt again from its next packet.",
        10,
        65535,
    ),
    Setting(
        "fairq_ryu",
        "syn",
        "copy",
        "",
        "copy: a SYN is forwarded at once, and the controller gets a copy; hold: it is forwarded "
        "when its path and windows are installed.",
        choices=("copy", "hold"),
    ),
    Setting(
        "fairq_ryu",
        "hold_lease",
        3,
        "s",
        "With syn = hold: new connections are no longer held when the controller has been away "
        "for this long.",
        1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "path_choice",
        "hash",
        "",
        "How one of the shortest paths is chosen for a new flow: hash (of addresses and ports) "
        "or least-loaded (fewest flows).",
        choices=("hash", "least-loaded"),
    ),
    Setting(
        "fairq_ryu",
        "pins",
        "choice",
        "",
        "Which flows between switches get rules of their own: choice (only where there are "
        "several paths) or always.",
        choices=("choice", "always"),
    ),
    Setting(
        "fairq_ryu",
        "discovery_time",
        1.5,
        "s",
        "A port that receives no LLDP frame for this long counts as a host port.",
        0.1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "token_file",
        "",
        "",
        "File with the token that REST changes need (empty: the variable FAIRQ_TOKEN; with "
        "neither, changes are refused).",
    ),
    Setting(
        "fairq_ryu",
        "rest_names",
        "",
        "",
        "Host names that REST requests may use in their Host header, separated by spaces. IP "
        "addresses are always accepted.",
    ),
    Setting(
        "fairq_ryu", "rest_body", 65536, "bytes", "Maximum size of the body of a REST request.", 1024, 1 << 20
    ),
    Setting("fairq_ryu", "rest_page", 1000, "rows", "Maximum number of rows in one answer.", 200, 1000),
    Setting(
        "fairq_ryu",
        "rest_streams",
        16,
        "",
        "Maximum number of open event streams, those of the live page included.",
        0,
        256,
    ),
    # FairQ.
    Setting("fairq", "interval", 0.002, "s", "T: time between two readings of the queue.", 0.0005, 10),
    Setting("fairq", "increments", 8, "", "M: number of readings between two changes of the pool.", 1, 1000),
    Setting("fairq", "alpha", 0.25, "", "Target queue as a fraction of the buffer.", 0.01, 1),
    Setting(
        "fairq", "slow_start", True, "", "Increase the pool fast until the queue first reaches the target."
    ),
    Setting(
        "fairq",
        "base_rtt",
        0.001,
        "s",
        "Round-trip time with empty queues; the pool never exceeds the buffer plus this time "
        "multiplied by the rate.",
        0,
        10,
    ),
    Setting(
        "fairq",
        "linger",
        2.0,
        "s",
        "The windows of a port are removed when it has had no flows for this long.",
        0,
        3600,
    ),
    Setting(
        "fairq",
        "floor_segments",
        2,
        "segments",
        "Minimum window of a flow, as long as the buffer can hold the windows of all flows.",
        1,
        10,
    ),
    # Fixed.
    Setting(
        "fixed",
        "pool",
        100000,
        "bytes",
        "Number of bytes that the active flows of a port share equally.",
        1,
        1 << 31,
    ),
    Setting(
        "fixed",
        "interval",
        0.1,
        "s",
        "Time between two readings of the queue, which also tell whether there are flows.",
        0.0005,
        10,
    ),
    # IQM.
    Setting(
        "iqm",
        "interval",
        0.01,
        "s",
        "T_i: length of the interval in which new flows are counted.",
        0.0005,
        10,
    ),
    Setting(
        "iqm",
        "alpha",
        0.2,
        "",
        "The incast is over when the queue is below this fraction of the buffer.",
        0,
        1,
    ),
    Setting(
        "iqm",
        "initial_window",
        10,
        "segments",
        "Initial window of the hosts: what a new flow sends before it receives an ACK.",
        1,
        1000,
    ),
    Setting(
        "iqm",
        "syn_allowance",
        256,
        "flows",
        "Limit against SYN floods: at most this many unanswered new flows count for each port at "
        "which they enter the network.",
        1,
        1_000_000,
    ),
    Setting(
        "iqm",
        "linger",
        0.05,
        "s",
        "The queue must stay that short for this long (0: it is checked once, at the end of an interval).",
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
        "How a dropped segment is recovered: dupack (duplicate ACKs), reinject (it is sent "
        "again), both or none.",
        choices=("dupack", "reinject", "both", "none"),
    ),
    Setting(
        "rsed",
        "recovery_bytes",
        1 << 20,
        "bytes",
        "Maximum size of the dropped segments that are stored for each port.",
        0,
        1 << 31,
    ),
    Setting(
        "rsed",
        "recovery_age",
        1.0,
        "s",
        "A stored segment is discarded this long after it was last dropped or acted on.",
        0.001,
        60,
    ),
    # The agent.
    Setting(
        "agent",
        "flows",
        65536,
        "",
        "Maximum number of connections that are tracked on a bridge.",
        64,
        16_777_216,
    ),
    Setting(
        "agent", "rules", 4096, "", "Maximum number of rules for single flows on a bridge.", 1, 1_048_576
    ),
    Setting("agent", "ports", 512, "", "Maximum number of ports of a bridge.", 1, 65279),
    Setting(
        "agent",
        "active_timeout",
        0.2,
        "s",
        "A flow that has sent no data for this long is not active: it gets no share of the pool.",
        0.008,
        60,
    ),
    Setting(
        "agent",
        "flow_idle_timeout",
        300.0,
        "s",
        "A flow without packets is removed after this time, together with its window scale.",
        1,
        86400,
    ),
    Setting("agent", "closed_timeout", 2.0, "s", "A closed flow is removed after this time.", 0.1, 3600),
    Setting(
        "agent",
        "congestion_gap",
        0.002,
        "s",
        "Minimum time between two congestion messages about the same port; the last state is always sent.",
        0,
        10,
    ),
    Setting(
        "agent",
        "drop_rate",
        20000,
        "packets/s",
        "Maximum rate of dropped packets that are sent to the controllers that asked for them.",
        1,
        1_000_000,
    ),
    Setting(
        "agent",
        "reconnect_max",
        8.0,
        "s",
        "Maximum time between two attempts to connect to a controller.",
        0.1,
        300,
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
        for section, lines in files.read(Path(path)).items():
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
