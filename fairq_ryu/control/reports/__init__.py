"""What has occurred, and how often? Events, outcomes of announced flows, counters, and the traffic of ports.

Rooms that it may import: none.
"""
