"""A flood of SYNs beside elephants: the elephants' goodput before it, during it and afterwards.

May import what workloads may, and ../common; no other workload.
The figures in the result are documented in measurement.py and ../common/elephants.py.
"""
