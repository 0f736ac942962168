"""The pages' questions as an aiohttp application: one method for each path, JSON out.

Every question but the ones about the session needs a session. What is answered has passed `redaction` with the rights
of the viewer. With `moment` in the query a question is about the past (`recording`). Nothing here writes to a cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from muster import __version__
from muster.api import quantity
from muster.api.errors import ApiError
from muster.api.resources import EVENTS
from muster.client.protocol import Client, Obj
from muster.dashboard import redaction
from muster.dashboard.access import Rights
from muster.dashboard.board import Board
from muster.dashboard.history import BOUNDS
from muster.dashboard.recording import Recording
from muster.dashboard.security import HEADERS, guard
from muster.dashboard.sessions import SESSION_SECONDS, NotSignedIn, Session, Sessions
from muster.dashboard.source import BoardHolder, Source
from muster.dashboard.what_if_runner import MOST_BYTES, Busy, WhatIfRunner
from muster.scheduler.explain.explanation import Explanation
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.simulation.decision_log import BadLog
from muster.views.explain import explain_with
from muster.views.failures import ViewFailure
from muster.views.group import GroupDetail, Moment, group_detail
from muster.views.node import pods_on
from muster.views.queue import MOST_EXPECTED, rows
from muster.views.topology import GPU, default_pod, largest_gangs

COOKIE = "muster-session"
PAGES = ("cluster", "queue", "group", "what-if", "time", "health")
STATIC = Path(__file__).parent / "static"
KEEP_ALIVE_SECONDS = 15.0
MOST_EVENTS = 200
LOOKS_FOR_STARTS = 200_000  # at pods, to estimate starts: about a second
GROUP_KINDS = ("PodGroup", "CompositePodGroup")
KINDS = (*GROUP_KINDS, "Pod")

Answer = Callable[[web.Request, Session], Awaitable[web.StreamResponse]]


class Backstage(NamedTuple):
    """What the application stands on. Without a client there are no events of objects to show."""

    source: Source
    sessions: Sessions
    past: Recording | None = None
    client: Client | None = None
    hosts: tuple[str, ...] = ()
    secure: bool = False


class Dashboard:
    """The handlers."""

    def __init__(self, backstage: Backstage) -> None:
        self._source = backstage.source
        self._sessions = backstage.sessions
        self._past = backstage.past
        self._client = backstage.client
        self._secure = backstage.secure
        self._what_if = WhatIfRunner()
        self._shell = (STATIC / "index.html").read_bytes()

    def routes(self) -> Iterable[web.RouteDef | web.StaticDef]:
        """Every path that is served."""
        get, post = web.get, web.post
        yield get("/", self._page)
        yield from (get(f"/{page}", self._page) for page in PAGES)
        yield get("/group/{kind}/{namespace}/{name}", self._page)
        yield web.static("/static", STATIC)
        yield get("/livez", self._live)
        yield get("/api/session", self._session)
        yield post("/api/session", self._sign_in)
        yield web.delete("/api/session", self._sign_out)
        yield get("/api/board", self._signed_in(self._board))
        yield get("/api/changes", self._signed_in(self._changes))
        yield get("/api/seats", self._signed_in(self._seats))
        yield get("/api/starts", self._signed_in(self._starts))
        yield get("/api/node/{name}", self._signed_in(self._node))
        yield get("/api/group/{kind}/{namespace}/{name}", self._signed_in(self._group))
        yield get("/api/explain/{kind}/{namespace}/{name}", self._signed_in(self._explain))
        yield post("/api/what-if", self._signed_in(self._ask_what_if))
        yield get("/api/time", self._signed_in(self._time))
        yield get("/api/why-here/{line}/{kind}/{namespace}/{name}", self._signed_in(self._why_here))
        yield get("/api/health", self._signed_in(self._health))

    # --- pages and sessions ------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.StreamResponse:
        token = request.query.get("token")
        if token is not None and not self._sessions.gate.asks_for_token:
            session = await self._sessions.sign_in(token)
            answer = web.Response(status=303, headers={"Location": request.path})
            if session is not None:
                self._set_cookie(answer, session)
            return answer
        return web.Response(
            body=self._shell, content_type="text/html", charset="utf-8", headers={"Cache-Control": "no-cache"}
        )

    async def _live(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _session(self, request: web.Request) -> web.StreamResponse:
        asks = self._sessions.gate.asks_for_token
        try:
            session = await self._sessions.find(request.cookies.get(COOKIE, ""))
        except NotSignedIn:
            return _json({"signedIn": False, "asksForToken": asks, "version": __version__})
        self._source.start()
        return _json(
            {
                "signedIn": True,
                "asksForToken": asks,
                "user": session.user,
                "version": __version__,
                "source": self._source.status,
                "recording": str(self._past.path.name) if self._past is not None else None,
            }
        )

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        body = await request.content.read(64 << 10)
        try:
            token = str(msgspec.json.decode(body, type=dict[str, str])["token"]).strip()
        except (msgspec.DecodeError, KeyError):
            return _status(400, "BadRequest", "token: a JSON object with a token is needed")
        session = await self._sessions.sign_in(token) if token else None
        if session is None:
            return _status(401, "Unauthorized", "token: the API server does not know this token")
        answer = _json({"signedIn": True, "user": session.user})
        self._set_cookie(answer, session)
        return answer

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        self._sessions.sign_out(request.cookies.get(COOKIE, ""))
        answer = _json({"signedIn": False})
        answer.del_cookie(COOKIE, path="/")
        return answer

    def _set_cookie(self, answer: web.Response, session: Session) -> None:
        age = int(SESSION_SECONDS)
        answer.set_cookie(
            COOKIE, session.name, max_age=age, path="/", httponly=True, samesite="Strict", secure=self._secure
        )

    def _signed_in(self, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handler(request: web.Request) -> web.StreamResponse:
            try:
                session = await self._sessions.find(request.cookies.get(COOKIE, ""))
                return await answer(request, session)
            except NotSignedIn:
                return _status(401, "Unauthorized", "sign in first")
            except ViewFailure as failure:
                return _status(422, "Invalid", failure.message)
            except BadLog as failure:
                return _status(422, "Invalid", f"the recording cannot be read: {failure}")
            except Busy as busy:
                return _status(429, "TooManyRequests", str(busy))

        return handler

    # --- the board ---------------------------------------------------------------------------------

    async def _holder(self, request: web.Request, session: Session) -> BoardHolder:
        moment = request.query.get("moment", "")
        if moment and self._past is not None:
            return await self._past.at(moment, session.name)
        return await self._source.at(moment, session.name)

    async def _rights(self, session: Session, board: Board) -> Rights:
        return await session.access.rights(
            lambda: {namespace for kind in KINDS for namespace, _ in board.objects.get(kind, {})}
        )

    async def _board(self, request: web.Request, session: Session) -> web.StreamResponse:
        holder = await self._holder(request, session)
        rights = await self._rights(session, holder.board)
        async with holder.lock:
            body = holder.messages.since(_number(request.query.get("since", "0")), rights)
        answer = web.Response(body=body, content_type="application/json")
        answer.enable_compression()
        return answer

    async def _changes(self, request: web.Request, session: Session) -> web.StreamResponse:
        """Differences as server-sent events, for as long as the page is open and the session lasts."""
        holder = await self._source.at("", session.name)
        version = _number(request.headers.get("Last-Event-ID") or request.query.get("since", "0"))
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
            status = msgspec.json.encode(self._source.status)
            if status != told:
                told = status
                await stream.write(b"event: status\ndata: " + status + b"\n\n")
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    await self._source.changed(version)
            except TimeoutError:
                await stream.write(b": still here\n\n")
                await self._sessions.find(session.name)
                continue
            await self._sessions.find(session.name)
            rights = await self._rights(session, holder.board)
            async with holder.lock:
                body, version = holder.messages.since(version, rights), holder.board.version
            await stream.write(b"id: %d\ndata: " % version + body + b"\n\n")

    async def _seats(self, request: web.Request, session: Session) -> web.StreamResponse:
        """Seats of a pod on every node, and the largest gang of it at each level."""
        holder = await self._holder(request, session)
        rights = await self._rights(session, holder.board)
        if not rights.may_see("Node"):
            return _forbidden("nodes")
        asked = _requests(request)

        def count(board: Board) -> dict[str, Any]:
            view = board.scheduler.view()
            if not view.has_nodes:
                return {"pod": asked, "largest": {}, "total": 0, "seats": {}}
            pod = asked or default_pod(view)
            seats = view.seats(pod)
            found = {name: int(seats[slot]) for slot, name in enumerate(view.node_names) if name and seats[slot]}
            largest = largest_gangs(view, board.levels, seats)
            return {"pod": pod, "largest": largest, "total": int(seats.sum()), "seats": found}

        answer = _json(await holder.ask(count))
        answer.enable_compression()
        return answer

    async def _starts(self, request: web.Request, session: Session) -> web.StreamResponse:
        """When the first of the queue are expected to start; fewer of them in a cluster of very many pods."""
        holder = await self._holder(request, session)
        rights = await self._rights(session, holder.board)
        pods = len(holder.board.objects.get("Pod", {}))
        most = min(MOST_EXPECTED, LOOKS_FOR_STARTS // max(1, pods))
        found = await holder.ask(lambda board: rows(board.scheduler, most=most))
        return _json(redaction.queue_rows(found, rights))

    async def _node(self, request: web.Request, session: Session) -> web.StreamResponse:
        name = request.match_info["name"]
        holder = await self._holder(request, session)
        rights = await self._rights(session, holder.board)
        if not rights.may_see("Node"):
            return _forbidden("nodes")
        node = holder.board.objects.get("Node", {}).get(("", name))
        if node is None:
            return _status(404, "NotFound", f'node "{name}" does not exist')
        pods = await holder.ask(lambda board: pods_on(board.scheduler.view(), name))
        shown = [pod for pod in pods if rights.may_see("Pod", pod.namespace)]
        taints = [f"{t.key}{'=' + t.value if t.value else ''}:{t.effect}" for t in node.spec.taints or ()]
        labels = node.metadata.labels or {}
        return _json(
            {"name": name, "labels": labels, "taints": taints, "pods": shown, "hidden": len(pods) - len(shown)}
        )

    # --- one gang ----------------------------------------------------------------------------------

    async def _group(self, request: web.Request, session: Session) -> web.StreamResponse:
        kind, namespace, name = _object(request, GROUP_KINDS)
        holder = await self._holder(request, session)
        rights = await self._rights(session, holder.board)
        if not rights.may_see_gang(EntityKey(kind, namespace, name)):
            return _forbidden(f"{kind.lower()}s", namespace)
        found = await holder.ask(lambda board: group_detail(board.scheduler.view(), kind, namespace, name))
        if "moment" not in request.query and rights.may_see("Event", namespace):
            found = await self._with_events(found)
        answer = _json(found)
        answer.enable_compression()
        return answer

    async def _with_events(self, found: GroupDetail) -> GroupDetail:
        """The same with what events say about its groups."""
        if self._client is None:
            return found
        names = {row.name for row in found.rows}
        try:
            listed = await self._client.list(EVENTS, found.namespace, limit=5000)
        except (ApiError, ConnectionError, TimeoutError):
            return found
        moments = [_moment(event) for event in listed.items if _regards(event, names)]
        timeline = sorted((*found.timeline, *moments[-MOST_EVENTS:]), key=lambda moment: moment.at)
        return msgspec.structs.replace(found, timeline=tuple(timeline))

    async def _explain(self, request: web.Request, session: Session) -> web.StreamResponse:
        kind, namespace, name = _object(request, KINDS)
        holder = await self._holder(request, session)
        rights = await self._rights(session, holder.board)
        if not rights.may_see_gang(EntityKey(kind, namespace, name)):
            return _forbidden(f"{kind.lower()}s", namespace)

        def explain(board: Board) -> Explanation:
            return explain_with(board.scheduler, kind, namespace, name, changeable=board.changeable)

        found = await holder.ask(explain)
        return _json(redaction.explanation(found, rights))

    # --- what if -----------------------------------------------------------------------------------

    async def _ask_what_if(self, request: web.Request, session: Session) -> web.StreamResponse:
        manifests = await _body(request, MOST_BYTES)
        if manifests is None:
            return _status(413, "RequestEntityTooLarge", f"manifests: at most {MOST_BYTES >> 20} MiB can be tried")
        holder = await self._holder(request, session)
        rights = await self._rights(session, holder.board)
        async with holder.lock:
            snapshot = holder.board.snapshot()
        namespace = request.query.get("namespace") or "default"
        found = await self._what_if.run(session.name, snapshot, manifests, namespace)
        explanations = [redaction.explanation(each, rights) for each in found.explanations]
        return _json({"answer": redaction.answer(found.answer, rights), "explanations": explanations})

    # --- the past ----------------------------------------------------------------------------------

    async def _time(self, request: web.Request, session: Session) -> web.StreamResponse:
        past = self._past
        if past is None:
            return _json({"recording": None, "start": 0.0, "end": 0.0, "times": [], "steps": []})
        await past.ready()
        found, times = past.steps, past.times()
        rights = await session.access.rights(lambda: {step.namespace for step in found})
        steps = [step for step in found if rights.may_see(step.kind, step.namespace)]
        answer = _json(
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

    async def _why_here(self, request: web.Request, session: Session) -> web.StreamResponse:
        kind, namespace, name = _object(request, GROUP_KINDS)
        if self._past is None:
            return _status(404, "NotFound", "there is no recording")
        rights = await session.access.rights(lambda: [namespace])
        if not rights.may_see_gang(EntityKey(kind, namespace, name)):
            return _forbidden(f"{kind.lower()}s", namespace)
        line = _number(request.match_info["line"])
        return _json(await self._past.why_here(line, EntityKey(kind, namespace, name)))

    # --- health ------------------------------------------------------------------------------------

    async def _health(self, request: web.Request, session: Session) -> web.StreamResponse:
        holder = await self._holder(request, session)
        rights = await self._rights(session, holder.board)
        past = self._past if self._source is self._past else None
        history = await past.history() if past is not None else holder.history
        evictions = [each for each in history.evictions if rights.may_see("Pod", each.namespace)]
        pending = list(holder.board.scheduler.view().queue_entries())
        return _json(
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
                "status": self._source.status,
                **(await self._source.details()),
            }
        )


def application(backstage: Backstage) -> web.Application:
    """The application, behind its guard."""
    app = web.Application(middlewares=[guard(backstage.hosts, secure=backstage.secure)], client_max_size=2 << 20)
    app.add_routes(list(Dashboard(backstage).routes()))
    return app


# --- requests and answers ------------------------------------------------------------------------------


def _json(data: Any, status: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-store"}
    return web.Response(body=msgspec.json.encode(data), status=status, content_type="application/json", headers=headers)


def _status(code: int, reason: str, message: str) -> web.Response:
    """A failure in Kubernetes' form."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return _json({**status, "reason": reason, "message": message, "code": code}, code)


