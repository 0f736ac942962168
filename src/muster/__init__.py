"""Muster: groups of pods start together or not at all, at every level, inside the topology they ask for."""

__version__ = "0.1.0"
