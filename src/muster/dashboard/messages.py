"""The board as a page gets it: the whole at first, then differences.

A node is `[name, domains, health, allocatable, requested, gangs]`, a gang on it `[number, pods, cpu, memory, gpu]`;
CPUs in thousandths, memory in MiB. Numbers of gangs are explained by the rows of `gangs`. One difference is encoded
once for all viewers with the same rights.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.dashboard import redaction
from muster.dashboard.access import Rights
from muster.dashboard.board import Board
from muster.views.occupancy import NodeOccupancy

MOST_KEPT = 32


class BoardMessage(msgspec.Struct, rename="camel", omit_defaults=True):
    """What changed between two versions; with `whole`, all there is. Gone nodes and gangs are named."""

    version: int
    whole: bool = False
    levels: list[str] | None = None
    nodes: list[Any] | None = None
    gone_nodes: list[str] | None = None
    gangs: list[Any] | None = None
    gone_gangs: list[int] | None = None
    queue: list[Any] | None = None
    waiting: int | None = None
    hidden: str = ""  # what the viewer may not see


class BoardMessages:
    """Makes and keeps the messages of one board."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._kept: dict[tuple[int, int, Rights], bytes] = {}

    def since(self, version: int, rights: Rights) -> bytes:
        """The message that brings a page from a version to the present one, as JSON."""
        board = self._board
        if version < max(board.born, board.nodes.floor, board.gangs.floor) or version > board.version:
            version = 0
        key = (version, board.version, rights)
        found = self._kept.get(key)
        if found is None:
            found = msgspec.json.encode(self._message(version, rights))
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = found
        return found

    def _message(self, version: int, rights: Rights) -> BoardMessage:
        board = self._board
        message = BoardMessage(board.version)
        if version == 0:
            message.whole, message.levels = True, board.levels
        if rights.may_see("Node"):
            message.nodes = [self._node(board.nodes.rows[name], rights) for name in board.nodes.changed_since(version)]
            message.gone_nodes = list(board.nodes.removed_since(version)) if version else None
        else:
            message.hidden = "nodes"
        gangs = (key for key in board.gangs.changed_since(version) if rights.may_see_gang(key))
        message.gangs = [self._gang(key) for key in gangs]
        if version:
            message.gone_gangs = [board.gang_id(key) for key in board.gangs.removed_since(version)]
        if board.queue_version > version or version == 0:
            message.queue = [msgspec.to_builtins(row) for row in redaction.queue_rows(board.queue, rights)]
            message.waiting = board.waiting
        return message

    def _node(self, row: NodeOccupancy, rights: Rights) -> list[Any]:
        gangs = redaction.gangs_on_node(row.gangs, rights, self._board.gang_id)
        return [row.name, row.domains, row.health, row.allocatable, row.requested, gangs]

    def _gang(self, key: Any) -> list[Any]:
        row = self._board.gangs.rows[key]
        return [self._board.gang_id(key), *msgspec.structs.astuple(row)]
