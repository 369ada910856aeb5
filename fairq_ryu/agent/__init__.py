"""What runs beside a bridge: the OpenFlow server, rules, eBPF programs, and how ports and queues are found.

May import channel, packet, model and errors.
A message of the channel is answered in window_channel.py; an eBPF program is a class in programs/.
"""
