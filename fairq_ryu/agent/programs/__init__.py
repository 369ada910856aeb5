"""The eBPF programs as Python loads and attaches them; their sources are in ../bpf.

May import what the agent may.
A further program is one source in ../bpf, one class here, and its place in the list of bridge.py; a setting
if it is optional.
"""
