"""``fairq release`` on a bridge that a controller has governed: what others have put in stays."""

import json

import pytest

from fairq_ryu.openflow import pipeline
from tests.support.lab import fairq, output, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
FOREIGN = "cookie=0x5adc15c0,table=7,priority=77,udp,tp_dst=9,actions=drop"


def listed(what):
    return output("ovs-ofctl", "-O", "OpenFlow13", f"dump-{what}", "s1").splitlines()[1:]


def qos():
    """The QoS records, with the bridge that each is of."""
    found = json.loads(output("ovs-vsctl", "--format=json", "--columns=_uuid,external_ids", "list", "QoS"))
    return {uuid[1]: dict(ids[1]).get("fairq-bridge") for uuid, ids in found["data"]}


@pytest.fixture
def other(own_lab):
    """A QoS record of somebody else."""
    uuid = output("ovs-vsctl", "create", "QoS", "type=linux-noop", "external_ids:owner=other").strip()
    yield uuid
    output("ovs-vsctl", "destroy", "QoS", uuid)


def test_what_is_ours_is_removed_and_nothing_else(own_lab, other):
    own_lab.govern(config="[fairq_ryu]\nway = paths\n")
    output("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", FOREIGN)
    output("ovs-ofctl", "-O", "OpenFlow13", "add-meter", "s1", "meter=5,kbps,band=type=drop,rate=1000")
    ours = f"cookie={pipeline.COOKIE_TCP >> 48:#x}"
    assert any(ours in line for line in listed("flows")) and "s1" in qos().values()
    assert len(listed("meters")) > 2  # one has two lines
    refused = fairq("release", "--bridge", "s1")
    assert refused.returncode == 2 and "is running. Remedy" in refused.stderr
    assert any(ours in line for line in listed("flows"))

    # Without a controller for a while, Open vSwitch would otherwise remove all rules and forward by itself.
    output("ovs-vsctl", "set-fail-mode", "s1", "secure")
    own_lab.manager.end()
    assert own_lab.agent_process.end() == 0
    assert until(lambda: "is_connected: true" not in output("ovs-vsctl", "show"), 20)
    done = fairq("release", "--bridge", "s1")
    assert done.returncode == 0, done.stderr
    (rule,) = (line for line in listed("flows") if "reserved" not in line)
    assert "cookie=0x5adc15c0" in rule and "udp" in rule
    assert [line.split()[0] for line in listed("meters") if "meter=" in line] == ["meter=5"]
    assert qos()[other] is None and "s1" not in qos().values()
    again = fairq("release", "--bridge", "s1")
    assert again.returncode == 0, again.stderr
