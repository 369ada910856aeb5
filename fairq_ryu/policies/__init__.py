"""The window laws. Pure: no Ryu, no sockets, no clock."""
