"""The brain: pure and deterministic. Events in, decisions out; no I/O, clock, randomness or tasks."""
