"""Requests drawn from the server's own OpenAPI document: valid, nearly valid, and far from it.

A seed gives a request, so a failing case is repeated by its seed alone.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any, NamedTuple

import msgspec
from hostile_world import World, a_valid

Obj = dict[str, Any]
NAMES = ("victim", "other", "default", "kube-system", "new", "UPPER", "a" * 300, "-", "é", "..", "%00", " ")
WORDS = (
    "", "a", "0", "-1", "1", "100m", "1Gi", "1e3", "1e400", "0x1", "NaN", "50%", "-5%", "true", "null", "Always",
    "Never", "Node", "victim", "default", "2026-01-01T00:00:00Z", "2026-13-45", "10.0.0.1", "::1", "/a/b", "a=b",
    "a in (b)", "* * *", "é", "\u0000", "\U0001f600", "x" * 300, "k8s.io/x", "dmFsdWU=", "=", "==", "{}", "[]",
    "${x}", "$patch",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 7, 100, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, 2**63, 2**64, 0.5, -1e300, 1e-9)
FORMS = (
    "", "*/*", "application/json", "application/yaml", "text/html",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io", ";;;,,,=", "application/json;q=x",
)  # fmt: skip
PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")


class Case(NamedTuple):
    """One request."""

    method: str
    path: str
    body: bytes
    content: str
    query: dict[str, str]
    accept: str


class Document:
    """All operations of the server, with the schemas of their bodies."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.operations: list[tuple[str, str, Obj, Obj]] = []  # method, path, operation, document
        self._kinds = {(kind.group, kind.kind): kind for kind in world.kinds}
        for path in sorted(self._page("/openapi/v3")["paths"]):
            document = self._page(f"/openapi/v3/{path}")
            for template, item in sorted(document.get("paths", {}).items()):
                for method in ("get", "post", "put", "patch", "delete"):
                    if method in item:
                        self.operations.append((method.upper(), template, item[method], document))

    def _page(self, path: str) -> Obj:
        answer = self.world.ask("GET", path)
        assert answer is not None
        return msgspec.json.decode(answer.body)

    def case(self, seed: int, operation: int | None = None) -> Case:
        """The request of a seed; of one operation when it is given."""
        rng = random.Random(seed)
        chosen = rng.randrange(len(self.operations)) if operation is None else operation
        method, template, declared, document = self.operations[chosen]
        query = {
            each["name"]: str(rng.choice((*WORDS, *NUMBERS, "All", "Strict", "Warn", "Exact", "NotOlderThan")))
            for each in declared.get("parameters", ())
            if each.get("in") == "query" and rng.random() < 0.12
        }
        if query.get("timeoutSeconds", "0").isdigit():
            query.pop("timeoutSeconds", None)
        path = template.replace("{namespace}", "default" if rng.random() < 0.9 else rng.choice(NAMES))
        path = path.replace("{name}", "victim" if rng.random() < 0.7 else rng.choice(NAMES))
        path = path.replace("{path}", rng.choice(NAMES))
        content, body = self._body(rng, method, declared, document)
        if method == "DELETE" and (path.endswith("/victim") or "{name}" not in template):
            query["dryRun"] = "All"  # the world has to last
        if method == "PATCH":
            query.setdefault("fieldManager", "fuzz")
        return Case(method, path, body, content, query, rng.choice(FORMS) if rng.random() < 0.2 else "")

    def _body(self, rng: random.Random, method: str, declared: Obj, document: Obj) -> tuple[str, bytes]:
        if method == "GET":
            return "application/json", b""
        value = self._value(rng, declared, document)
        if method == "PATCH":
            kind = rng.choice(PATCHES)
            if kind == "json-patch+json":
                value = _operations(rng, value)
            return f"application/{kind}", msgspec.json.encode(value)
        return rng.choice(("application/json", "application/json", "application/yaml", "")), msgspec.json.encode(value)

    def _value(self, rng: random.Random, declared: Obj, document: Obj) -> Any:
        named = declared.get("x-kubernetes-group-version-kind") or {}
        kind = self._kinds.get((named.get("group", ""), named.get("kind", "")))
        grow = _Grower(rng, document)
        if kind is None:
            content = declared.get("requestBody", {}).get("content", {})
            schema = next(iter(content.values()), {}).get("schema", {})
            return grow.value(schema, 5)
        schema = document["components"]["schemas"].get(
            _schema_name(document, kind.group, named["version"], kind.kind), {}
        )
        value: Any = a_valid(kind, rng.choice(("victim", "victim", "new", f"n{rng.randrange(1000)}")))
        for _ in range(rng.randrange(4)):
            value = grow.overlay(value, schema)
        if rng.random() < 0.3:
            value = grow.corrupt(value)
        if rng.random() < 0.03:
            value = grow.junk(4)
        return value


@cache
def _gvk_names(key: int) -> dict[tuple[str, str, str], str]:
    return {}


