"""The scheduler's cache of the cluster as arrays: nodes, pods on nodes, pod counts by selector, volumes.

Events keep it current. `Cluster` is the whole of it; the other modules are its parts.
"""
