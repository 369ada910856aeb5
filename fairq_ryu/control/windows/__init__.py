"""What do the laws say about each port, and what is sent for it? Rules and laws for agents, the mode of a
port, announced deadlines, lost segments and window updates.

Rooms that it may import: agents, paths, reports.
"""
