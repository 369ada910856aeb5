"""Pairs of flows: a short one that starts beside a long one, at several rates of the link.

May import what workloads may, and ../common; no other workload.
The figures in the result are documented in figures.py.
"""
