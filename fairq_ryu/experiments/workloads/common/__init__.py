"""What several workloads share: settings, the base of a measurement, groups of flows, rows, pictures.

May import what experiments may, but no workload and not ../../report.
What only one workload needs belongs into its own folder.
"""