def _schema_name(document: Obj, group: str, version: str, kind: str) -> str:
    names = _gvk_names(id(document))
    if not names:
        for name, schema in document["components"]["schemas"].items():
            for each in schema.get("x-kubernetes-group-version-kind") or ():
                names[each["group"], each["version"], each["kind"]] = name
    return names.get((group, version, kind), "")


class _Grower:
    """Makes values that follow a schema, more or less."""

    def __init__(self, rng: random.Random, document: Obj) -> None:
        self.rng = rng
        self.schemas: Obj = document.get("components", {}).get("schemas", {})

    def resolved(self, schema: Obj) -> Obj:
        while True:
            if "$ref" in schema:
                schema = self.schemas[schema["$ref"].rpartition("/")[2]]
            elif "allOf" in schema and "type" not in schema:
                schema = schema["allOf"][0]
            else:
                return schema

    def value(self, schema: Obj, depth: int) -> Any:
        rng = self.rng
        schema = self.resolved(schema)
        if rng.random() < 0.03:
            return self.junk(2)
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return [self.value(schema["items"], depth - 1) for _ in range(rng.randrange(3))] if depth > 0 else []
            case "integer" | "number":
                return rng.choice(NUMBERS) if rng.random() < 0.2 else rng.randrange(4)
            case "boolean":
                return rng.random() < 0.5
            case "string":
                return rng.choice(schema["enum"]) if "enum" in schema and rng.random() < 0.8 else rng.choice(WORDS)
            case _:
                return rng.choice((*WORDS, *NUMBERS))

    def _object(self, schema: Obj, depth: int) -> Obj:
        rng = self.rng
        if depth <= 0:
            return {}
        properties: Obj = schema.get("properties", {})
        if not properties:
            inner = schema.get("additionalProperties")
            keys = (rng.choice(("cpu", "memory", "pods", "app", *WORDS)) for _ in range(rng.randrange(3)))
            return {key: self.value(inner if isinstance(inner, dict) else {}, depth - 1) for key in keys}
        required = set(schema.get("required", ()))
        many = min(1.0, 4 / len(properties))
        return {
            name: self.value(inner, depth - 1)
            for name, inner in properties.items()
            if (name in required and rng.random() < 0.95) or rng.random() < many
        }

    def overlay(self, value: Any, schema: Obj) -> Any:
        """The value with one of its fields, at some depth, grown anew."""
        schema = self.resolved(schema)
        properties: Obj = schema.get("properties", {})
        if isinstance(value, list) and value and schema.get("type") == "array":
            at = self.rng.randrange(len(value))
            value[at] = self.overlay(value[at], schema["items"])
            return value
        if not isinstance(value, dict) or not properties:
            return self.value(schema, 3)
        present = [name for name in value if name in properties and isinstance(value[name], dict | list)]
        if present and self.rng.random() < 0.75:
            name = self.rng.choice(present)
            value[name] = self.overlay(value[name], properties[name])
        else:
            name = self.rng.choice(sorted(properties))
            value[name] = self.value(properties[name], 4)
        return value

    def corrupt(self, value: Any) -> Any:
        """The value with something somewhere replaced by something else."""
        rng = self.rng
        if isinstance(value, dict) and value and rng.random() < 0.85:
            key = rng.choice(sorted(value))
            return {**value, key: self.corrupt(value[key])}
        if isinstance(value, list) and value and rng.random() < 0.85:
            at = rng.randrange(len(value))
            return [*value[:at], self.corrupt(value[at]), *value[at + 1 :]]
        return self.junk(3)

    def junk(self, depth: int) -> Any:
        rng = self.rng
        match rng.randrange(7):
            case 0 if depth > 0:
                return [self.junk(depth - 1) for _ in range(rng.randrange(4))]
            case 1 if depth > 0:
                return {rng.choice((*WORDS, "metadata", "spec", "name")): self.junk(depth - 1) for _ in range(3)}
            case 2:
                return None
            case 3:
                return rng.choice(NUMBERS)
            case 4:
                return rng.random() < 0.5
            case _:
                return rng.choice(WORDS)


def _operations(rng: random.Random, value: Any) -> Any:
    """A JSON patch that writes pieces of a value here and there."""
    paths = ["/metadata/labels", "/metadata/labels/app", "/spec", "/status", "/metadata", "", "/", "/x/y", "/spec/-"]
    found: list[Obj] = []
    for _ in range(rng.randrange(1, 5)):
        path = rng.choice(paths) + rng.choice(("", "", "/0", "/-", "/name", "/~1", "/~"))
        piece = rng.choice(list(value.values())) if isinstance(value, dict) and value else value
        found.append(
            {"op": rng.choice(("add", "remove", "replace", "move", "copy", "test")), "path": path, "value": piece}
            | ({"from": rng.choice(paths)} if rng.random() < 0.6 else {})
        )
    return found
