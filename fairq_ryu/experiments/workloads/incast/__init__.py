"""Incast: volleys of short flows (mice) from many senders to one receiver, beside long flows (elephants).

May import what workloads may, and ../common; no other workload.
The figures in the result are documented in figures.py and ../common/elephants.py.
"""
