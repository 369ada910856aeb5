"""What ryu-manager loads: Ryu's events in, messages out, nothing clever."""
