"""The Prometheus metrics: their names, and the sources of their values.

May import control and policies, which it reads, model and ryu_compat.runtime.
A new metric is a row in tables.py (of the network) or health.py (of the controller itself).
"""
