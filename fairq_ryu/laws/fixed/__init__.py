"""Fixed: one pool of bytes for each port, chosen by hand."""
