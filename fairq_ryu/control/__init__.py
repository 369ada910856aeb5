"""What the controller does with an event: bridges, hosts, SYNs, flows, windows, losses, agents.

May import policies, fabric, channel, openflow, packet and config; nothing of apps, rest or metrics.
A new event gets a method here and a handler in apps/controller.py that calls it; pure decisions go to fabric
or policies.
"""
