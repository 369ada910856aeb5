"""The network as data: topology, flows, announced deadlines, recovery. Pure: no Ryu, no sockets, no clock.

May import model and errors, and networkx.
What is decided from data alone is changed here; whoever sends what was decided is in control/.
"""
