"""Authentication: by client certificate (CN is the user, O the groups), static bearer token or service-account token.

A request without credentials is anonymous and may only see the health pages and the version; credentials that prove
nothing are refused everywhere. Tokens are compared by their hash and never kept or shown.
"""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from muster.api.errors import unauthorized
from muster.server.auth.service_accounts import ServiceAccounts
from muster.server.auth.tokens import BadToken
from muster.server.request import ANONYMOUS, User

AUTHENTICATED = "system:authenticated"
OPEN_PATHS = ("/livez", "/readyz", "/healthz", "/version")

Subject = tuple[tuple[tuple[str, str], ...], ...]  # a certificate's subject as the ssl module gives it


class CallerCredentials(NamedTuple):
    """What a request authenticates with: verified certificate subject, Authorization header, impersonation headers."""

    subject: Subject = ()
    authorization: str = ""
    impersonate: tuple[tuple[str, str], ...] = ()


class StaticTokens:
    """Bearer tokens from a file: `token,user,uid[,"group,group"]` a line, as Kubernetes' token files are."""

    def __init__(self, users: Mapping[str, User] | None = None) -> None:
        self._users = {_digest(token): user for token, user in (users or {}).items()}

    @classmethod
    def read(cls, path: Path) -> StaticTokens:
        users: dict[str, User] = {}
        with path.open(newline="") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if not row or row[0].startswith("#"):
                    continue
                if len(row) < 3 or not row[0] or not row[1]:
                    raise ValueError(f"{path}: line {number}: expected token,user,uid[,groups]")
                groups = tuple(group.strip() for group in row[3].split(",")) if len(row) > 3 and row[3] else ()
                users[row[0]] = User(row[1], (*groups, AUTHENTICATED), row[2])
        return cls(users)

    def user(self, token: str) -> User | None:
        return self._users.get(_digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class Authenticator:
    """Finds the user of a request."""

    def __init__(
        self,
        accounts: ServiceAccounts,
        tokens: StaticTokens | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._accounts = accounts
        self._tokens = tokens or StaticTokens()
        self._clock = clock

    def user(self, caller: CallerCredentials, path: str) -> User:
        """The user; anonymous where that is enough; 401 otherwise."""
        if caller.subject:
            user = certificate_user(caller.subject)
            if user is not None:
                return user
        if caller.authorization:
            user = self.bearer(caller.authorization)
            if user is not None:
                return user
            raise unauthorized()
        if path.startswith(OPEN_PATHS) and open_to_all(path):
            return ANONYMOUS
        raise unauthorized()

    def bearer(self, authorization: str) -> User | None:
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        return self._tokens.user(token) or self.service_account(token)

    def service_account(self, token: str, audiences: tuple[str, ...] = ()) -> User | None:
        try:
            return self._accounts.user_of(token, self._clock(), audiences)
        except BadToken:
            return None

    def review(self, token: str, audiences: tuple[str, ...]) -> tuple[User, tuple[str, ...]] | None:
        """The user of a token and the asked audiences that it is good for (TokenReview)."""
        static = self._tokens.user(token)
        if static is not None:
            return static, audiences
        try:
            return self._accounts.review(token, self._clock(), audiences)
        except BadToken:
            return None


def open_to_all(path: str) -> bool:
    """Health pages (with their single checks) and the version."""
    return any(path == page or (path.startswith(page + "/") and page != "/version") for page in OPEN_PATHS)


@lru_cache(maxsize=1024)
def certificate_user(subject: Subject) -> User | None:
    """CN is the user, every O a group; a certificate without CN names nobody."""
    pairs = [pair for part in subject for pair in part]
    name = next((value for key, value in pairs if key == "commonName"), "")
    if not name:
        return None
    groups = tuple(value for key, value in pairs if key == "organizationName")
    return User(name, (*groups, AUTHENTICATED) if AUTHENTICATED not in groups else groups)
