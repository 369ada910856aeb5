"""The settings of the core, the controller's and the agent's, with type, unit, default and bounds.

A policy declares the settings of its own section itself, as its attribute ``settings``, whether it is ours
or of another package; :func:`settings_of` finds both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from fairq_ryu.controller_target import parse_targets
from fairq_ryu.errors import UserError
from fairq_ryu.policies.base import available, find, own
from fairq_ryu.setting import Setting

CONTROLLER = "fairq_ryu"
AGENT = "agent"

CONTROLLER_SETTINGS: tuple[Setting, ...] = (
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
        "way",
        "",
        "",
        "How bridges are governed: windows (by their agents alone; a bridge that connects gets no rule), "
        "normal (a bridge forwards by its own rules, which stay) or paths (the controller owns the tables of "
        "bridges and forwards). Empty: windows for a bridge that does not connect; paths for one whose "
        "description asks for it; normal for any other.",
        choices=("", "windows", "normal", "paths"),
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
        "mode",
        "act",
        "",
        "Mode of the ports that no pattern in [modes] matches: act (windows are lowered) or observe (windows "
        "are worked out, ACKs that would be lowered are counted, and nothing is written).",
        choices=("act", "observe"),
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
        "Shortest time between two comparisons of a switch's flow records with the controller's flow table.",
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
        "segments_from",
        "agent",
        "",
        "What sends window updates, duplicate ACKs and dropped segments to hosts: agent (at the port of the "
        "queue's switch, at once) or controller (through the tables of the bridge, a round trip later; for "
        "bridges that add or remove VLAN tags).",
        choices=("agent", "controller"),
    ),
    Setting(
        "fairq_ryu",
        "packet_in_rate",
        10000,
        "packets/s",
        "Maximum rate of packets from one bridge to the controller, if the bridge has meters (0: no limit). "
        "Each port has a share of it for each class of packets.",
        0,
        10_000_000,
    ),
    Setting(
        "fairq_ryu",
        "group_rate",
        10000,
        "packets/s",
        "Maximum rate of broadcast and multicast packets from one port, if the bridge has meters (0: no "
        "limit).",
        0,
        10_000_000,
    ),
    Setting(
        "fairq_ryu",
        "queue_law",
        "",
        "",
        "Policy whose queue law judges the packets of ports whose own policy has none: afq, afcd, red, "
        "codel, sfb or mark (empty: none).",
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
)

AGENT_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "agent",
        "controllers",
        "",
        "",
        "Addresses of the controllers, separated by spaces: tcp:HOST[:PORT] or ssl:HOST[:PORT] "
        "(empty: tcp:127.0.0.1:6653). Option --controller replaces them.",
        grammar=parse_targets,
    ),
    Setting("agent", "private_key", "", "", "PEM file with the agent's private key, for ssl: addresses."),
    Setting("agent", "certificate", "", "", "PEM file with the agent's certificate, for ssl: addresses."),
    Setting(
        "agent",
        "ca_cert",
        "",
        "",
        "PEM file with the authority that signed the controllers' certificates, for ssl: addresses.",
    ),
    Setting(
        "agent",
        "flows",
        65536,
        "",
        "Maximum number of connections that are tracked on the bridges of an agent.",
        64,
        16_777_216,
    ),
    Setting(
        "agent", "rules", 4096, "", "Maximum number of rules for single flows on a bridge.", 1, 1_048_576
    ),
    Setting(
        "agent",
        "ports",
        1024,
        "",
        "Maximum number of ports of the bridges of an agent; each transmit queue of a port with several "
        "counts as one more.",
        1,
        65279,
    ),
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
        "A flow without packets is removed after this time. The window scale of an established connection is "
        "kept in a second map, and used again from its next packet on.",
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
        "copy_rate",
        10000,
        "packets/s",
        "Maximum rate of copies of SYN, FIN and RST on a bridge, for the controllers that asked for them.",
        1,
        1_000_000,
    ),
    Setting(
        "agent",
        "port_copy_rate",
        5000,
        "packets/s",
        "Likewise, of the segments that leave by one port: a flood there leaves the rest to the others.",
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


def _by_name(settings: Iterable[Setting]) -> Mapping[str, Setting]:
    return MappingProxyType({setting.name: setting for setting in settings})


CORE: Mapping[str, Mapping[str, Setting]] = MappingProxyType(
    {CONTROLLER: _by_name(CONTROLLER_SETTINGS), AGENT: _by_name(AGENT_SETTINGS)}
)


def sections() -> dict[str, Mapping[str, Setting]]:
    """The sections of this package and their settings by name, in the order of the documentation: the
    controller's, those of our policies, the agent's. Raises :class:`UserError` as :func:`settings_of` does.
    """
    policies = {name: settings_of(name) for name in own()}
    with_settings = {name: settings for name, settings in policies.items() if settings}
    return {CONTROLLER: CORE[CONTROLLER], **with_settings, AGENT: CORE[AGENT]}


def settings_of(section: str) -> Mapping[str, Setting]:
    """The settings of a section by name: of the core, or else those that the policy of that name declares.
    Empty for an unknown section. Raises :class:`UserError` if the policy cannot be loaded, or declares
    anything but settings of its own section.
    """
    if section in CORE:
        return CORE[section]
    if section not in available():
        return {}
    declared = tuple(getattr(find(section), "settings", ()))
    for setting in declared:
        if not isinstance(setting, Setting) or setting.section != section:
            raise UserError(
                f"policy {section} declares {setting!r}, which is not a setting of section [{section}]",
                "correct the package it comes from",
            )
    return _by_name(declared)
