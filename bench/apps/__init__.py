"""Controllers to compare with: what ``ryu-manager`` loads for the benchmark of new connections."""
