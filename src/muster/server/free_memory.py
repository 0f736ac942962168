"""Gives memory back to the system after a lot of it was freed at once: a flood of writes, thousands of connections.

The C library keeps what is freed between what is not, for later use; resident memory would stay at its peak for good.
"""

from __future__ import annotations

import ctypes
import threading


def release_soon() -> None:
    """In a thread, because it takes milliseconds."""
    threading.Thread(target=release, name="muster-release", daemon=True).start()


def release() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
