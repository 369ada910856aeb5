"""``fairq simulate``: scenarios in a packet-level simulator, at rates that no bench has.

The simulator is a program of its own, ``simulator/`` of the sources (C++, GPL-2.0): ns-3 with the C program
of the switch. This package compiles it, writes its orders, and makes of its answers results as ``fairq run``
has them.
"""
