"""Authentication (401), impersonation and authorization (403) of every request from outside, before the core answers.

No HTTP here: the adapter passes a request and the caller's credentials, first without the body (`admit`), so that no
body is read for a caller who has no right to send it. In-process clients of the control plane call the core directly.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from muster.server.auth.actions import action_of
from muster.server.auth.authentication import Authenticator, CallerCredentials
from muster.server.auth.impersonation import impersonated
from muster.server.auth.rbac import Authorizer, Tables
from muster.server.auth.rules import Action
from muster.server.auth.tokens import TokenSigner
from muster.server.bodies import media_type
from muster.server.request import APPLY_PATCH, Request, Response, WatchStream


class Core(Protocol):
    """The API server that answers what was admitted."""

    async def handle(self, request: Request) -> Response | WatchStream: ...


class Gate:
    """Authenticates and authorizes every request from outside this process."""

    def __init__(
        self,
        core: Core,
        tables: Tables,
        authenticator: Authenticator,
        authorizer: Authorizer,
        signer: TokenSigner,
        creates_on_update: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self._core = core
        self._tables = tables
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._creates_on_update = creates_on_update  # (group, plural) of kinds that a PUT may create
        self._pages = {
            "/openid/v1/jwks": ("application/jwk-set+json", signer.key_set),
            "/.well-known/openid-configuration": ("application/json", signer.discovery),
        }

    def admit(self, request: Request, caller: CallerCredentials) -> None:
        """Let a request in, with its user set, or raise 401 or 403. Looks at the head of the request only."""
        user = self._authenticator.user(caller, request.path)
        if caller.impersonate:
            user = impersonated(user, caller.impersonate, self._authorizer)
        request.user = user
        action = action_of(request)
        self._authorizer.check(user, action)
        if action.verb in ("patch", "update"):
            self._check_create(request, action)

    async def answer(self, request: Request) -> Response | WatchStream:
        """Answer a request that was let in."""
        page = self._pages.get(request.path)
        if page is not None:
            content_type, make = page
            return Response(200, msgspec.json.encode(make()), content_type, {"Cache-Control": "public, max-age=3600"})
        return await self._core.handle(request)

    def _check_create(self, request: Request, action: Action) -> None:
        """A patch or update that would create the object needs the right to create as well."""
        if action.subresource or not self._may_create(request, action):
            return
        create = action._replace(verb="create", name="")
        if self._authorizer.allows(request.user, create):
            return
        table = f"{action.resource}.{action.group}" if action.group else action.resource
        place = "" if action.resource == "namespaces" else action.namespace
        if (place, action.name) not in self._tables.table(table).records:
            self._authorizer.check(request.user, create._replace(name=action.name))

    def _may_create(self, request: Request, action: Action) -> bool:
        if action.verb == "patch":
            return media_type(request) == APPLY_PATCH
        return (action.group, action.resource) in self._creates_on_update
