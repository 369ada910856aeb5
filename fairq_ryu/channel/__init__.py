"""The window channel between controller and agent: OpenFlow 1.3 with window fields and experimenter messages.

May import model and packet, and Ryu's codec. One module for each message, with both directions:
flowmod.py, queue_depth.py, flow_records.py, flow_changes.py, segment_state.py, congestion.py,
dropped_packet.py, window_law.py, deadlines.py, waking.py, recovery.py, segment_counts.py, segment_copies.py,
port_mode.py, tenants.py, flow_priorities.py.
docs/window-channel.md describes the bytes, and a test compares them. A new message is a module here, and a
handler in the end that receives it: agent/window_channel.py or control/arrivals/agent_messages.py.

Importing this package registers the window fields with Ryu's codec.
"""

from fairq_ryu.channel import oxm as _oxm

_oxm.register()
