"""The kinds of traffic: what each starts, measures and counts.

May import what experiments may.
A new kind is a module here and an entry in registry.py.
"""
