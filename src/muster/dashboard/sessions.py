"""Sessions of browsers: how one begins, and when it ends.

On the viewer's own machine a session begins with the one-time token of the printed address. In a cluster it begins with
a bearer token that the API server knows, and ends with it: the token is reviewed again every minute. Either way a
session lasts eight hours at most. Nothing is written to disk; what a browser holds is a random name of its session.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from muster.api.errors import ApiError
from muster.client.protocol import Client
from muster.dashboard.access import Access, FullAccess, ReviewedAccess, Viewer, review_token

SESSION_SECONDS = 8 * 3600.0
REVIEW_SECONDS = 60.0
MOST_SESSIONS = 1000


class NotSignedIn(Exception):
    """The request has no session, or its session has ended."""


@dataclass(slots=True, eq=False)
class Session:
    """One signed-in browser."""

    name: str
    user: str
    access: Access
    ends: float
    token: str = ""
    reviewed: float = 0.0


class Gate(Protocol):
    """Opens sessions for tokens."""

    asks_for_token: bool

    async def open(self, token: str, now: float) -> Session | None: ...

    async def still_valid(self, session: Session, now: float) -> bool: ...


class OneTimeToken:
    """The gate on the viewer's own machine: a token that opens one session. `renew` makes the next one."""

    asks_for_token = False

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)

    def renew(self) -> str:
        """A new token in place of the one before."""
        self.token = secrets.token_urlsafe(24)
        return self.token

    async def open(self, token: str, now: float) -> Session | None:
        if not self.token or not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        self.token = ""
        return Session(secrets.token_urlsafe(24), "", FullAccess(), now + SESSION_SECONDS)

    async def still_valid(self, session: Session, now: float) -> bool:
        return True


class ReviewedTokens:
    """The gate in a cluster: bearer tokens that the API server knows."""

    asks_for_token = True

    def __init__(self, client: Client, now: Callable[[], float], group: Callable[[], str]) -> None:
        self._client = client
        self._now = now
        self._group = group

    async def open(self, token: str, now: float) -> Session | None:
        viewer = await self._review(token)
        if viewer is None:
            return None
        access = ReviewedAccess(self._client, viewer, self._now, self._group())
        return Session(secrets.token_urlsafe(24), viewer.name, access, now + SESSION_SECONDS, token, now)

    async def still_valid(self, session: Session, now: float) -> bool:
        if now - session.reviewed < REVIEW_SECONDS:
            return True
        viewer = await self._review(session.token)
        session.reviewed = now
        return viewer is not None and viewer.name == session.user

    async def _review(self, token: str) -> Viewer | None:
        try:
            return await review_token(self._client, token)
        except (ApiError, ConnectionError, TimeoutError):
            return None


class Sessions:
    """The open sessions of one dashboard."""

    def __init__(self, gate: Gate, now: Callable[[], float]) -> None:
        self.gate = gate
        self._now = now
        self._open: dict[str, Session] = {}

    async def sign_in(self, token: str) -> Session | None:
        """A new session for a token; None if the token opens none."""
        session = await self.gate.open(token, self._now())
        if session is not None:
            while len(self._open) >= MOST_SESSIONS:
                self._open.pop(next(iter(self._open)))
            self._open[session.name] = session
        return session

    async def find(self, name: str) -> Session:
        """The session of that name, unless it has ended."""
        session, now = self._open.get(name), self._now()
        if session is None:
            raise NotSignedIn
        if now >= session.ends or not await self.gate.still_valid(session, now):
            self._open.pop(name, None)
            raise NotSignedIn
        return session

    def sign_out(self, name: str) -> None:
        self._open.pop(name, None)
