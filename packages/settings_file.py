"""``/etc/fairq/fairq.conf``: every setting that the code declares, commented out, with its default and help.

Controller and agents read the same file. Only what a service must know is set: where it listens, and its
policy.
"""

from __future__ import annotations

import textwrap

from fairq_ryu.config import schema, services
from fairq_ryu.setting import Setting, Value

GIVEN: dict[tuple[str, str], str] = {("fairq_ryu", "policy"): "fairq"}
"""Settings that the file sets, because their defaults do not fit a service."""
_HEAD = """\
# Settings of fairq_ryu: of the controller (fairq-controller.service) and of the agents on this machine
# (fairq-agent@BRIDGE.service). A line "#name = value" shows the default of a setting: remove the # to change
# it.
#
#   fairq check /etc/fairq/fairq.conf        checks this file
#   systemctl restart fairq-controller       and: systemctl restart 'fairq-agent@*'
#
# See fairq.conf(5). Sections of other programs are ignored.

[DEFAULT]
# Options of Ryu. Where switches and agents connect; without the first line, on every address of this machine.
ofp_listen_host = 127.0.0.1
#ofp_tcp_listen_port = 6653
# Where the REST interface and the live page are.
#wsapi_host = 127.0.0.1
#wsapi_port = 8080
"""
_PORTS = """\
#[ports]
# Policies of single ports: a pattern on the interface's name, or role:host or role:link, and a policy.
# Every port that no line matches has the policy of [fairq_ryu].
#role:link = droptail

#[modes]
# Ports that are only watched: a pattern on the interface's name, bridge:NAME or policy:NAME, and a mode
# (observe or act). Every port that no line matches has the mode of [fairq_ryu].
#bridge:br0 = observe
"""
EXAMPLES = """\
#[far_queues]
# Queues in the switch above, by the port through which data arrives. Without a buffer: 5 ms of the rate.
#eth0 = rate 10gbit buffer 1000000

#[uplink.rack1]
# One port of the switch above that leads to several machines; as many sections as such ports.
#rate = 10gbit
#buffer = 1000000
#ports = br1/eth1, br2/eth1

#[tenant.web]
# The hosts of a tenant, and its weight (policy tenants); as many sections as tenants.
#hosts = 10.0.1.0/24 10.0.2.7
#weight = 1
"""
"""Sections that have no fixed settings: examples of them."""
_WIDTH = 110


def text() -> str:
    """The text of the file."""
    parts = [_HEAD]
    for section, settings in schema.sections().items():
        lines = "\n".join(_setting(setting) for setting in settings.values())
        parts.append(f"[{section}]\n{lines}")
        if section == schema.CONTROLLER:
            parts += [_PORTS, _service(), EXAMPLES]
    return "\n".join(parts)


def shown(value: Value) -> str:
    """A value as it is written in the file."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def bounds(setting: Setting) -> str:
    """The values that a setting can have, in words; "" if every text can be one."""
    if setting.choices:
        return f"one of {', '.join(setting.choices)}"
    if isinstance(setting.default, bool):
        return "yes or no"
    if setting.minimum is None or setting.maximum is None:
        return ""
    unit = f" {setting.unit}" if setting.unit else ""
    return f"{_number(setting.minimum)} to {_number(setting.maximum)}{unit}"


def _number(value: float) -> str:
    return str(int(value)) if value >= 1000 else f"{value:g}"


def _setting(setting: Setting) -> str:
    allowed = bounds(setting)
    about = f"{setting.help} ({allowed})" if allowed else setting.help
    lines = textwrap.wrap(about, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    given = GIVEN.get((setting.section, setting.name))
    line = f"#{setting.name} = {shown(setting.default)}" if given is None else f"{setting.name} = {given}"
    return "\n".join([*lines, line.rstrip(), ""])


def _service() -> str:
    lines = "\n".join(_setting(setting).rstrip() for setting in services.SERVICE_SETTINGS)
    about = "# Sizes and deadlines of the flows of a service, for SED and RSED; as many sections as services."
    return f"#[service.NAME]\n{about}\n{lines}\n"
