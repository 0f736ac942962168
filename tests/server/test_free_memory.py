"""Freed memory goes back to the system."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

import pytest

from muster.server.free_memory import release

PARTS = 60_000


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not the C library of GNU")
def test_what_was_freed_between_what_is_kept_is_given_back() -> None:
    held = [bytes((number % 251,)) * 3000 for number in range(PARTS)]
    kept = held[::50]  # no page at the end of the heap is free while these are there
    full = resident()
    del held
    release()
    assert resident() < full - PARTS * 3000 // 2
    assert len(kept) == PARTS // 50
