"""FairQ for stock Open vSwitch: shorter queues for data-centre TCP, from the network alone."""

__version__ = "0.1.0"
