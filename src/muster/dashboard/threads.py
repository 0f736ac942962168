"""Work in a thread on something that a lock protects: the lock is kept until the work has ended.

A page that goes away cancels its question, and a thread cannot be stopped. Whoever gave up the lock then would let
others change what the thread still reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives. Cancelled, it still waits for the end."""
    task = asyncio.create_task(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
