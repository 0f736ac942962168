"""What is asked about the past: the steps of a recording, why a gang was placed there, and health over time."""

from __future__ import annotations

import time

from aiohttp import web

from muster.dashboard.backstage import Backstage
from muster.dashboard.exchange import GROUP_KINDS, forbidden, json_reply, number, object_of, status_reply
from muster.dashboard.history import BOUNDS
from muster.dashboard.sessions import Session
from muster.scheduler.interface.keys import EntityKey


class PastHandlers:
    """Handlers about what was."""

    def __init__(self, stage: Backstage) -> None:
        self._stage = stage

    async def time(self, request: web.Request, session: Session) -> web.StreamResponse:
        past = self._stage.past
        if past is None:
            return json_reply({"recording": None, "start": 0.0, "end": 0.0, "times": [], "steps": []})
        await past.ready()
        found, times = past.steps, past.times()
        rights = await session.access.rights(lambda: {step.namespace for step in found})
        steps = [step for step in found if rights.may_see(step.kind, step.namespace)]
        answer = json_reply(
            {
                "recording": past.path.name,
                "start": times[0][1] if times else 0.0,
                "end": times[-1][1] if times else 0.0,
                "times": times,
                "steps": steps,
            }
        )
        answer.enable_compression()
        return answer

    async def why_here(self, request: web.Request, session: Session) -> web.StreamResponse:
        kind, namespace, name = object_of(request, GROUP_KINDS)
        if self._stage.past is None:
            return status_reply(404, "NotFound", "there is no recording")
        rights = await session.access.rights(lambda: [namespace])
        if not rights.may_see_gang(EntityKey(kind, namespace, name)):
            return forbidden(f"{kind.lower()}s", namespace)
        line = number(request.match_info["line"])
        return json_reply(await self._stage.past.why_here(line, EntityKey(kind, namespace, name)))

    async def health(self, request: web.Request, session: Session) -> web.StreamResponse:
        holder = await self._stage.holder(request, session)
        rights = await self._stage.rights(session, holder.board)
        past = self._stage.past if self._stage.source is self._stage.past else None
        history = await past.history() if past is not None else holder.history
        evictions = [each for each in history.evictions if rights.may_see("Pod", each.namespace)]
        pending = list(holder.board.scheduler.view().queue_entries())
        return json_reply(
            {
                "now": time.time(),
                "samples": history.samples,
                "verdicts": history.verdicts,
                "waits": {"bounds": BOUNDS, "counts": history.waits},
                "evictions": evictions[-50:],
                "evicted": history.evicted,
                "pendingPods": sum(entry.pods for entry in pending),
                "pendingGroups": sum(1 for entry in pending if entry.type == "podgroup"),
                "nodes": len(holder.board.nodes.rows),
                "unhealthy": sum(1 for row in holder.board.nodes.rows.values() if row.health),
                "status": self._stage.source.status,
                **(await self._stage.source.details()),
            }
        )
