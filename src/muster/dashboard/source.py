"""Where the board of a page comes from: a live cluster, a snapshot file, or a recording.

A source gives a board under a lock: while somebody asks its scheduler in another thread, no event gets in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec

from muster.dashboard.board import Board
from muster.dashboard.history import History
from muster.dashboard.messages import BoardMessages
from muster.dashboard.threads import in_thread
from muster.scheduler.simulation.snapshot import Snapshot

T = TypeVar("T")


class SourceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What the page says about its source: is it there, and what of it cannot be read."""

    kind: str  # live, snapshot or recording
    name: str
    ready: bool
    trouble: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()  # kinds that may not be listed
    taken_at: str = ""


class BoardHolder:
    """A board, its messages, its history and its lock."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.messages = BoardMessages(board)
        self.history = History()
        self.lock = asyncio.Lock()

    async def ask(self, question: Callable[[Board], T]) -> T:
        """Answer a question in a thread; the board stands still meanwhile."""
        async with self.lock:
            return await in_thread(question, self.board)


class Source(Protocol):
    """What `app` needs of a source."""

    @property
    def status(self) -> SourceStatus: ...

    def start(self) -> None:
        """Begin to read; called again when it has begun, it does nothing."""
        ...

    async def ready(self) -> None:
        """Wait until there is a board."""
        ...

    async def at(self, moment: str, viewer: str = "") -> BoardHolder:
        """The board at a moment; of a source without a past the present one."""
        ...

    async def changed(self, version: int) -> None:
        """Wait until the present board has another version."""
        ...

    async def details(self) -> dict[str, Any]:
        """What the Health page says beside the history: watches, leader."""
        ...

    async def close(self) -> None: ...


class SnapshotSource:
    """A snapshot file: nothing ever changes."""

    def __init__(self, snapshot: Snapshot, name: str) -> None:
        self.status = SourceStatus("snapshot", name, ready=True, taken_at=snapshot.taken_at)
        self._snapshot = snapshot
        self._holder: BoardHolder | None = None

    def start(self) -> None:
        """The file has been read."""

    async def ready(self) -> None:
        await self.at("")

    async def at(self, moment: str, viewer: str = "") -> BoardHolder:
        if self._holder is None:
            board = Board()
            board.changeable, board.gates = self._snapshot.changeable, self._snapshot.gates
            board.groups_by_label = self._snapshot.groups_by_label
            board.load((event.kind, event.object) for event in self._snapshot.events())
            holder = BoardHolder(board)
            await holder.ask(fill)
            for event in self._snapshot.events():
                holder.history.observe(event, board)
            self._holder = holder
        return self._holder

    async def changed(self, version: int) -> None:
        await asyncio.Event().wait()

    async def details(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        """Nothing is open."""


def fill(board: Board) -> None:
    """Make every table of a board."""
    board.refresh()
    board.refresh_queue()
