"""Switches, links, hosts, routes, paths, and the forwarding rules that follow from them. Pure.

May import model, and networkx.
The path of a connection is chosen in paths.py, from the trees of routing.py; flood and delivery rules are in
forwarding.py, switches and links in graph.py.
"""
