"""Tenants at one port: each has hosts of its own and a number of long flows, in stages; short flows beside
them.

May import what workloads may, and ../common; no other workload.
The figures in the result are documented in figures.py.
"""
