"""OpenAPI v2: one document about everything that is served, made from those of OpenAPI v3.

What v2 cannot say is left out (alternatives, nullable values) or said as Kubernetes does (`int-or-string`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Item = dict[str, Any]

_DROPPED = frozenset(("oneOf", "anyOf", "not", "nullable"))
_PRESERVE, _KINDS = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-group-version-kind"
_METHODS = ("delete", "get", "head", "options", "patch", "post", "put")
_V3, _V2 = "#/components/schemas/", "#/definitions/"


def swagger(documents: Iterable[Item], title: str, version: str) -> Item:
    """The v2 document of all v3 documents."""
    definitions: Item = {}
    paths: Item = {}
    for document in documents:
        schemas: Item = document["components"]["schemas"]
        definitions |= {name: _schema(schema) for name, schema in schemas.items() if name not in definitions}
        paths |= {path: _path(item) for path, item in document["paths"].items()}
    return {
        "swagger": "2.0",
        "info": {"title": title, "version": version},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            }
        },
        "security": [{"BearerToken": []}],
    }


def _schema(schema: Item) -> Item:
    any_object = schema.get(_PRESERVE) is True
    if any_object and _KINDS in schema:
        # With properties, clients would take every other field for a fault.
        return {"type": "object", _KINDS: schema[_KINDS]}
    dropped = {*_DROPPED, *(("type",) if schema.get("nullable") or any_object else ())}
    if schema.get("nullable") or any_object:
        dropped |= {"items", "properties"}
    elif schema.get("type") == "array" and "items" not in schema:
        dropped.add("type")
    made = {key: _value(key, value) for key, value in schema.items() if key not in dropped}
    whole: list[Item] = made.pop("allOf", None) or []
    if len(whole) == 1 and "$ref" in whole[0]:
        made |= whole[0]
    if schema.get("oneOf") and "type" not in made and not any(key.startswith("x-") for key in schema):
        made["type"] = "string"
    return _without_nullable_requirements(made, schema)


def _without_nullable_requirements(made: Item, schema: Item) -> Item:
    """What may be null is not required: v2 cannot say that it must be there and may be nothing."""
    properties: dict[str, Item] = schema.get("properties") or {}
    required = [name for name in made.get("required") or () if not (properties.get(name) or {}).get("nullable")]
    if required:
        made["required"] = required
    else:
        made.pop("required", None)
    return made


def _value(key: str, value: Any) -> Any:
    if key == "$ref":
        return value.replace(_V3, _V2)
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return _schema(value)
    if key == "properties":
        return {name: _schema(each) for name, each in value.items()}
    if key == "allOf":
        return [_schema(each) for each in value]
    return value


def _path(item: Item) -> Item:
    made: Item = {method: _operation(item[method]) for method in _METHODS if method in item}
    if item.get("parameters"):
        made["parameters"] = [_parameter(each) for each in item["parameters"]]
    return made


def _operation(operation: Item) -> Item:
    made = {key: value for key, value in operation.items() if key not in ("parameters", "requestBody", "responses")}
    parameters = [_parameter(each) for each in operation.get("parameters") or ()]
    content: Item = (operation.get("requestBody") or {}).get("content") or {}
    if content:
        made["consumes"] = list(content)
        schema: Item = next(iter(content.values())).get("schema") or {}
        parameters.insert(0, {"name": "body", "in": "body", "required": True, "schema": _schema(schema)})
    if parameters:
        made["parameters"] = parameters
    made["responses"] = {code: _response(each) for code, each in operation["responses"].items()}
    produced = {kind: None for each in operation["responses"].values() for kind in each.get("content") or ()}
    if produced:
        made["produces"] = list(produced)
    return made


def _parameter(parameter: Item) -> Item:
    schema: Item = parameter.get("schema") or {}
    return {key: value for key, value in parameter.items() if key != "schema"} | _schema(schema)


def _response(response: Item) -> Item:
    made: Item = {"description": response.get("description") or ""}
    content: Item = response.get("content") or {}
    if content:
        made["schema"] = _schema(next(iter(content.values())).get("schema") or {})
    return made
