"""How faults are made and mended. Each function is for one column of an entry of the table."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from fairq_ryu.agent.flow_changes import KEEP_NS

if TYPE_CHECKING:
    from tests.faults.load import Load
    from tests.faults.site import Site

_DAY = 86_400
_STOPPED_S = 5.0
_MANY, _SILENT = 1000, 600
_FEW_FLOWS, _MORE_FLOWS = 1024, 1500
DATABASE, SWITCH = "ovsdb-server", "ovs-vswitchd"


def nothing(site: Site, load: Load) -> None:
    """The fault is over with what began it."""


def nothing_more(site: Site, load: Load) -> bool:
    return True


# Controller and agent


def kill_controller(site: Site, load: Load) -> None:
    site.controller.end(signal.SIGKILL)


def start_controller(site: Site, load: Load) -> None:
    site.start_controller()


def stop_controller(site: Site, load: Load) -> None:
    site.controller.process.send_signal(signal.SIGSTOP)
    site.stopped_at = time.monotonic()


def continue_controller(site: Site, load: Load) -> None:
    time.sleep(max(0.0, site.stopped_at + _STOPPED_S - time.monotonic()))
    site.controller.process.send_signal(signal.SIGCONT)


def restart_controller_of_many(site: Site, load: Load) -> None:
    load.park(_MANY + _SILENT, _SILENT)
    site.wait(lambda: load.parked == _MANY + _SILENT, 90)
    # The silent ones are older than what the agent remembers of connections that have gone meanwhile.
    time.sleep(KEEP_NS / 1e9 + 3)
    site.controller.end()
    site.start_controller()


def all_are_known(site: Site, load: Load) -> bool:
    """Every connection that stays and sends is in the new controller's table."""
    try:
        return bool(site.rest("flows?limit=1&state=established")["total"] >= load.talking)
    except OSError:
        return False


def kill_agent(site: Site, load: Load) -> None:
    site.agent.end(signal.SIGKILL)


def start_agent(site: Site, load: Load) -> None:
    site.start_agent()


def stop_agent(site: Site, load: Load) -> None:
    site.agent.process.send_signal(signal.SIGSTOP)
    site.stopped_at = time.monotonic()


def continue_agent(site: Site, load: Load) -> None:
    time.sleep(max(0.0, site.stopped_at + _STOPPED_S - time.monotonic()))
    site.agent.process.send_signal(signal.SIGCONT)


def restart_agent(site: Site, load: Load) -> None:
    assert site.agent.end() == 0, site.agent.text
    site.start_agent()


# The link between them


def cut_both_ways(site: Site, load: Load) -> None:
    site.cut()


def cut_from_controller(site: Site, load: Load) -> None:
    site.cut(to_controller=False)


def cut_to_controller(site: Site, load: Load) -> None:
    site.cut(of_controller=False)
    time.sleep(3)


def cut_for_long(site: Site, load: Load) -> None:
    site.cut()
    time.sleep(7)  # half of the silence that ends a connection; TCP's timeouts have grown to seconds


def mend_link(site: Site, load: Load) -> None:
    site.mend_link()


# Open vSwitch and the ports


def kill_vswitchd(site: Site, load: Load) -> None:
    site.machine.end(SWITCH)


def start_vswitchd(site: Site, load: Load) -> None:
    site.restart_switch(SWITCH)


def kill_database(site: Site, load: Load) -> None:
    site.machine.end(DATABASE)
    time.sleep(1)


def start_database(site: Site, load: Load) -> None:
    site.restart_switch(DATABASE)


def end_switch(site: Site, load: Load) -> None:
    site.machine.end(SWITCH, signal.SIGTERM)
    site.machine.end(DATABASE, signal.SIGTERM)


def start_switch(site: Site, load: Load) -> None:
    site.restart_switch(DATABASE, SWITCH)


def port_down(site: Site, load: Load) -> None:
    site.link(site.name, "down")
    time.sleep(1)


def port_up(site: Site, load: Load) -> None:
    site.link(site.name, "up")


def delete_bridge(site: Site, load: Load) -> None:
    site.delete_bridge()
    site.wait(lambda: site.status()["deleted"])


def make_bridge(site: Site, load: Load) -> None:
    site.make_bridge()


def rename_port(site: Site, load: Load) -> None:
    site.rename_port(site.name, "renamed")
    site.wait(lambda: "renamed" in site.watched())


def rename_port_back(site: Site, load: Load) -> None:
    site.rename_port("renamed", site.name)


def move_port(site: Site, load: Load) -> None:
    site.move_port()
    site.wait(lambda: site.name not in site.watched())


def move_port_back(site: Site, load: Load) -> None:
    site.move_port_back()


def halve_queue(site: Site, load: Load) -> None:
    site.shape(1 / 2)


def queue_is_half(site: Site, load: Load) -> bool:
    return site.has_queue(1 / 2)


def whole_queue(site: Site, load: Load) -> None:
    site.shape(1)


def queue_is_whole(site: Site, load: Load) -> bool:
    return site.has_queue(1)


def remove_clsact(site: Site, load: Load) -> None:
    site.remove_clsact()


# The machine


def step_clock(site: Site, load: Load) -> None:
    site.step_clock(_DAY)
    time.sleep(1)
    site.step_clock(-_DAY)


def set_clock_right(site: Site, load: Load) -> None:
    site.step_clock(0)


def fill_disk(site: Site, load: Load) -> None:
    site.disk(full=True)
    site.remove_clsact()  # the agent has something to say
    site.controller.end()
    site.start_controller()


def clear_disk(site: Site, load: Load) -> None:
    site.disk(full=False)


def use_up_descriptors_of_agent(site: Site, load: Load) -> None:
    site.use_up_descriptors(site.agent)
    site.knock()


def give_descriptors_to_agent(site: Site, load: Load) -> None:
    site.give_descriptors(site.agent)


def rename_port_without_descriptors(site: Site, load: Load) -> None:
    site.use_up_descriptors(site.agent)
    site.rename_port(site.name, "renamed")
    site.wait(lambda: f"({site.name}): gone" in site.agent.text)


def name_port_with_descriptors(site: Site, load: Load) -> None:
    site.give_descriptors(site.agent)
    site.rename_port("renamed", site.name)


def use_up_descriptors_of_controller(site: Site, load: Load) -> None:
    site.use_up_descriptors(site.controller)
    site.knock()


def give_descriptors_to_controller(site: Site, load: Load) -> None:
    site.give_descriptors(site.controller)


def fill_maps(site: Site, load: Load) -> None:
    assert site.agent.end() == 0, site.agent.text
    site.start_agent(f"[agent]\nflows = {_FEW_FLOWS}\n")
    load.park(_MORE_FLOWS)
    site.wait(lambda: load.parked == _MORE_FLOWS and site.status()["flows_evicted"] > 0, 60)


def empty_maps(site: Site, load: Load) -> None:
    assert site.agent.end() == 0, site.agent.text
    site.start_agent()
