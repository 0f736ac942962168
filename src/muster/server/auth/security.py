"""Assembles authentication, RBAC, tokens, reviews and the escalation check over one store.

`answers` and `guarded` give the served kinds their reviews and checks, `accounts.issue` is the core's hook for
TokenRequest, and `gate` is what the HTTP adapter passes every request to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from muster.server.auth.authentication import Authenticator, StaticTokens
from muster.server.auth.bootstrap_roles import NODE_RULES
from muster.server.auth.certificate_signers import GROUP as CERTIFICATES
from muster.server.auth.certificate_signers import CertificateSigners
from muster.server.auth.escalation import Escalation
from muster.server.auth.gate import Core, Gate
from muster.server.auth.node_authorizer import NodeAuthorizer
from muster.server.auth.rbac import GROUP, Authorizer, Tables
from muster.server.auth.reviews import Reviews
from muster.server.auth.rules import Action
from muster.server.auth.service_accounts import ServiceAccounts
from muster.server.auth.tokens import TokenSigner
from muster.server.registry import Registry
from muster.server.request import User
from muster.server.resources.kind import Answer, Kind
from muster.server.resources.rules.policy_expressions import Decision


class Security:
    """Everything about identity and rights over one store."""

    def __init__(
        self,
        tables: Tables,
        signer: TokenSigner,
        tokens: StaticTokens | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tables = tables
        self._signer = signer
        self.accounts = ServiceAccounts(signer, tables, clock)
        self.authenticator = Authenticator(self.accounts, tokens, clock)
        self.authorizer = Authorizer(tables, NodeAuthorizer(tables, NODE_RULES))
        self._reviews = Reviews(self.authenticator, self.authorizer)
        self._escalation = Escalation(self.authorizer)
        self._signers = CertificateSigners(self.authorizer)

    @property
    def answers(self) -> dict[str, Answer]:
        """Who answers each review, by its plural."""
        reviews = self._reviews
        return {
            "tokenreviews": reviews.token,
            "selfsubjectreviews": reviews.myself,
            "subjectaccessreviews": reviews.subject_access,
            "selfsubjectaccessreviews": reviews.self_access,
            "localsubjectaccessreviews": reviews.local_access,
            "selfsubjectrulesreviews": reviews.self_rules,
        }

    def decide(self, fields: dict[str, Any], verb: str) -> Decision:
        """What `authorizer` in an expression answers."""
        user = User(fields["user"].get("username", ""), tuple(fields["user"].get("groups") or ()))
        if path := fields.get("path"):
            action = Action(verb, path=path)
        else:
            names = ("group", "resource", "subresource", "namespace", "name")
            action = Action(verb, **{name: fields.get(name, "") for name in names})
        allowed = self.authorizer.allows(user, action)
        return Decision(allowed, self.authorizer.reason(user, action))

    def guarded(self, registry: Registry) -> Registry:
        """The same kinds, with checks of the rights to grant rights, and to approve and sign certificates."""
        return Registry(self._guarded(kind) for kind in registry.kinds)

    def _guarded(self, kind: Kind) -> Kind:
        if (kind.group, kind.plural) == (CERTIFICATES, "certificatesigningrequests"):
            return replace(kind, admit=(*kind.admit, self._signers.admit))
        if kind.group != GROUP:
            return kind
        check = self._escalation.admit_role if kind.plural.endswith("roles") else self._escalation.admit_binding
        return replace(kind, admit=(*kind.admit, check))

    def gate(self, core: Core, registry: Registry) -> Gate:
        """The gate in front of a core."""
        creates = frozenset((kind.group, kind.plural) for kind in registry.kinds if kind.create_on_update)
        return Gate(core, self._tables, self.authenticator, self.authorizer, self._signer, creates)
