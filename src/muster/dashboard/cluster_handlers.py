"""What is asked about a whole cluster: the board, its changes, seats, expected starts, one node."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from muster.dashboard import redaction
from muster.dashboard.backstage import Backstage
from muster.dashboard.board import Board
from muster.dashboard.exchange import asked_pod, forbidden, json_reply, number, status_reply
from muster.dashboard.security import HEADERS
from muster.dashboard.sessions import Session
from muster.views.node import pods_on
from muster.views.queue import MOST_EXPECTED, rows
from muster.views.topology import default_pod, largest_gangs

KEEP_ALIVE_SECONDS = 15.0
LOOKS_FOR_STARTS = 200_000  # at pods, to estimate starts: about a second


class ClusterHandlers:
    """Handlers about the cluster as it is now, or was at a moment."""

    def __init__(self, stage: Backstage) -> None:
        self._stage = stage

    async def board(self, request: web.Request, session: Session) -> web.StreamResponse:
        holder = await self._stage.holder(request, session)
        rights = await self._stage.rights(session, holder.board)
        async with holder.lock:
            body = holder.messages.since(number(request.query.get("since", "0")), rights)
        answer = web.Response(body=body, content_type="application/json")
        answer.enable_compression()
        return answer

    async def changes(self, request: web.Request, session: Session) -> web.StreamResponse:
        """Differences as server-sent events, for as long as the page is open and the session lasts."""
        holder = await self._stage.source.at("", session.name)
        version = number(request.headers.get("Last-Event-ID") or request.query.get("since", "0"))
        stream = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
                **HEADERS,
            }
        )
        await stream.prepare(request)
        told = b""
        while True:
            status = msgspec.json.encode(self._stage.source.status)
            if status != told:
                told = status
                await stream.write(b"event: status\ndata: " + status + b"\n\n")
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    await self._stage.source.changed(version)
            except TimeoutError:
                await stream.write(b": still here\n\n")
                await self._stage.sessions.find(session.name)
                continue
            await self._stage.sessions.find(session.name)
            rights = await self._stage.rights(session, holder.board)
            async with holder.lock:
                body, version = holder.messages.since(version, rights), holder.board.version
            await stream.write(b"id: %d\ndata: " % version + body + b"\n\n")

    async def seats(self, request: web.Request, session: Session) -> web.StreamResponse:
        """Seats of a pod on every node, and the largest gang of it at each level."""
        holder = await self._stage.holder(request, session)
        rights = await self._stage.rights(session, holder.board)
        if not rights.may_see("Node"):
            return forbidden("nodes")
        asked = asked_pod(request)

        def count(board: Board) -> dict[str, Any]:
            view = board.scheduler.view()
            if not view.has_nodes:
                return {"pod": asked, "largest": {}, "total": 0, "seats": {}}
            pod = asked or default_pod(view)
            seats = view.seats(pod)
            found = {name: int(seats[slot]) for slot, name in enumerate(view.node_names) if name and seats[slot]}
            largest = largest_gangs(view, board.levels, seats)
            return {"pod": pod, "largest": largest, "total": int(seats.sum()), "seats": found}

        answer = json_reply(await holder.ask(count))
        answer.enable_compression()
        return answer

    async def starts(self, request: web.Request, session: Session) -> web.StreamResponse:
        """When the first of the queue are expected to start; fewer of them in a cluster of very many pods."""
        holder = await self._stage.holder(request, session)
        rights = await self._stage.rights(session, holder.board)
        pods = len(holder.board.objects.get("Pod", {}))
        most = min(MOST_EXPECTED, LOOKS_FOR_STARTS // max(1, pods))
        found = await holder.ask(lambda board: rows(board.scheduler, most=most))
        return json_reply(redaction.queue_rows(found, rights))

    async def node(self, request: web.Request, session: Session) -> web.StreamResponse:
        name = request.match_info["name"]
        holder = await self._stage.holder(request, session)
        rights = await self._stage.rights(session, holder.board)
        if not rights.may_see("Node"):
            return forbidden("nodes")
        node = holder.board.objects.get("Node", {}).get(("", name))
        if node is None:
            return status_reply(404, "NotFound", f'node "{name}" does not exist')
        pods = await holder.ask(lambda board: pods_on(board.scheduler.view(), name))
        shown = [pod for pod in pods if rights.may_see("Pod", pod.namespace)]
        taints = [f"{t.key}{'=' + t.value if t.value else ''}:{t.effect}" for t in node.spec.taints or ()]
        labels = node.metadata.labels or {}
        return json_reply(
            {"name": name, "labels": labels, "taints": taints, "pods": shown, "hidden": len(pods) - len(shown)}
        )
