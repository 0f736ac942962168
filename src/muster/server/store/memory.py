"""The store that keeps nothing: every write is visible as soon as it is accepted."""

from __future__ import annotations

import time
from collections.abc import Callable

from muster.server.store.base import Store
from muster.server.store.records import Change


class MemoryStore(Store):
    """Objects in this process only."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)

    def _next_revision(self) -> int:
        return self.revision + 1

    async def _commit(self, table: str, change: Change) -> None:
        self.revision = change.revision
        self._publish(table, [change])