def _forbidden(what: str, namespace: str = "") -> web.Response:
    where = f' in namespace "{namespace}"' if namespace else ""
    return _status(403, "Forbidden", f"you may not list {what}{where}")


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise ViewFailure(f"{text[:20]!r} is no number")
    return int(text)


def _object(request: web.Request, kinds: tuple[str, ...]) -> tuple[str, str, str]:
    kind, namespace, name = (request.match_info[part] for part in ("kind", "namespace", "name"))
    if kind not in kinds:
        raise ViewFailure(f"kind: {kind[:60]!r} is none of {', '.join(kinds)}")
    return kind, namespace, name


def _requests(request: web.Request) -> dict[str, str]:
    """The requests of the pod whose seats are counted, as the query has them."""
    asked: dict[str, str] = {}
    for field, resource in (("cpu", "cpu"), ("memory", "memory"), ("gpu", GPU)):
        amount = request.query.get(field, "").strip()
        if amount:
            try:
                if quantity.milli(amount) <= 0:
                    raise ValueError(amount)
            except ValueError:
                raise ViewFailure(f"{field}: {amount[:40]!r} is no amount; for instance 4, 500m, 64Gi") from None
            asked[resource] = amount
    return asked


async def _body(request: web.Request, most: int) -> bytes | None:
    """The body of a request; None if it is larger than allowed."""
    if (request.content_length or 0) > most:
        return None
    data = bytearray()
    async for part in request.content.iter_chunked(64 << 10):
        data += part
        if len(data) > most:
            return None
    return bytes(data)


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
