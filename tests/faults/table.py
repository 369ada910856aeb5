"""The faults: how each is made and mended, what may happen meanwhile, and what must hold afterwards.

One entry is all that a new fault needs. The table of docs/operating.md is made of it (`make docs`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from tests.faults import actions

if TYPE_CHECKING:
    from tests.faults.load import Load
    from tests.faults.site import Site

Action: TypeAlias = "Callable[[Site, Load], None]"
Condition: TypeAlias = "Callable[[Site, Load], bool]"


class Forwarding(Enum):
    """What becomes of the traffic while the fault lasts."""

    CONTINUES = "continues"
    STOPS = "stops"


class Windows(Enum):
    """What becomes of lowered windows while the fault lasts."""

    STAY = "stay lowered: leases are renewed"
    END = "end with their lease"
    OPEN = "may end"


@dataclass(frozen=True)
class Fault:
    """``what`` and ``note`` are for the document; ``what`` begins a row, and says how the fault is made."""

    name: str
    what: str
    begin: Action
    end: Action
    forwarding: Forwarding
    windows: Windows
    note: str = ""
    begun: Condition = actions.nothing_more
    """What else holds while it lasts."""
    ended: Condition = actions.nothing_more
    """What else comes to hold afterwards."""
    short: bool = False
    """It is part of `make test`."""


CONTINUES, STOPS = Forwarding
STAY, END, OPEN = Windows

FAULTS = [
    Fault(
        "controller-killed",
        "the controller is killed (SIGKILL) and started again",
        actions.kill_controller,
        actions.start_controller,
        CONTINUES,
        END,
        short=True,
    ),
    Fault(
        "controller-stopped",
        "the controller does not run for 5 s (SIGSTOP, SIGCONT)",
        actions.stop_controller,
        actions.continue_controller,
        CONTINUES,
        END,
    ),
    Fault(
        "controller-restarted",
        "the controller is restarted with 1,000 connections open, and 600 that are silent",
        actions.restart_controller_of_many,
        actions.nothing,
        CONTINUES,
        OPEN,
        "it learns them from the agents",
        ended=actions.all_are_known,
    ),
    Fault(
        "agent-killed",
        "the agent is killed (SIGKILL) and started again",
        actions.kill_agent,
        actions.start_agent,
        CONTINUES,
        END,
        "the next agent takes over the connections that it knew",
        short=True,
    ),
    Fault(
        "agent-stopped",
        "the agent does not run for 5 s (SIGSTOP, SIGCONT)",
        actions.stop_agent,
        actions.continue_agent,
        CONTINUES,
        END,
    ),
    Fault(
        "agent-restarted",
        "the agent is restarted (SIGTERM) with rules, laws and connections alive",
        actions.restart_agent,
        actions.nothing,
        CONTINUES,
        OPEN,
        "windows end at once; the next agent takes over the connections that it knew",
    ),
    Fault(
        "vswitchd-killed",
        "ovs-vswitchd is killed (SIGKILL) and started again",
        actions.kill_vswitchd,
        actions.start_vswitchd,
        STOPS,
        OPEN,
        short=True,
    ),
    Fault(
        "database-killed",
        "ovsdb-server is killed (SIGKILL) and started again",
        actions.kill_database,
        actions.start_database,
        STOPS,
        OPEN,
        "without its database, Open vSwitch's userspace datapath forwards nothing, with or without us; agent "
        "and ovs-vswitchd connect to it again",
    ),
    Fault(
        "switch-restarted",
        "Open vSwitch is stopped and started, both daemons",
        actions.end_switch,
        actions.start_switch,
        STOPS,
        OPEN,
    ),
    Fault(
        "link-cut",
        "the link between controller and switch passes nothing for more than a lease",
        actions.cut_both_ways,
        actions.mend_link,
        CONTINUES,
        END,
        short=True,
    ),
    Fault(
        "link-cut-from-controller",
        "the same, only what the controller sends",
        actions.cut_from_controller,
        actions.mend_link,
        CONTINUES,
        END,
    ),
    Fault(
        "link-cut-to-controller",
        "the same, only what is sent to the controller",
        actions.cut_to_controller,
        actions.mend_link,
        CONTINUES,
        OPEN,
    ),
    Fault(
        "link-cut-for-long",
        "the link between controller and switch passes nothing for 7 s",
        actions.cut_for_long,
        actions.mend_link,
        CONTINUES,
        END,
        "both ends send again at least once a second, from Linux 6.15 on; an earlier kernel after up to as"
        " long again as the link was cut",
    ),
    Fault(
        "port-down",
        "the receiver's port is down for a second",
        actions.port_down,
        actions.port_up,
        STOPS,
        OPEN,
    ),
    Fault(
        "bridge-deleted",
        "the bridge is deleted and made again, while its agent runs",
        actions.delete_bridge,
        actions.make_bridge,
        STOPS,
        OPEN,
        "the agent waits for the bridge",
    ),
    Fault(
        "port-renamed",
        "the receiver's port has another name for a while",
        actions.rename_port,
        actions.rename_port_back,
        STOPS,
        OPEN,
    ),
    Fault(
        "port-moved",
        "the receiver's port is moved to another bridge, and back",
        actions.move_port,
        actions.move_port_back,
        STOPS,
        OPEN,
    ),
    Fault(
        "qdisc-replaced",
        "the port's queue is replaced by one of half the rate and half the buffer, under its law",
        actions.halve_queue,
        actions.whole_queue,
        CONTINUES,
        STAY,
        "the law uses the new queue within two seconds; the packets of the old one are lost",
        begun=actions.queue_is_half,
        ended=actions.queue_is_whole,
        short=True,
    ),
    Fault(
        "clsact-removed",
        "somebody removes the qdisc clsact with the agent's filters",
        actions.remove_clsact,
        actions.nothing,
        CONTINUES,
        OPEN,
        "the agent attaches them again within two seconds",
    ),
    Fault(
        "clock-stepped",
        "the wall clock is set forward by a day, then back by two",
        actions.step_clock,
        actions.set_clock_right,
        CONTINUES,
        STAY,
        "leases and all other times are those of the monotonic clock",
    ),
    Fault(
        "disk-full",
        "the disk with logs, run files and database is full; the controller is restarted meanwhile",
        actions.fill_disk,
        actions.clear_disk,
        CONTINUES,
        OPEN,
        "log lines are lost; an agent that is stopped meanwhile cannot leave its connections to the next",
    ),
    Fault(
        "descriptors-of-agent",
        "the agent cannot open another file descriptor",
        actions.use_up_descriptors_of_agent,
        actions.give_descriptors_to_agent,
        CONTINUES,
        STAY,
        "`fairq status` has no answer meanwhile",
    ),
    Fault(
        "port-without-descriptors",
        "the same, and the receiver's port has another name for a while",
        actions.rename_port_without_descriptors,
        actions.name_port_with_descriptors,
        STOPS,
        OPEN,
        "filters at a removed port are removed later",
    ),
    Fault(
        "descriptors-of-controller",
        "the controller cannot open another file descriptor",
        actions.use_up_descriptors_of_controller,
        actions.give_descriptors_to_controller,
        CONTINUES,
        STAY,
        "it accepts no connections meanwhile; those that exist go on",
    ),
    Fault(
        "maps-full",
        "more connections than the agent's map of flows holds",
        actions.fill_maps,
        actions.empty_maps,
        CONTINUES,
        STAY,
        "the connections that were silent longest are forgotten, and not governed from then on",
    ),
]
