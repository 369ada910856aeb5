"""The network as data: topology, flows, announced deadlines, recovery. Pure: no Ryu, no sockets, no clock.

May import model and errors, and networkx.
Decisions from data alone are made here; the code that sends messages for them is in control/.
"""
