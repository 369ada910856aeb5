"""Short messages on many open connections beside elephants: does a bulk flow get what they leave?

May import what workloads may, and ../common; no other workload.
The figures in the result are documented in measurement.py and ../common/elephants.py.
"""
