"""What may people read, and change while the controller runs? The state for REST and metrics, the policy, and
ports that are disabled.

Rooms that it may import: agents, paths, reports, windows.
"""
