"""What runs beside an OVS bridge: the agent, its eBPF programs, and how it finds ports and queues."""
