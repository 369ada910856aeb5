"""Switches, links, hosts, routes, paths, and the forwarding rules that follow from them. Pure.

May import model, and networkx.
Path choice is in paths.py, flood and delivery rules in forwarding.py, discovery's conclusions in graph.py.
"""
