"""Fan-in: volleys of several applications, each with n flows to one receiver, for a list of values of n: the
large experiment of SED's paper, and with one application RSED's barrier-synchronised rounds.

May import what workloads may, and ../common; no other workload. Figures are documented in figures.py.
"""
