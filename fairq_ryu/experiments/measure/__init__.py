"""Measurements of queues, captures, TCP counters and the machine, and their statistics.

May import what experiments may.
A new figure is read here, put into the result by ../workloads/common/measurement.py, and printed by a row of
../workloads/common/rows.py.
"""
