"""Configuration files, read and checked, and the settings in force.

The file is the one that ``ryu-manager --config-file`` reads (INI, as oslo.config reads it); our sections
stand beside Ryu's own ``[DEFAULT]``. Unknown keys and values out of bounds are refused with one line that
says where; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from fairq_ryu.cluster import settings as cluster
from fairq_ryu.config import files
from fairq_ryu.config.far_queues import FAR_QUEUES, read_far_queues, written
from fairq_ryu.config.ports import MODES, PORTS, read_modes, read_ports
from fairq_ryu.config.schema import CORE, declared, sections, settings_of
from fairq_ryu.config.services import SERVICE, read_service
from fairq_ryu.config.tenants import TENANT, read_tenant_section
from fairq_ryu.config.uplinks import UPLINK, check_uplinks, read_uplink
from fairq_ryu.config.uplinks import written as uplink_written
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.model import PortMode, Service
from fairq_ryu.policies.base import available, find, renewal_interval
from fairq_ryu.setting import Value, closest, read_value
from fairq_ryu.tenants import Tenant, check
from fairq_ryu.uplink import Uplink

# Not with "_": OpenStack has [service_user] and [service_token] in such files.
_A_SERVICE = re.compile(r"services?(?:[\s.:-]+(.*))?", re.I)
_AN_UPLINK = re.compile(r"uplinks?(?:[\s.:-]+(.*))?", re.I)


class Config:
    """The settings in force. Frozen: ``config.value("fairq", "alpha")`` or ``config.section("fairq")``."""

    def __init__(
        self,
        values: Mapping[tuple[str, str], Value] | None = None,
        ports: tuple[tuple[str, str], ...] = (),
        services: tuple[Service, ...] = (),
        modes: tuple[tuple[str, PortMode], ...] = (),
        far_queues: tuple[FarQueue, ...] = (),
        uplinks: tuple[Uplink, ...] = (),
        tenants: tuple[Tenant, ...] = (),
    ) -> None:
        """``values`` are those that differ from the defaults. KeyError for an unknown setting."""
        given = dict(values or {})
        known = sections()
        known |= {section: declared(section) for section, _ in given if section not in known}
        self._values: dict[tuple[str, str], Value] = {
            (section, name): given.pop((section, name), setting.default)
            for section, settings in known.items()
            for name, setting in settings.items()
        }
        if given:
            raise KeyError(f"no such settings: {sorted(given)}")
        self._ports = ports
        self._services = services
        self._modes = modes
        self._far_queues = far_queues
        self._uplinks = uplinks
        self._tenants = tenants

    def changed(self, section: str, values: Mapping[str, Value]) -> Config:
        """A copy with other values of settings in one section, or of those that a policy shares with others.
        UserError if they do not fit the rest.
        """
        there = settings_of(section)
        new = {
            (there[name].section if name in there else section, name): value for name, value in values.items()
        }
        rest = self._ports, self._services, self._modes, self._far_queues, self._uplinks, self._tenants
        config = Config(self._values | new, *rest)
        _check_together(config)
        return config

    def value(self, section: str, name: str) -> Value:
        """The value of one setting. KeyError for an unknown setting."""
        return self._values[section, name]

    def number(self, section: str, name: str) -> float:
        """The value of one numeric setting. KeyError for an unknown setting."""
        value = self._values[section, name]
        assert not isinstance(value, str)
        return float(value)

    def section(self, section: str) -> dict[str, Value]:
        """The values of a section, by name, with those that its policy shares with others. Raises
        :class:`UserError` as :func:`settings_of` does.
        """
        return {
            name: self._values.get((setting.section, name), setting.default)
            for name, setting in settings_of(section).items()
        }

    def policy(self) -> str:
        """The policy that the file names for all ports; "": it is the application's."""
        return str(self.value("fairq_ryu", "policy"))

    def port_policies(self) -> tuple[tuple[str, str], ...]:
        """Port patterns and their policies, in the order in which they are tried."""
        return self._ports

    def mode(self) -> PortMode:
        """The mode of ports that no pattern matches."""
        return PortMode(str(self.value("fairq_ryu", "mode")))

    @property
    def observes(self) -> bool:
        """Whether any port may be only observed."""
        return PortMode.OBSERVE in (self.mode(), *(mode for _, mode in self._modes))

    def port_modes(self) -> tuple[tuple[str, PortMode], ...]:
        """Port patterns and their modes, in the order in which they are tried."""
        return self._modes

    def services(self) -> tuple[Service, ...]:
        """Sizes and deadlines of services' flows; the first service that covers a flow applies."""
        return self._services

    def far_queues(self) -> tuple[FarQueue, ...]:
        """The queues in switches above, at most one for each interface."""
        return self._far_queues

    def uplinks(self) -> tuple[Uplink, ...]:
        """The ports of switches above that lead to several bridges."""
        return self._uplinks

    def tenants(self) -> tuple[Tenant, ...]:
        """The tenants, with their hosts and weights."""
        return self._tenants

    def as_dict(self) -> dict[str, dict[str, Value]]:
        """All values, by section and name."""
        found: dict[str, dict[str, Value]] = {}
        for (section, name), value in self._values.items():
            found.setdefault(section, {})[name] = value
        if self._ports:
            found[PORTS] = dict(self._ports)
        if self._modes:
            found[MODES] = {pattern: str(mode) for pattern, mode in self._modes}
        if self._far_queues:
            found[FAR_QUEUES] = {each.port: written(each) for each in self._far_queues}
        for uplink in self._uplinks:
            found[f"{UPLINK}{uplink.name}"] = uplink_written(uplink)
        for tenant in self._tenants:
            hosts = " ".join(map(str, tenant.hosts))
            found[f"{TENANT}{tenant.name}"] = {"hosts": hosts, "weight": tenant.weight}
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
    """Read files in order; later ones override earlier ones. Raises :class:`UserError` for the first error.

    Sections that are not ours (``[DEFAULT]``, Ryu's and other applications') are ignored. ``[ports]``,
    ``[modes]``, ``[far_queues]``, each ``[uplink.NAME]``, ``[service.NAME]`` and ``[tenant.NAME]`` are taken
    as a whole from the last file that has them: their lines belong together.
    """
    values: dict[tuple[str, str], Value] = {}
    ports: tuple[tuple[str, str], ...] = ()
    modes: tuple[tuple[str, PortMode], ...] = ()
    far_queues: tuple[FarQueue, ...] = ()
    services: dict[str, Service] = {}
    uplinks: dict[str, Uplink] = {}
    tenants: dict[str, Tenant] = {}
    for path in paths:
        for section, lines in files.read(Path(path)).items():
            if section == PORTS:
                ports = read_ports(str(path), lines, available())
            elif section == MODES:
                modes = read_modes(str(path), lines, available())
            elif section == FAR_QUEUES:
                far_queues = read_far_queues(str(path), lines)
            elif section.startswith(UPLINK):
                uplinks[section] = read_uplink(str(path), section, lines)
            elif section.startswith(SERVICE):
                services[section] = read_service(str(path), section, lines)
            elif section.startswith(TENANT):
                tenants[section] = read_tenant_section(str(path), section, lines)
            else:
                values.update(_read(str(path), section, lines))
    check_uplinks(uplinks.values())
    groups = tuple(services.values()), modes, far_queues, tuple(uplinks.values()), tuple(tenants.values())
    config = Config(values, ports, *groups)
    _check_together(config)
    return config


