"""What runs beside a bridge: the OpenFlow server, rules, eBPF programs, and how ports and queues are found.

May import channel, packet, model and errors.
A message of the channel is answered in window_channel.py; an eBPF program is a class in programs/.
"""

import os

# Open vSwitch's library imports eventlet if it is there. Its resolver takes a fifth of the time that an agent
# needs to start, and no agent resolves names with it.
os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
