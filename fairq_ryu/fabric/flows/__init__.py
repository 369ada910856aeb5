"""The flow table: TCP connections from SYN, FIN, RST and the agents' flow records. Pure.

May import model only.
A connection's states are in connection.py; which ports a flow counts at is in flow_ports.py.
"""
