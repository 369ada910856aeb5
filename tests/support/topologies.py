"""Ports and queues of a topology, read from its graph."""


def neighbours(topo, switch):
    """{port: (neighbour, its port)}"""
    return dict(topo.ports[switch])


def queues(topo):
    """{(switch, port): (rate, buffer)} of the shallow ports; hosts have none."""
    found = {}
    for _, _, info in topo.links(withInfo=True):
        if "rate" in info:
            for node, port in ((info["node1"], info["port1"]), (info["node2"], info["port2"])):
                if topo.isSwitch(node) and info.get("at") in (None, node):
                    found[node, port] = (info["rate"], info["buffer"])
    return found
