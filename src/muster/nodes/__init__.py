"""Simulated kubelets: nodes that heartbeat, start pods, run them for a while and let them go."""
