"""Computes the RBAC action (verb, resource, namespace, name) that a request needs permission for."""

from __future__ import annotations

from muster.server.auth.rules import Action
from muster.server.request import Request

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAME_SELECTOR = "metadata.name="


def action_of(request: Request) -> Action:
    """The verb, resource, namespace and name of a request; or its path, when it is not about a resource."""
    where = request.target
    method = request.method
    if where is None or not where.plural:
        return Action(_path_verb(method), path=request.path)
    name = where.name
    if method in ("GET", "HEAD"):
        verb = "watch" if where.watch or request.flag("watch") else "get" if name else "list"
    else:
        verb = _VERBS.get(method, method.lower())
        if verb == "delete" and not name:
            verb = "deletecollection"
    selector = request.arg("fieldSelector") if not name and verb in ("list", "watch", "deletecollection") else ""
    if selector:
        name = _selected_name(selector)
    # A request about a namespace is authorized inside that namespace, so that a Role there can allow it.
    inside = name if where.plural == "namespaces" and not where.group and where.name else where.namespace
    return Action(verb, where.group, where.plural, where.subresource, inside, name, "", where.version, selector)


def _path_verb(method: str) -> str:
    return "get" if method == "HEAD" else method.lower()


def _selected_name(selector: str) -> str:
    """A list that selects exactly one name asks for that object only."""
    for term in selector.split(","):
        if term.startswith(_NAME_SELECTOR):
            return term[len(_NAME_SELECTOR) :].removeprefix("=")
    return ""
