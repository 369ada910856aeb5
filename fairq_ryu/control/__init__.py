"""What the controller does with an event, in rooms that answer one question each.

From the top to the bottom: arrivals and operations; flows; windows; agents and paths; reports. The docstring
of a room has its question and the rooms that it may import; ``sender``, ``worker`` and ``yielding`` are for
all. May import policies, fabric, channel, openflow, packet and config; nothing of apps, rest or metrics. A
new event gets a method here and a handler in apps/controller.py that calls it; pure decisions go to fabric or
policies.
"""
