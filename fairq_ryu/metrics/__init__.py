"""The Prometheus metrics: what they are called, and where their values come from.

May import control and policies, which it reads, model and ryu_compat.runtime.
A new metric is a row in tables.py (of the network) or health.py (of the controller itself).
"""
