"""Which connections are there, and when may a held SYN go on? What copies of segments and flow records mean
for the flow table, and for the windows and paths of its connections.

Rooms that it may import: agents, paths, windows.
"""
