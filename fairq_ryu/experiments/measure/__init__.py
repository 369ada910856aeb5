"""What is measured: queues, captures, TCP counters, the machine; and the statistics of it.

May import what experiments may.
A new figure is read here and printed by ../report.
"""
