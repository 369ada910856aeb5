"""Flows of published size distributions that arrive at random times, whether or not others have ended.

May import what workloads may, and ../common; no other workload.
The figures in the result are documented in figures.py.
"""
