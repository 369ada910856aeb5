"""What the network is: hosts, flows, ports. Pure: no Ryu, no sockets, no clock."""
