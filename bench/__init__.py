"""Benchmarks: figures and ratios, never assertions. `python -m bench` runs them all, or only those named."""
