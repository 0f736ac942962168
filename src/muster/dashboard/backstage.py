"""What the handlers stand on: where boards come from, who is signed in, what of a board they may see."""

from __future__ import annotations

from typing import NamedTuple

from aiohttp import web

from muster.client.protocol import Client
from muster.dashboard.access import Rights
from muster.dashboard.board import Board
from muster.dashboard.exchange import KINDS
from muster.dashboard.recording import Recording
from muster.dashboard.sessions import Session, Sessions
from muster.dashboard.source import BoardHolder, Source


class Backstage(NamedTuple):
    """The parts of one dashboard. Without a client there are no events of objects to show."""

    source: Source
    sessions: Sessions
    past: Recording | None = None
    client: Client | None = None
    hosts: tuple[str, ...] = ()
    secure: bool = False

    async def holder(self, request: web.Request, session: Session) -> BoardHolder:
        """The board that a request is about: now, or at its `moment`."""
        moment = request.query.get("moment", "")
        if moment and self.past is not None:
            return await self.past.at(moment, session.name)
        return await self.source.at(moment, session.name)

    async def rights(self, session: Session, board: Board) -> Rights:
        """What the viewer may see of a board."""
        return await session.access.rights(
            lambda: {namespace for kind in KINDS for namespace, _ in board.objects.get(kind, {})}
        )
