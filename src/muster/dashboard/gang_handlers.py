"""What is asked about one gang: its tree and its past, why it waits, and what if one were submitted."""

from __future__ import annotations

import msgspec
from aiohttp import web

from muster.api.errors import ApiError
from muster.api.resources import EVENTS
from muster.client.protocol import Obj
from muster.dashboard import redaction
from muster.dashboard.backstage import Backstage
from muster.dashboard.board import Board
from muster.dashboard.exchange import GROUP_KINDS, KINDS, body_of, forbidden, json_reply, object_of, status_reply
from muster.dashboard.sessions import Session
from muster.dashboard.what_if_runner import MOST_BYTES, WhatIfRunner
from muster.scheduler.explain.explanation import Explanation
from muster.scheduler.interface.keys import EntityKey
from muster.views.explain import explain_with
from muster.views.group import GroupDetail, Moment, group_detail

MOST_EVENTS = 200


class GangHandlers:
    """Handlers about one gang."""

    def __init__(self, stage: Backstage) -> None:
        self._stage = stage
        self._what_if = WhatIfRunner()

    async def group(self, request: web.Request, session: Session) -> web.StreamResponse:
        kind, namespace, name = object_of(request, GROUP_KINDS)
        holder = await self._stage.holder(request, session)
        rights = await self._stage.rights(session, holder.board)
        if not rights.may_see_gang(EntityKey(kind, namespace, name)):
            return forbidden(f"{kind.lower()}s", namespace)
        found = await holder.ask(lambda board: group_detail(board.scheduler.view(), kind, namespace, name))
        if "moment" not in request.query and rights.may_see("Event", namespace):
            found = await self._with_events(found)
        answer = json_reply(found)
        answer.enable_compression()
        return answer

    async def _with_events(self, found: GroupDetail) -> GroupDetail:
        """The same with what events say about its groups."""
        if self._stage.client is None:
            return found
        names = {row.name for row in found.rows}
        try:
            listed = await self._stage.client.list(EVENTS, found.namespace, limit=5000)
        except (ApiError, ConnectionError, TimeoutError):
            return found
        moments = [_moment(event) for event in listed.items if _regards(event, names)]
        timeline = sorted((*found.timeline, *moments[-MOST_EVENTS:]), key=lambda moment: moment.at)
        return msgspec.structs.replace(found, timeline=tuple(timeline))

    async def explain(self, request: web.Request, session: Session) -> web.StreamResponse:
        kind, namespace, name = object_of(request, KINDS)
        holder = await self._stage.holder(request, session)
        rights = await self._stage.rights(session, holder.board)
        if not rights.may_see_gang(EntityKey(kind, namespace, name)):
            return forbidden(f"{kind.lower()}s", namespace)

        def explain(board: Board) -> Explanation:
            return explain_with(board.scheduler, kind, namespace, name, changeable=board.changeable)

        found = await holder.ask(explain)
        return json_reply(redaction.explanation(found, rights))

    async def what_if(self, request: web.Request, session: Session) -> web.StreamResponse:
        manifests = await body_of(request, MOST_BYTES)
        if manifests is None:
            return status_reply(413, "RequestEntityTooLarge", f"manifests: at most {MOST_BYTES >> 20} MiB can be tried")
        holder = await self._stage.holder(request, session)
        rights = await self._stage.rights(session, holder.board)
        async with holder.lock:
            snapshot = holder.board.snapshot()
        namespace = request.query.get("namespace") or "default"
        found = await self._what_if.run(session.name, snapshot, manifests, namespace)
        explanations = [redaction.explanation(each, rights) for each in found.explanations]
        return json_reply({"answer": redaction.answer(found.answer, rights), "explanations": explanations})


def _regards(event: Obj, names: set[str]) -> bool:
    about: Obj = event.get("regarding") or {}
    return about.get("kind") in GROUP_KINDS and about.get("name") in names


def _moment(event: Obj) -> Moment:
    about: Obj = event.get("regarding") or {}
    series: Obj = event.get("series") or {}
    at = series.get("lastObservedTime") or event.get("eventTime") or event.get("deprecatedLastTimestamp") or ""
    good = None if event.get("type") == "Normal" else False
    what = str(event.get("reason") or "Event")
    return Moment(str(at), f"{about.get('kind')}/{about.get('name')}", what, str(event.get("note") or ""), good)
