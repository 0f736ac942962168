"""The paths of an OpenAPI document: every verb of every served kind, as Kubernetes describes them to its clients."""

from __future__ import annotations

from typing import Any

from muster.server import schema
from muster.server.openapi.schemas import Schemas, reference
from muster.server.openapi.texts import PARAMETERS
from muster.server.request import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, PROTOBUF, STRATEGIC_PATCH, YAML
from muster.server.resources.kind import Kind
from muster.server.schema import Message

Item = dict[str, Any]
Gvk = tuple[str, str, str]

_READ = (JSON, PROTOBUF, YAML)
_PATCHES = (APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_LIST_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETE_PARAMETERS = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_OTHER_KINDS: dict[str, Gvk] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
_CREATED_AT = frozenset({"binding", "eviction", "token"})
_STREAMS = frozenset({"exec", "attach", "portforward"})
_VERBS = {"finalize": ("update",)}


class Paths:
    """The path items of one group-version."""

    def __init__(self, group: str, version: str, schemas: Schemas) -> None:
        self.items: dict[str, Item] = {}
        self._group = group
        self._version = version
        self._schemas = schemas
        self._root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        self._tag = f"{(group or 'core').partition('.')[0]}_{version}"
        self._status = self._known("", "v1", "Status")
        self._options = self._known("", "v1", "DeleteOptions")

    def _known(self, group: str, version: str, kind: str) -> str:
        message = schema.kind(group, version, kind)
        assert message is not None, (group, version, kind)
        return self._schemas.add(message)

    def add(self, kind: Kind) -> None:
        """All paths of one kind. A kind without a schema is described as any object."""
        name = self._schemas.add_custom(kind) if kind.definition else self._name_of(self._message(kind.kind))
        below = "/namespaces/{namespace}" if kind.namespaced else ""
        collection = f"{self._root}{below}/{kind.plural}"
        self.items[collection] = self._collection(kind, name)
        if kind.namespaced and "list" in kind.verbs:
            self.items[f"{self._root}/{kind.plural}"] = {
                "get": self._operation("list", kind, self._list_of(kind), _LIST_PARAMETERS, suffix="ForAllNamespaces"),
                "parameters": _parameters("pretty"),
            }
        if "get" in kind.verbs:
            self.items[f"{collection}/{{name}}"] = self._item(kind, name)
        for subresource in kind.subresources:
            self.items[f"{collection}/{{name}}/{subresource}"] = self._subresource(kind, name, subresource)

    def _name_of(self, message: Message | None) -> str:
        return self._schemas.add(message) if message else ""

    def _message(self, kind: str) -> Message | None:
        return schema.kind(self._group, self._version, kind)

    def _list_of(self, kind: Kind) -> str:
        if kind.definition is not None:
            return self._schemas.add_custom_list(kind)
        return self._name_of(self._message(kind.listed_as))

    def _collection(self, kind: Kind, name: str) -> Item:
        item: Item = {"parameters": _parameters(*(["namespace"] if kind.namespaced else []), "pretty")}
        if "list" in kind.verbs:
            item["get"] = self._operation("list", kind, self._list_of(kind), _LIST_PARAMETERS)
        if "create" in kind.verbs:
            item["post"] = self._operation("post", kind, name, _WRITE_PARAMETERS, body=name, created=True)
        if "deletecollection" in kind.verbs:
            parameters = (*_DELETE_PARAMETERS, "fieldSelector", "labelSelector", "limit", "continue")
            item["delete"] = self._operation(
                "deletecollection", kind, self._status, parameters, body=self._options, optional_body=True
            )
        return item

    def _item(self, kind: Kind, name: str) -> Item:
        item: Item = {"parameters": _parameters("name", *(["namespace"] if kind.namespaced else []), "pretty")}
        if "get" in kind.verbs:
            item["get"] = self._operation("get", kind, name)
        if "update" in kind.verbs:
            item["put"] = self._operation("put", kind, name, _WRITE_PARAMETERS, body=name, created=True)
        if "patch" in kind.verbs:
            item["patch"] = self._patch(kind, name)
        if "delete" in kind.verbs:
            item["delete"] = self._operation(
                "delete", kind, self._status, _DELETE_PARAMETERS, body=self._options, optional_body=True
            )
        return item

    def _subresource(self, kind: Kind, main: str, subresource: str) -> Item:
        item: Item = {"parameters": _parameters("name", *(["namespace"] if kind.namespaced else []), "pretty")}
        gvk = _OTHER_KINDS.get(subresource)
        name = self._known(*gvk) if gvk else main
        about: Item = {"suffix": subresource.capitalize(), "gvk": gvk}
        if subresource == "log" or subresource in _STREAMS:
            item["get"] = self._operation("get", kind, "", **about)
            if subresource in _STREAMS:
                item["post"] = self._operation("post", kind, "", **about)
        elif subresource in _CREATED_AT:
            item["post"] = self._operation("post", kind, name, _WRITE_PARAMETERS, body=name, created=True, **about)
        else:
            verbs = kind.serving.get(subresource) or _VERBS.get(subresource, ("get", "patch", "update"))
            if "get" in verbs:
                item["get"] = self._operation("get", kind, name, **about)
            if "update" in verbs:
                item["put"] = self._operation("put", kind, name, _WRITE_PARAMETERS, body=name, created=True, **about)
            if "patch" in verbs:
                item["patch"] = self._patch(kind, name, **about)
        return item

    def _patch(self, kind: Kind, name: str, **about: Any) -> Item:
        operation = self._operation("patch", kind, name, (*_WRITE_PARAMETERS, "force"), created=True, **about)
        # kubectl sends a strategic merge patch to whoever says that they take it; custom kinds do not.
        known = [media for media in _PATCHES if media != STRATEGIC_PATCH or kind.definition is None]
        body = {media: {"schema": reference(self._schemas.add_patch())} for media in known}
        operation["requestBody"] = {"content": body, "required": True}
        return operation

    def _operation(
        self,
        action: str,
        kind: Kind,
        answer: str,
        parameters: tuple[str, ...] = (),
        *,
        body: str = "",
        optional_body: bool = False,
        created: bool = False,
        suffix: str = "",
        gvk: Gvk | None = None,
    ) -> Item:
        group, version, name = gvk or (self._group, self._version, kind.kind)
        responses = {"200": _answer("OK", answer)}
        if created:
            responses["201"] = _answer("Created", answer)
        if created and action == "post":
            responses["202"] = _answer("Accepted", answer)
        operation: Item = {
            "operationId": _operation_id(action, self._group, self._version, kind, suffix),
            "tags": [self._tag],
            "responses": responses | {"401": {"description": "Unauthorized"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": group, "kind": name, "version": version},
        }
        if parameters:
            operation["parameters"] = _parameters(*sorted(parameters))
        if body:
            content = {media: {"schema": reference(body)} for media in _READ}
            operation["requestBody"] = {"content": content} if optional_body else {"content": content, "required": True}
        return operation


def _answer(words: str, name: str) -> Item:
    if not name:
        return {"description": words, "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {"description": words, "content": {media: {"schema": reference(name)} for media in _READ}}


def _parameters(*names: str) -> list[Item]:
    return [_parameter(name) for name in names]


def _parameter(name: str) -> Item:
    in_path = name in ("name", "namespace")
    parameter: Item = {
        "name": name,
        "in": "path" if in_path else "query",
        "description": PARAMETERS[name],
        "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True},
    }
    return parameter | {"required": True} if in_path else parameter


def _operation_id(action: str, group: str, version: str, kind: Kind, suffix: str) -> str:
    """The names that generated clients give their methods, such as patchAppsV1NamespacedDeploymentScale."""
    verb = {"post": "create", "put": "replace", "get": "read", "deletecollection": "delete"}.get(action, action)
    words = (group or "core").removesuffix(".k8s.io").split(".")
    title = "".join(word.capitalize() for word in (*words, version))
    scope = "Namespaced" if kind.namespaced and suffix != "ForAllNamespaces" else ""
    if action == "deletecollection":
        scope = "Collection" + scope
    return f"{verb}{title}{scope}{kind.kind}{suffix}"
