"""The HTTP pages of a running engine: health checks and metrics.

`/livez`, `/readyz` and `/healthz` answer everyone, with `?verbose` check by check. `/metrics` answers everyone on
the plain loopback address; on the secure port the caller's token is reviewed by the API server first.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import generate_latest

from muster.api.errors import ApiError
from muster.client.protocol import Client, Obj
from muster.engine.engine import Engine

Checks = dict[str, str]  # name -> what is wrong, empty when all is well


def liveness(engine: Engine) -> Checks:
    elector = engine.elector
    stuck = elector is not None and elector.leading.is_set() and not elector.may_write()
    return {"ping": "", "leaderElection": "the lease could not be renewed in time" if stuck else ""}


def readiness(engine: Engine) -> Checks:
    """Ready means: everything is listed and watched, whether this process leads or stands by."""
    standing_by = engine.elector is not None and not engine.elector.leading.is_set()
    scheduling = standing_by or engine.ready.is_set()
    return {
        **liveness(engine),
        "informer-sync": "; ".join(engine.trouble()),
        "sched-handler-sync": "" if scheduling else "the first events are still being taken in",
        "shutdown": "process is shutting down" if engine.stopping else "",
    }


class HealthServer:
    """Serves the pages of one engine until it is closed. Without a client no token is reviewed, so none is accepted."""

    def __init__(self, engine: Engine, client: Client | None = None) -> None:
        self._engine = engine
        self._client = client
        self._runners: list[web.AppRunner] = []

    async def listen(self, host: str, port: int, context: ssl.SSLContext | None = None) -> int:
        """Serve on an address, with TLS if a context is given; returns the port."""
        app = web.Application()
        metrics = self._metrics if context is None else self._reviewed(self._metrics)
        app.router.add_get("/metrics", metrics)
        for page, checks in (("livez", liveness), ("readyz", readiness), ("healthz", liveness)):
            app.router.add_get(f"/{page}", self._page(page, checks))
            app.router.add_get(f"/{page}/{{check}}", self._page(page, checks))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, host, port, ssl_context=context).start()
        return int(runner.addresses[0][1])

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        self._runners = []

    def _page(
        self, page: str, checks: Callable[[Engine], Checks]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.Response:
            found = checks(self._engine)
            single = request.match_info.get("check")
            if single is not None:
                if single not in found:
                    raise web.HTTPNotFound(text=f"no such check: {single}\n")
                found = {single: found[single]}
            for excluded in request.query.getall("exclude", []):
                found.pop(excluded, None)
            failed = any(found.values())
            if not failed and "verbose" not in request.query:
                return web.Response(text="ok")
            lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in found.items()]
            lines.append(f"{page} check {'failed' if failed else 'passed'}")
            return web.Response(status=500 if failed else 200, text="\n".join(lines) + "\n")

        return answer

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        body = generate_latest(self._engine.metrics.registry)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    def _reviewed(
        self, page: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not token:
                raise web.HTTPUnauthorized(text="a bearer token is needed here\n")
            if not await self._may_get(token.strip(), request.path):
                raise web.HTTPForbidden(text=f"not allowed to get {request.path}\n")
            return await page(request)

        return answer

    async def _may_get(self, token: str, path: str) -> bool:
        """Ask the API server whose token this is and whether that user may get the path."""
        if self._client is None:
            return False
        try:
            user = await self._review("authentication.k8s.io", "TokenReview", {"token": token})
            if not user.get("authenticated"):
                return False
            who: Obj = user.get("user") or {}
            asked: Obj = {"user": who.get("username"), "groups": who.get("groups") or [], "uid": who.get("uid") or ""}
            asked["nonResourceAttributes"] = {"path": path, "verb": "get"}
            allowed = await self._review("authorization.k8s.io", "SubjectAccessReview", asked)
        except (ApiError, ConnectionError, TimeoutError):
            return False
        return bool(allowed.get("allowed"))

    async def _review(self, group: str, kind: str, spec: Obj) -> Obj:
        assert self._client is not None
        path = f"/apis/{group}/v1/{kind.lower()}s"
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        return (await self._client.request("POST", path, body)).get("status") or {}
