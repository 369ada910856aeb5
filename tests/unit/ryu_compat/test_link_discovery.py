"""Discovery frames are sent periodically, whenever bridges connect and whatever the clock shows."""

import subprocess
import sys

import pytest

# In its own process: the service runs in green threads and changes Ryu's settings.
PROGRAM = """
import sys, time
from types import SimpleNamespace

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3, ofproto_v1_3_parser
from ryu.topology.switches import Port

from fairq_ryu.ryu_compat.link_discovery import Discovery

Discovery.LLDP_SEND_PERIOD_PER_PORT = 0.05
discovery = Discovery()
sent = []


class Bridge:
    id, ofproto, ofproto_parser = 1, ofproto_v1_3, ofproto_v1_3_parser

    def send_msg(self, message):
        sent.append(message)


discovery.dps[1] = Bridge()
for number in (1, 2):
    described = SimpleNamespace(
        port_no=number, hw_addr=f"02:00:00:00:00:0{number}", name=b"p", state=0, config=0
    )
    discovery._port_added(Port(1, ofproto_v1_3, described))
discovery.lldp_event.set()
if sys.argv[1] == "clock":
    hub.sleep(0.1)
    time.time = lambda: 0.0
    before = len(sent)
else:
    before = 0
hub.sleep(1)
print(len(sent) - before)
"""


@pytest.mark.parametrize("trouble", ["all ports new at once", "clock"])
def test_discovery_frames_are_sent_periodically(trouble):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, trouble], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2 * 5


JOINING = """
from types import SimpleNamespace

from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER
from ryu.ofproto import ofproto_v1_3, ofproto_v1_3_parser

from fairq_ryu.ryu_compat.link_discovery import Discovery

discovery = Discovery()
sent = []
port = SimpleNamespace(port_no=1, hw_addr="02:00:00:00:00:01", name=b"p", state=0, config=0)
bridge = SimpleNamespace(
    id=1, ofproto=ofproto_v1_3, ofproto_parser=ofproto_v1_3_parser, ports={1: port}, send_msg=sent.append
)
known = lambda: (len(discovery.dps), len(discovery.ports))
discovery.state_change_handler(SimpleNamespace(datapath=bridge, state=MAIN_DISPATCHER))
connected = known()
discovery.bridge_left(bridge)
discovery.bridge_joined(bridge)
joined = known()
discovery.bridge_left(bridge)
left = known()
discovery.bridge_joined(bridge)
discovery.state_change_handler(SimpleNamespace(datapath=bridge, state=DEAD_DISPATCHER))
print(connected, joined, left, known(), len(sent))
"""


def test_only_bridges_that_have_joined_are_known_and_no_rule_is_installed():
    done = subprocess.run([sys.executable, "-c", JOINING], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(0, 0) (1, 1) (0, 0) (0, 0) 0"
