"""Conditions, messages and wait reasons of pods and groups, each written once."""
