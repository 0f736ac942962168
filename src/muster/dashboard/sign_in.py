"""The page itself, and how a viewer gets a session: by the token of the address, or by a bearer token."""

from __future__ import annotations

from pathlib import Path

import msgspec
from aiohttp import web

from muster import __version__
from muster.dashboard.backstage import Backstage
from muster.dashboard.exchange import json_reply, status_reply
from muster.dashboard.sessions import SESSION_SECONDS, NotSignedIn, Session

COOKIE = "muster-session"
STATIC = Path(__file__).parent / "static"


class SignIn:
    """Handlers that need no session."""

    def __init__(self, stage: Backstage) -> None:
        self._stage = stage
        self._shell = (STATIC / "index.html").read_bytes()

    async def page(self, request: web.Request) -> web.StreamResponse:
        token = request.query.get("token")
        if token is not None and not self._stage.sessions.gate.asks_for_token:
            session = await self._stage.sessions.sign_in(token)
            answer = web.Response(status=303, headers={"Location": request.path})
            if session is not None:
                self._set_cookie(answer, session)
            return answer
        return web.Response(
            body=self._shell, content_type="text/html", charset="utf-8", headers={"Cache-Control": "no-cache"}
        )

    async def live(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def session(self, request: web.Request) -> web.StreamResponse:
        asks = self._stage.sessions.gate.asks_for_token
        try:
            session = await self._stage.sessions.find(request.cookies.get(COOKIE, ""))
        except NotSignedIn:
            return json_reply({"signedIn": False, "asksForToken": asks, "version": __version__})
        self._stage.source.start()
        return json_reply(
            {
                "signedIn": True,
                "asksForToken": asks,
                "user": session.user,
                "version": __version__,
                "source": self._stage.source.status,
                "recording": str(self._stage.past.path.name) if self._stage.past is not None else None,
            }
        )

    async def sign_in(self, request: web.Request) -> web.StreamResponse:
        body = await request.content.read(64 << 10)
        try:
            token = str(msgspec.json.decode(body, type=dict[str, str])["token"]).strip()
        except (msgspec.DecodeError, KeyError):
            return status_reply(400, "BadRequest", "token: a JSON object with a token is needed")
        session = await self._stage.sessions.sign_in(token) if token else None
        if session is None:
            return status_reply(401, "Unauthorized", "the API server does not know this token")
        answer = json_reply({"signedIn": True, "user": session.user})
        self._set_cookie(answer, session)
        return answer

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        self._stage.sessions.sign_out(request.cookies.get(COOKIE, ""))
        answer = json_reply({"signedIn": False})
        answer.del_cookie(COOKIE, path="/")
        return answer

    def _set_cookie(self, answer: web.Response, session: Session) -> None:
        age = int(SESSION_SECONDS)
        answer.set_cookie(
            COOKIE, session.name, max_age=age, path="/", httponly=True, samesite="Strict", secure=self._stage.secure
        )
