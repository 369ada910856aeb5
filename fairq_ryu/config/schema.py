"""The settings of the core, the controller's and the agent's, with type, unit, default and bounds.

A policy declares the settings of its own section itself, as its attribute ``settings``, whether it is ours
or of another package; :func:`declared` finds both. It may also have settings there that are written in
another section: those of the network, which policies share, and those of a policy that it extends.
:func:`settings_of` has these, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from fairq_ryu.cluster.settings import CLUSTER
from fairq_ryu.cluster.settings import SETTINGS as CLUSTER_SETTINGS
from fairq_ryu.controller_target import parse_targets
from fairq_ryu.errors import UserError
from fairq_ryu.policies.base import available, find, own
from fairq_ryu.policies.common_settings import SHARED
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
        "application's name). Set it to change the policy, but not how the controller is started.",
    ),
    Setting(
        "fairq_ryu",
        "way",
        "",
        "",
        "How bridges are governed: windows (by their agents alone; a bridge that connects gets no rule), "
        "normal (a bridge forwards by its own rules, which stay) or paths (the controller owns the tables of "
        "bridges and forwards). Empty: windows for a bridge that does not connect; paths for one whose "
        "description asks for it; normal for any other. Set it where all bridges are to be governed alike.",
        choices=("", "windows", "normal", "paths"),
    ),
    Setting(
        "fairq_ryu",
        "lease",
        2,
        "s",
        "A window rule ends after this time unless the controller renews it. Make it longer where the "
        "controller has thousands of ports or is stopped for seconds.",
        1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "mode",
        "act",
        "",
        "Mode of the ports that no pattern in [modes] matches: act (windows are lowered) or observe (windows "
        "are worked out, ACKs that would be lowered are counted, and nothing is written). Set observe for a "
        "first look at a network.",
        choices=("act", "observe"),
    ),
    Setting(
        "fairq_ryu",
        "packet_in_rate",
        10000,
        "packets/s",
        "Maximum rate of packets from one bridge to the controller, if the bridge has meters (0: no limit). "
        "Each port has a share of it for each class of packets. Raise it where more than 2,000 connections a "
        "second begin at one port.",
        0,
        10_000_000,
    ),
    Setting(
        "fairq_ryu",
        "group_rate",
        10000,
        "packets/s",
        "Maximum rate of broadcast and multicast packets from one port, if the bridge has meters (0: no "
        "limit). Raise it where a host sends more multicast.",
        0,
        10_000_000,
    ),
    Setting(
        "fairq_ryu",
        "queue_law",
        "",
        "",
        "Policy whose queue law judges the packets of ports whose own policy has none, such as codel (empty: "
        "none). Set it where other traffic than TCP fills queues.",
    ),
    Setting(
        "fairq_ryu",
        "syn",
        "copy",
        "",
        "copy: a SYN is forwarded at once, and the controller gets a copy; hold: it is forwarded "
        "when its path and windows are installed. Set hold where the first segments of a flow must meet "
        "both.",
        choices=("copy", "hold"),
    ),
    *SHARED,
    Setting(
        "fairq_ryu",
        "path_choice",
        "hash",
        "",
        "How one of the shortest paths is chosen for a new flow: hash (of addresses and ports) "
        "or least-loaded (fewest flows). Set least-loaded where a few long flows share several paths.",
        choices=("hash", "least-loaded"),
    ),
    Setting(
        "fairq_ryu",
        "token_file",
        "",
        "",
        "File with the token that REST changes need (empty: the variable FAIRQ_TOKEN; with "
        "neither, changes are refused). Set it to allow changes.",
    ),
    Setting(
        "fairq_ryu",
        "rest_names",
        "",
        "",
        "Host names that REST requests may use in their Host header, separated by spaces. IP "
        "addresses are always accepted. Set it where clients know the controller by name.",
    ),
)

AGENT_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "agent",
        "controllers",
        "",
        "",
        "Addresses of the controllers, separated by spaces: tcp:HOST[:PORT] or ssl:HOST[:PORT] "
        "(empty: tcp:127.0.0.1:6653). Option --controller replaces them. Set it for an agent that is a "
        "service.",
        grammar=parse_targets,
    ),
    Setting(
        "agent", "private_key", "", "", "PEM file with the agent's private key. Set it for ssl: addresses."
    ),
    Setting(
        "agent", "certificate", "", "", "PEM file with the agent's certificate. Set it for ssl: addresses."
    ),
    Setting(
        "agent",
        "ca_cert",
        "",
        "",
        "PEM file with the authority that signed the controllers' certificates. Set it for ssl: addresses.",
    ),
    Setting(
        "agent",
        "flows",
        65536,
        "",
        "Maximum number of connections that are tracked on the bridges of an agent; a sixteenth of it may "
        "have rules of their own on a bridge. Raise it where `fairq status` shows flows evicted.",
        64,
        16_777_216,
    ),
    Setting(
        "agent",
        "ports",
        1024,
        "",
        "Maximum number of ports of the bridges of an agent; each transmit queue of a port with several, "
        "and each far queue, counts as one more. Raise it for bridges with more.",
        1,
        65279,
    ),
    Setting(
        "agent",
        "active_timeout",
        0.2,
        "s",
        "A flow that has sent no data for this long is not active: it gets no share of the pool. Raise it "
        "where round trips, with full queues, are longer.",
        0.008,
        60,
    ),
    Setting(
        "agent",
        "told_scale",
        "",
        "",
        "How hosts with `fairq shim` tell the window scale in their segments: reserved, reserved3 or "
        "window12, as their option --mode (empty: they do not). It is used for connections whose handshake "
        "the agent has not seen, and taken out. Set it where connections are older than the agent.",
        choices=("", "reserved", "reserved3", "window12"),
    ),
    Setting(
        "agent",
        "told_ports",
        "*",
        "",
        "Patterns of the names of ports, separated by spaces: told scales are read and taken out where "
        "segments leave by such a port. Set it where not all hosts have the shim.",
    ),
    Setting(
        "agent",
        "unify_scale",
        14,
        "",
        "The largest window scale that leaves the bridges of an agent: a SYN with a larger one is changed, "
        "and later windows are converted (14: none is changed). Needs [fairq_ryu] way = paths. Set it to "
        "make the steps of windows smaller: 7 for 128 bytes.",
        0,
        14,
    ),
    Setting(
        "agent",
        "unify_grace",
        75.0,
        "s",
        "With unify_scale: handshakes that begin so soon after the start of the agent keep their scales. A "
        "SYN may have left before, and be sent again; the other end then counts in the first one's scale. "
        "Raise it where hosts repeat SYNs for longer (Linux with tcp_syn_retries above 6).",
        0,
        3600,
    ),
)


def _by_name(settings: Iterable[Setting]) -> Mapping[str, Setting]:
    return MappingProxyType({setting.name: setting for setting in settings})


CORE: Mapping[str, Mapping[str, Setting]] = MappingProxyType(
    {
        CONTROLLER: _by_name(CONTROLLER_SETTINGS),
        CLUSTER: _by_name(CLUSTER_SETTINGS),
        AGENT: _by_name(AGENT_SETTINGS),
    }
)


def sections() -> dict[str, Mapping[str, Setting]]:
    """The sections of this package and their settings by name, in the order of the documentation: the
    controller's, those of our policies, the cluster's, the agent's. Raises :class:`UserError` as
    :func:`settings_of` does.
    """
    policies = {name: declared(name) for name in own()}
    with_settings = {name: settings for name, settings in policies.items() if settings}
    return {CONTROLLER: CORE[CONTROLLER], **with_settings, CLUSTER: CORE[CLUSTER], AGENT: CORE[AGENT]}


def settings_of(section: str) -> Mapping[str, Setting]:
    """The settings of a section of the core by name, or else those that the policy of that name uses: each
    knows in which section it is written. Empty for an unknown section. Raises :class:`UserError` if the
    policy cannot be loaded, or has anything but settings of its own section, shared ones and those that
    another policy declares.
    """
    if section in CORE:
        return CORE[section]
    if section not in available():
        return {}
    used = tuple(getattr(find(section), "settings", ()))
    for setting in used:
        if not isinstance(setting, Setting) or not (setting.section == section or _of_others(setting)):
            raise UserError(
                f"policy {section} declares {setting!r}, which is not a setting of section [{section}]",
                "correct the package it comes from",
            )
    return _by_name(used)


def _of_others(setting: Setting) -> bool:
    """Whether a setting is shared, or another policy declares it."""
    if setting in SHARED:
        return True
    return setting.section in available() and setting in getattr(find(setting.section), "settings", ())


def declared(section: str) -> Mapping[str, Setting]:
    """The settings that are written in a section, by name. Raises as :func:`settings_of` does."""
    return _by_name(each for each in settings_of(section).values() if each.section == section)
