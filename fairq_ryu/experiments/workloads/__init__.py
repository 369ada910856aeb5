"""Workloads: a folder for each kind of traffic, with its settings, measurement, figures, rows and pictures.

May import what experiments may, but not ../report, which asks registry.py for the rows and pictures.
A new workload is a folder here and an entry in registry.py.
"""
