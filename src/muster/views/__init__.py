"""The answers that commands and pages show: what waits, what runs where, why, and what would happen.

Each function takes a scheduler or a snapshot and gives values that are printed as JSON as they are. Nothing here draws
or prints, and nothing is written to a cluster.
"""
