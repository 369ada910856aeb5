"""The flow table: TCP connections from SYN, FIN, RST and the agents' flow records. Pure.

May import model only.
The states of a connection are in connection.py; the ports at which flows are counted are in flow_ports.py.
"""
