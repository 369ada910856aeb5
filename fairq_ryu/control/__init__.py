"""What the controller does with an event: bridges, hosts, SYNs, flows, windows, losses, agents.

May import policies, fabric, channel, openflow, packet and config; nothing of apps, rest or metrics.
What happens on an event is changed here; what follows from it without a switch is fabric's or a policy's.
"""
