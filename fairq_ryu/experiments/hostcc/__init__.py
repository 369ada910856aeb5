"""TCP congestion controls for the hosts of experiments: DCTCP, D2TCP and HighSpeed TCP as eBPF programs.

May import what experiments may. A new control is a source in bpf/, its arithmetic in a header that compiles
for the host too, and an entry in names.py.
"""
