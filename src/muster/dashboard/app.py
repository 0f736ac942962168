"""The dashboard as an aiohttp application: every path and who answers it, JSON out.

Every question but the ones about the session needs a session. What is answered has passed `redaction` with the rights
of the viewer. With `moment` in the query a question is about the past (`recording`). Nothing here writes to a cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from muster.dashboard.backstage import Backstage
from muster.dashboard.cluster_handlers import ClusterHandlers
from muster.dashboard.exchange import status_reply
from muster.dashboard.gang_handlers import GangHandlers
from muster.dashboard.past_handlers import PastHandlers
from muster.dashboard.security import guard
from muster.dashboard.sessions import NotSignedIn, Session, Sessions
from muster.dashboard.sign_in import COOKIE, STATIC, SignIn
from muster.dashboard.what_if_runner import Busy
from muster.scheduler.simulation.decision_log import BadLog
from muster.views.failures import ViewFailure

PAGES = ("cluster", "queue", "group", "what-if", "time", "health")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = Callable[[web.Request, Session], Awaitable[web.StreamResponse]]


def application(stage: Backstage) -> web.Application:
    """The application, behind its guard."""
    app = web.Application(middlewares=[guard(stage.hosts, secure=stage.secure)], client_max_size=2 << 20)
    app.add_routes([*_open_routes(SignIn(stage)), *_routes(stage)])
    return app


def _open_routes(sign_in: SignIn) -> Iterable[web.RouteDef | web.StaticDef]:
    """What is served to everybody who reaches the address: nothing of the cluster."""
    yield web.get("/", sign_in.page)
    yield from (web.get(f"/{page}", sign_in.page) for page in PAGES)
    yield web.get("/group/{kind}/{namespace}/{name}", sign_in.page)
    yield web.static("/static", STATIC)
    yield web.get("/livez", sign_in.live)
    yield web.get("/api/session", sign_in.session)
    yield web.post("/api/session", sign_in.sign_in)
    yield web.delete("/api/session", sign_in.sign_out)


def _routes(stage: Backstage) -> Iterable[web.RouteDef]:
    """What is answered within a session."""
    cluster, gang, past = ClusterHandlers(stage), GangHandlers(stage), PastHandlers(stage)
    answers: dict[str, Answer] = {
        "/api/board": cluster.board,
        "/api/changes": cluster.changes,
        "/api/seats": cluster.seats,
        "/api/starts": cluster.starts,
        "/api/node/{name}": cluster.node,
        "/api/group/{kind}/{namespace}/{name}": gang.group,
        "/api/explain/{kind}/{namespace}/{name}": gang.explain,
        "/api/time": past.time,
        "/api/why-here/{line}/{kind}/{namespace}/{name}": past.why_here,
        "/api/health": past.health,
    }
    yield from (web.get(path, _signed_in(stage.sessions, answer)) for path, answer in answers.items())
    yield web.post("/api/what-if", _signed_in(stage.sessions, gang.what_if))


def _signed_in(sessions: Sessions, answer: Answer) -> Handler:
    """A handler that finds the session first, and says in Kubernetes' form what went wrong."""

    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            session = await sessions.find(request.cookies.get(COOKIE, ""))
            return await answer(request, session)
        except NotSignedIn:
            return status_reply(401, "Unauthorized", "sign in first")
        except ViewFailure as failure:
            return status_reply(422, "Invalid", failure.message)
        except BadLog as failure:
            return status_reply(422, "Invalid", f"the recording cannot be read: {failure}")
        except Busy as busy:
            return status_reply(429, "TooManyRequests", str(busy))

    return handler
