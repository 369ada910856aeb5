"""What is the network, and which way do frames take? Bridges, links and hosts, and the rules of bridges that
follow from them.

Rooms that it may import: reports.
"""
