"""From a root and a snapshot to a verdict: gangs, trees, topology, exact search, validation."""
