"""The scheduler: a pure, deterministic function from events and time to decisions.

No I/O, no clock, no randomness: `muster.engine` feeds it events and carries out its decisions. The sub-packages are
layers; each imports only the ones below it (see `docs/architecture.md`).
"""
