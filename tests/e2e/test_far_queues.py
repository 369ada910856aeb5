"""Far queues of a running system: added, changed and removed by command, and an uplink that is divided."""

import json
import signal

import pytest

from fairq_ryu.far_queue import FAR
from tests.support.lab import FAIRQ, fairq, output, received, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]


def ingress(interface):
    return "fq_arrives" in output("tc", "filter", "show", "dev", interface, "ingress")


def far_ports(lab):
    """The far queues of the agent, by number of their port."""
    return {each["ofport"] - FAR: each for each in lab.status()["ports"] if each["ofport"] >= FAR}


def far(lab, *words):
    return fairq("far", "--url", lab.manager.url, "--json", *words)


def listed(lab):
    answer = json.loads(far(lab).stdout)
    return {row["far_of"]: row for row in answer["ports"]}


def start(lab, config=""):
    """Controller and agent read the same file. The bridge forwards by itself."""
    lab.manager = lab.controller(config=config, connect=False)
    target = f"tcp:127.0.0.1:{lab.manager.port}"
    words = (
        "agent",
        "--bridge",
        "s1",
        "--controller",
        target,
        "--config-file",
        str(lab.tmp_path / "fairq.conf"),
    )
    agent = lab.run("agent", FAIRQ, *words)
    agent.wait_for("ready")
    lab.manager.wait_for("agent of bridge 0000000000000001: connected")
    return agent


def test_a_far_queue_is_added_changed_and_removed_while_data_flows(lab):
    agent = start(lab)
    sink, _ = lab.bulk("h1")
    assert until(lambda: received(sink)) and not ingress("s1-eth1") and listed(lab) == {}

    added = far(lab, "add", "s1", "s1-eth1", "rate", "40mbit", "buffer", "100000")
    assert added.returncode == 0, added.stderr
    row = json.loads(added.stdout)
    assert (row["port"], row["rate_bps"], row["buffer_bytes"]) == (1, 40_000_000, 100_000)
    # The agent has acknowledged it: nothing has to be waited for.
    assert ingress("s1-eth1")
    queue = far_ports(lab)[1]["queue"]
    assert (queue["limit"], queue["rate"]) == (100_000, 40_000_000 * 98 // 100 // 8)
    assert until(lambda: far_ports(lab)[1]["rewritten"] > 100), "windows are lowered for it"
    assert until(lambda: listed(lab).get(1, {}).get("limit_bytes") == 100_000)

    packets = far_ports(lab)[1]["queue"]["packets"]
    assert far(lab, "add", "s1", "s1-eth1", "rate", "20mbit", "buffer", "50000").returncode == 0
    changed = far_ports(lab)[1]["queue"]
    assert (changed["limit"], changed["packets"] >= packets) == (50_000, True), "the same queue"
    wrong = far(lab, "add", "s1", "s1-eth1", "rate", "20mbyte")
    assert wrong.returncode == 2 and "rate 20mbyte: it is not a rate" in wrong.stderr
    assert far_ports(lab)[1]["queue"]["limit"] == 50_000

    # The agent is restarted: the controller tells it again.
    assert agent.end() == 0 and not ingress("s1-eth1")
    agent = lab.agent(f"tcp:127.0.0.1:{lab.manager.port}")
    assert until(lambda: ingress("s1-eth1"))
    assert until(lambda: far_ports(lab).get(1, {}).get("queue", {}).get("limit") == 50_000)

    assert far(lab, "remove", "s1", "s1-eth1").returncode == 0
    assert not ingress("s1-eth1") and far_ports(lab) == {}
    assert until(lambda: listed(lab) == {})
    before = received(sink)
    assert until(lambda: received(sink) > before)


def test_after_a_restart_of_the_controller_the_configuration_holds(lab):
    config = "[far_queues]\ns1-eth1 = rate 40mbit buffer 100000\n"
    agent = start(lab, config)
    assert set(far_ports(lab)) == {1}
    assert far(lab, "remove", "s1", "s1-eth1").returncode == 0
    assert far(lab, "add", "s1", "s1-eth2").returncode == 0
    assert set(far_ports(lab)) == {2} and ingress("s1-eth2") and not ingress("s1-eth1")
    port = lab.manager.port
    lab.manager.end(signal.SIGKILL)
    assert set(far_ports(lab)) == {2}, "without a controller all stays as it is"
    lab.manager = lab.controller(config=config, port=port, connect=False)
    assert until(lambda: set(far_ports(lab)) == {1})
    assert ingress("s1-eth1") and not ingress("s1-eth2")
    assert agent.process.poll() is None


def test_an_uplink_is_divided_by_active_flows_and_equal_without_a_controller(lab):
    config = "[uplink.rack1]\nrate = 40mbit\nbuffer = 200000\nports = s1/s1-eth1, s1/s1-eth2\n"
    start(lab, config)

    def rates():
        return [far_ports(lab)[port]["queue"]["rate"] for port in (1, 2)]

    equal, whole = 20_000_000 * 98 // 100 // 8, 40_000_000 * 98 // 100 // 8
    assert [far_ports(lab)[port]["queue"]["limit"] for port in (1, 2)] == [100_000, 100_000]
    lab.bulk("h1")
    # All of the rate but the floor of the other port, an eighth, as far as the queues have been read.
    assert until(lambda: rates()[0] > whole * 0.8 and sum(rates()) in (whole - 1, whole))
    assert min(rates()) >= whole // 8 - 1
    refused = far(lab, "add", "s1", "s1-eth1", "rate", "1gbit")
    assert refused.returncode == 2 and "s1-eth1 is behind uplink rack1" in refused.stderr
    lab.manager.end(signal.SIGKILL)
    assert until(lambda: rates() == [equal, equal])
