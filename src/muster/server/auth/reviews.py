"""The questions a client can ask about identity and rights: token, access, rules and self reviews.

Each method is the `answer` of one review kind: it takes the posted object and returns it with its status.
"""

from __future__ import annotations

from typing import Any, cast

from muster.api.errors import INVALID, REQUIRED, FieldError, bad_request, invalid
from muster.server.auth.authentication import Authenticator
from muster.server.auth.rbac import Authorizer
from muster.server.auth.rules import Action, Rule
from muster.server.request import User
from muster.server.resources.kind import Write

Obj = dict[str, Any]
AUTHORIZATION = "authorization.k8s.io"


class Reviews:
    """Answers reviews from the authenticator and the authorizer."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def token(self, write: Write, review: Obj) -> Obj:
        spec = _spec(review)
        token = spec.get("token")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        asked = tuple(str(word) for word in spec.get("audiences") or ())
        found = self._authenticator.review(str(token), asked)
        if found is None:
            status: Obj = {"user": {}, "error": "[invalid bearer token, unknown]"}
        else:
            user, audiences = found
            status = {"authenticated": True, "user": user_info(user)}
            if audiences:
                status["audiences"] = list(audiences)
        return {**review, "status": status}

    async def myself(self, write: Write, review: Obj) -> Obj:
        return {**review, "status": {"userInfo": user_info(write.user)}}

    async def subject_access(self, write: Write, review: Obj) -> Obj:
        return self._access(review, _subject(review, "SubjectAccessReview"))

    async def self_access(self, write: Write, review: Obj) -> Obj:
        return self._access(review, write.user)

    async def local_access(self, write: Write, review: Obj) -> Obj:
        attributes = _spec(review).get("resourceAttributes")
        kind = "LocalSubjectAccessReview"
        if not isinstance(attributes, dict):
            raise _invalid(kind, FieldError(REQUIRED, "spec.resourceAttributes", None, "must be specified"))
        place = str(cast(Obj, attributes).get("namespace") or "")
        if place != write.namespace:
            why = "must match metadata.namespace"
            raise _invalid(kind, FieldError(INVALID, "spec.resourceAttributes.namespace", place, why))
        return self._access(review, _subject(review, kind))

    async def self_rules(self, write: Write, review: Obj) -> Obj:
        namespace = str(_spec(review).get("namespace") or "")
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self._authorizer.ruleset(write.user, namespace).rules
        status: Obj = {
            "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
            "nonResourceRules": [_path_rule(rule) for rule in rules if rule.non_resource_urls],
            "incomplete": False,
        }
        return {**review, "status": status}

    def _access(self, review: Obj, user: User) -> Obj:
        action = _action(review)
        allowed = self._authorizer.allows(user, action)
        status: Obj = {"allowed": allowed}
        reason = self._authorizer.reason(user, action)
        if reason:
            status["reason"] = reason
        return {**review, "status": status}


def user_info(user: User) -> Obj:
    """A user as reviews show it."""
    info: Obj = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _spec(review: Obj) -> Obj:
    spec = review.get("spec")
    return cast(Obj, spec) if isinstance(spec, dict) else {}


def _subject(review: Obj, kind: str) -> User:
    spec = _spec(review)
    name, groups = str(spec.get("user") or ""), tuple(str(group) for group in spec.get("groups") or ())
    if not name and not groups:
        why = "at least one of user or group must be specified"
        raise _invalid(kind, FieldError(REQUIRED, "spec.user", None, why))
    extra = {str(key): tuple(values) for key, values in cast(Obj, spec.get("extra") or {}).items()}
    return User(name, groups, str(spec.get("uid") or ""), extra)


def _action(review: Obj) -> Action:
    spec = _spec(review)
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _invalid(str(review.get("kind") or ""), FieldError(INVALID, "spec.resourceAttributes", None, why))
    if path is not None:
        return Action(str(path.get("verb") or ""), path=str(path.get("path") or "/"))
    asked = cast(Obj, resource)
    return Action(
        verb=str(asked.get("verb") or ""),
        group=str(asked.get("group") or ""),
        resource=str(asked.get("resource") or ""),
        subresource=str(asked.get("subresource") or ""),
        namespace=str(asked.get("namespace") or ""),
        name=str(asked.get("name") or ""),
        version=str(asked.get("version") or ""),
    )


def _invalid(kind: str, error: FieldError) -> Exception:
    return invalid(AUTHORIZATION, kind, "", [error])


def _resource_rule(rule: Rule) -> Obj:
    shown: Obj = {"verbs": list(rule.verbs), "apiGroups": list(rule.api_groups), "resources": list(rule.resources)}
    if rule.resource_names:
        shown["resourceNames"] = list(rule.resource_names)
    return shown


def _path_rule(rule: Rule) -> Obj:
    return {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)}
