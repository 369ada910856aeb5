"""RSED: SED, and the network sends lost segments again at once."""
