"""Which devices a claim can have: pools of a node, requests of a claim, and the search that brings them together.

Pure functions over the objects of `resource.k8s.io`. What is allocated now is kept by `muster.scheduler.cache`.
"""
