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
