"""Heterogeneous flows at one port: long TCP flows of several congestion controls, UDP flows, short flows.

May import what workloads may, and ../common; no other workload.
The figures in the result are documented in figures.py.
"""
