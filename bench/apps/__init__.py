"""The baseline controllers of the benchmark of new connections, loaded by ``ryu-manager``."""