def ignored_sections(path: Path) -> list[str]:
    """The sections of a file, which `load` has accepted, that are neither ours nor Ryu's [DEFAULT]."""
    ours = {*CORE, PORTS, MODES, FAR_QUEUES, *available(), "DEFAULT"}
    groups = SERVICE, UPLINK, TENANT
    return [name for name in files.read(path) if name not in ours and not name.startswith(groups)]


def _check_together(config: Config) -> None:
    """Conditions between settings. Raises :class:`UserError`."""
    check(config.tenants())
    cluster.check_together(config.section(cluster.CLUSTER))
    lease = config.number("fairq_ryu", "lease")
    way = str(config.value("fairq_ryu", "way"))
    if way in ("windows", "normal") and config.value("fairq_ryu", "syn") == "hold":
        raise UserError(
            f"[fairq_ryu] syn = hold needs the tables of bridges, which way = {way} leaves alone",
            "set way = paths, or take syn = hold out",
        )
    if config.value("agent", "unify_scale") != settings_of("agent")["unify_scale"].default and way != "paths":
        raise UserError(
            "[agent] unify_scale needs paths that the controller chooses and pins: a flow that moved to "
            "another path would be read wrongly there",
            "set [fairq_ryu] way = paths, or take unify_scale out",
        )
    for section, values in config.as_dict().items():
        interval = values.get("interval")
        if isinstance(interval, float) and interval > renewal_interval(lease):
            raise UserError(
                f"[{section}] interval = {interval:g} s is too long for [fairq_ryu] lease = {lease:g} s: "
                "rules would end before they are renewed",
                "make the interval at most a quarter of the lease",
            )
    # The policies that are named must load as well.
    for _, policy in config.port_policies():
        find(policy)


def _read(where: str, section: str, lines: Mapping[str, str]) -> dict[tuple[str, str], Value]:
    known, used = declared(section), settings_of(section)
    if not known:
        if used:
            others = ", ".join(dict.fromkeys(f"[{each.section}]" for each in used.values()))
            raise UserError(f"{where}: policy {section} has no settings of its own", f"they are in {others}")
        if section in available():
            raise UserError(f"{where}: policy {section} has no settings", f"take section [{section}] out")
        # As people write it: [service], [services], [Service.web], [service web].
        if named := _A_SERVICE.fullmatch(section):
            close: str | None = f"{SERVICE}{named[1] or 'NAME'}"
        elif named := _AN_UPLINK.fullmatch(section):
            close = f"{UPLINK}{named[1] or 'NAME'}"
        else:
            close = closest(section, [*CORE, PORTS, MODES, FAR_QUEUES, *available()])
        if close:
            raise UserError(f"{where}: unknown section [{section}]", f"did you mean [{close}]?")
        return {}
    values = {}
    for name, text in lines.items():
        if name in used and name not in known:
            there = used[name].section
            raise UserError(
                f"{where}: [{section}] has no setting {name}",
                f"set it in section [{there}], for all policies that have it",
            )
        value = values[section, name] = read_value(where, known, section, name, text)
        if (section, name) == ("fairq_ryu", "policy") and value and value not in available():
            raise UserError(
                f"{where}: [{section}] policy: there is no policy {str(value)!r}",
                f"known are {', '.join(available())}",
            )
    return values
