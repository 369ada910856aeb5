"""Flows with deadlines that start together, beside flows without end: the small experiment of SED's paper.

May import what workloads may, and ../common; no other workload.
The figures in the result are documented in figures.py.
"""
