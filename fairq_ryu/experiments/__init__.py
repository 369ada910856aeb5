"""Experiments: a scenario is a data file; run, result and report are three separate steps.

May import mininet_topos, config, packet, and the agent's status, tail-drop program and loader of eBPF.
A workload is a folder in workloads/; a scenario is a file in scenarios/.
"""
