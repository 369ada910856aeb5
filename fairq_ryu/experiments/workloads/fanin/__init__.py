"""Fan-in: volleys of several applications, each with several senders and one receiver, for a list of numbers
of senders: the large experiment of SED's paper, and with one application RSED's barrier-synchronised rounds.

May import what workloads may, and ../common; no other workload. Figures are documented in figures.py.
"""
