"""Mininet topologies with shallow switch ports and switches that bring their own agent.

Imports only Mininet and the standard library, because ``mn`` runs in the system's Python.
"""
