"""The Prometheus metrics: what they are called, and where their values come from.

May import control, fabric and model, which it reads.
A new metric is a row in tables.py (of the network) or health.py (of the controller itself).
"""
