"""The invariants of the scheduler's state hold after every cycle of every test."""

from tests.build.checked_cycles import checked_cycles

__all__ = ["checked_cycles"]
