"""Tokens of service accounts: issued by TokenRequest, bound to a pod, secret or node, and void when those are gone.

A verified signature is remembered until the token expires; whether the account and the bound object still exist, with
the same uid, is looked up on every use.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from muster.api.errors import INVALID, FieldError, conflict, forbidden, invalid, not_found
from muster.server.auth.rbac import Tables
from muster.server.auth.tokens import BadToken, TokenSigner
from muster.server.request import User
from muster.server.store.records import Record

SHORTEST = 600
LONGEST = 1 << 32
DEFAULT_SECONDS = 3600
_MOST_VERIFIED = 10_000
_BOUND_TABLES = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_EXTRA = "authentication.kubernetes.io"


class _PodSpec(msgspec.Struct, rename="camel"):
    service_account_name: str = "default"
    node_name: str = ""


class _Pod(msgspec.Struct):
    spec: _PodSpec


class ServiceAccounts:
    """Issues and verifies the tokens of the stored service accounts."""

    def __init__(self, signer: TokenSigner, tables: Tables, clock: Callable[[], float] = time.time) -> None:
        self._signer = signer
        self._tables = tables
        self._clock = clock
        self._verified: dict[bytes, dict[str, Any]] = {}
        self.audiences = (signer.issuer, "https://kubernetes.default.svc")

    # Verifying

    def user_of(self, token: str, now: float, audiences: tuple[str, ...] = ()) -> User:
        """The user that a token proves, for one of the audiences (ours by default)."""
        return self.review(token, now, audiences)[0]

    def review(self, token: str, now: float, audiences: tuple[str, ...] = ()) -> tuple[User, tuple[str, ...]]:
        """The user of a token and the asked audiences that it was issued for."""
        claims = self._claims(token, now)
        good_for = tuple(word for word in audiences or self.audiences if word in claims.get("aud", ()))
        if not good_for:
            raise BadToken("issued for another audience")
        private = claims["kubernetes.io"]
        namespace: str = private["namespace"]
        account = private["serviceaccount"]
        self._alive("serviceaccounts", namespace, account)
        for kind, table in (("pod", "pods"), ("secret", "secrets")):
            if kind in private:
                self._alive(table, namespace, private[kind])
        if "node" in private and "pod" not in private:
            self._alive("nodes", "", private["node"])
        return _user(namespace, account, private, claims), good_for

    def _claims(self, token: str, now: float) -> dict[str, Any]:
        key = hashlib.sha256(token.encode()).digest()
        known = self._verified.get(key)
        if known is not None and now < known["exp"]:
            return known
        claims = self._signer.verify(token, now)
        if len(self._verified) >= _MOST_VERIFIED:
            self._verified.clear()
        self._verified[key] = claims
        return claims

    def _alive(self, table: str, namespace: str, ref: dict[str, str]) -> None:
        record = self._tables.table(table).records.get((namespace, ref["name"]))
        if record is None or record.uid != ref["uid"]:
            raise BadToken(f"bound to a {table[:-1]} that is gone")

    # Issuing

    def issue(self, namespace: str, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """A TokenRequest with its status filled in."""
        account = self._tables.table("serviceaccounts").records.get((namespace, name))
        if account is None:
            raise not_found("", "serviceaccounts", name)
        spec: dict[str, Any] = dict(request.get("spec") or {})
        seconds = _seconds(spec)
        audiences = [str(word) for word in spec.get("audiences") or ()] or list(self.audiences[:1])
        private: dict[str, Any] = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": account.uid},
        }
        bound = cast("dict[str, Any] | None", spec.get("boundObjectRef"))
        if bound:
            private.update(self._bind(namespace, name, bound))
        now = int(self._clock())
        claims = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "nbf": now,
            "jti": str(uuid.uuid4()),
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "kubernetes.io": private,
        }
        spec |= {"audiences": audiences, "expirationSeconds": seconds}
        spec.setdefault("boundObjectRef", None)
        expires = datetime.fromtimestamp(now + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": _stamp(now)},
            "spec": spec,
            "status": {"token": self._signer.sign(claims), "expirationTimestamp": expires},
        }

    def _bind(self, namespace: str, account: str, ref: dict[str, Any]) -> dict[str, Any]:
        kind, name = str(ref.get("kind") or ""), str(ref.get("name") or "")
        table = _BOUND_TABLES.get(kind)
        if table is None or ref.get("apiVersion") not in ("v1", "", None):
            wrong = FieldError(INVALID, "spec.boundObjectRef", kind, "cannot bind token to object of this kind")
            raise invalid("authentication.k8s.io", "TokenRequest", "", [wrong])
        place = "" if kind == "Node" else namespace
        record = self._tables.table(table).records.get((place, name))
        if record is None:
            raise not_found("", table, name)
        uid = ref.get("uid")
        if uid and uid != record.uid:
            why = f"the UID in the bound object reference ({uid}) does not match the UID in record ({record.uid})."
            raise conflict("", table, name, why + " The object might have been deleted and then recreated")
        bound: dict[str, Any] = {kind.lower(): {"name": name, "uid": record.uid}}
        if kind == "Pod":
            bound |= self._pod_claims(account, name, record)
        return bound

    def _pod_claims(self, account: str, name: str, record: Record) -> dict[str, Any]:
        spec = msgspec.json.decode(record.body, type=_Pod).spec
        if spec.service_account_name != account:
            why = f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
            raise forbidden("", "pods", name, why)
        node = self._tables.table("nodes").records.get(("", spec.node_name)) if spec.node_name else None
        return {"node": {"name": spec.node_name, "uid": node.uid}} if node is not None else {}


def _seconds(spec: dict[str, Any]) -> int:
    seconds = spec.get("expirationSeconds")
    if seconds is None:
        return DEFAULT_SECONDS
    why = ""
    if not isinstance(seconds, int) or seconds < SHORTEST:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        wrong = FieldError(INVALID, "spec.expirationSeconds", seconds, why)
        raise invalid("authentication.k8s.io", "TokenRequest", "", [wrong])
    return cast(int, seconds)


def _stamp(now: int) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups that every service account of a namespace is in."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")


def _user(namespace: str, account: dict[str, str], private: dict[str, Any], claims: dict[str, Any]) -> User:
    extra: dict[str, tuple[str, ...]] = {f"{_EXTRA}/credential-id": (f"JTI={claims.get('jti', '')}",)}
    for kind in ("pod", "node"):
        if kind in private:
            extra[f"{_EXTRA}/{kind}-name"] = (private[kind]["name"],)
            extra[f"{_EXTRA}/{kind}-uid"] = (private[kind]["uid"],)
    name = f"system:serviceaccount:{namespace}:{account['name']}"
    return User(name, account_groups(namespace), account["uid"], extra)
