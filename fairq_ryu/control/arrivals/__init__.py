"""What has come from a bridge or an agent, and which part of the controller does it concern? Connections,
packet-ins, replies, errors, and changes of the network.

Rooms that it may import: agents, flows, paths, reports, windows.
"""
