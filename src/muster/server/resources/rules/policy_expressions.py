"""What expressions of webhooks and admission policies may use: the object, the request, the namespace, the rights.

The types are those of Kubernetes: `request` and `namespaceObject` have known fields, `object`, `oldObject` and `params`
can be anything. Variables of a policy have dotted names (`variables.x`), which the language resolves as one name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from muster.cel import BOOL, DYN, INT, STRING, TIMESTAMP, Environment, ListOf, MapOf, ObjectOf, Type
from muster.cel.environment import Library
from muster.cel.functions.function import Codec, Function
from muster.cel.types import Opaque

_TEXTS = ListOf(STRING)
_KIND = ObjectOf("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), STRING))
_RESOURCE = ObjectOf("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), STRING))
_USER = ObjectOf(
    "kubernetes.UserInfo", {"username": STRING, "uid": STRING, "groups": _TEXTS, "extra": MapOf(ListOf(STRING))}
)
REQUEST = ObjectOf(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_METADATA = ObjectOf(
    "kubernetes.NamespaceMetadata",
    {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        "labels": MapOf(STRING),
        "annotations": MapOf(STRING),
        "creationTimestamp": TIMESTAMP,
        "deletionTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "generation": INT,
        "finalizers": _TEXTS,
    },
)
NAMESPACE = ObjectOf(
    "kubernetes.Namespace",
    {
        "metadata": _METADATA,
        "spec": ObjectOf("kubernetes.NamespaceSpec", {"finalizers": _TEXTS}),
        "status": ObjectOf("kubernetes.NamespaceStatus", {"phase": STRING}),
    },
)

AUTHORIZER = Opaque("kubernetes.authorization.Authorizer")
_PATH = Opaque("kubernetes.authorization.PathCheck")
_GROUP = Opaque("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK = Opaque("kubernetes.authorization.ResourceCheck")
_DECISION = Opaque("kubernetes.authorization.Decision")

Fields = dict[str, Any]


class Decision(NamedTuple):
    """Whether somebody may do something, and why."""

    allowed: bool
    reason: str


Check = Callable[[Fields, str], Decision]  # (who and what, verb) -> decision


def _codec(declared: Opaque, tag: bytes) -> Codec:
    return Codec(declared, tag, lambda value: json.dumps(value, sort_keys=True), json.loads)


AUTHORIZER_CODEC = _codec(AUTHORIZER, b"a")
RESOURCE_CODEC = _codec(RESOURCE_CHECK, b"r")
_CODECS = (AUTHORIZER_CODEC, _codec(_PATH, b"p"), _codec(_GROUP, b"g"), RESOURCE_CODEC, _codec(_DECISION, b"d"))


def _with(field: str) -> Callable[[Fields, str], Fields]:
    return lambda fields, value: {**fields, field: value}


def _account(fields: Fields, namespace: str, name: str) -> Fields:
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return {"user": {"username": f"system:serviceaccount:{namespace}:{name}", "groups": groups}}


def authorizer_library(check: Check) -> Library:
    """The functions on `authorizer`. Values are plain fields that grow with each call; `check` answers at the end."""

    def decide(fields: Fields, verb: str) -> Fields:
        return check(fields, verb)._asdict()

    resource = RESOURCE_CHECK
    functions = (
        Function("serviceAccount", (AUTHORIZER, STRING, STRING), AUTHORIZER, _account),
        Function("path", (AUTHORIZER, STRING), _PATH, _with("path")),
        Function("group", (AUTHORIZER, STRING), _GROUP, _with("group")),
        Function("resource", (_GROUP, STRING), resource, _with("resource")),
        *(
            Function(name, (resource, STRING), resource, _with(name))
            for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
        ),
        Function("check", (_PATH, STRING), _DECISION, decide),
        Function("check", (resource, STRING), _DECISION, decide),
        Function("allowed", (_DECISION,), BOOL, lambda decision: decision["allowed"]),
        Function("reason", (_DECISION,), STRING, lambda decision: decision["reason"]),
        Function("errored", (_DECISION,), BOOL, lambda decision: False),
        Function("error", (_DECISION,), STRING, lambda decision: ""),
    )
    return Library(functions, _CODECS)


_REFUSED = Decision(False, "")
UNDECIDED = authorizer_library(lambda fields, verb: _REFUSED)
"""The same signatures with nobody behind them: for checking expressions."""


@lru_cache(maxsize=64)
def environment(library: Library, *, params: bool = False, variables: tuple[str, ...] = ()) -> Environment:
    """The environment of a webhook's conditions, or of a policy with these variables."""
    declared: dict[str, Type] = {
        "object": DYN,
        "oldObject": DYN,
        "request": REQUEST,
        "namespaceObject": NAMESPACE,
        "authorizer": AUTHORIZER,
        "authorizer.requestResource": RESOURCE_CHECK,
    }
    if params:
        declared["params"] = DYN
    return Environment(declared | dict.fromkeys(variable_names(variables), DYN), library)


def variable_names(names: Iterable[str]) -> list[str]:
    return [f"variables.{name}" for name in names]
