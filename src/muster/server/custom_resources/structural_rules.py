"""What the schema of a definition must be like: structural, and without what Kubernetes does not support.

Structural means that the form of an object can be read off one tree of properties: what stands below `allOf`, `anyOf`,
`oneOf` and `not` only restricts values, and every field it speaks of is declared outside of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.api.errors import FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, FieldError
from muster.server.custom_resources import patterns
from muster.server.custom_resources.structural import META_FIELDS, Schema

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
# What may not stand below a junctor, and what it must be there.
_ONLY_IN_THE_TREE = (
    ("type", "empty"),
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"),
    ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    ("x-kubernetes-validations", "empty"),
)

Errors = Iterator[FieldError]


def validate_schema(schema: Schema, path: str) -> list[FieldError]:
    """All errors of a schema at the root of a version."""
    structural = [*_tree(schema, path, _ROOT), *_declared(schema, schema, path, path)]
    return [*sorted(structural, key=str), *_keywords(schema, path, root=True)]


# The tree


def _tree(schema: Schema, path: str, level: str) -> Errors:
    """The rules of a structural schema, one node and everything below it."""
    kind = schema.get("type") or ""
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and items is None:
        yield FieldError(REQUIRED, f"{path}.items", detail="must be specified")
    if isinstance(items, dict):
        yield from _tree(items, f"{path}.items", _ITEM)
    for name, each in (schema.get("properties") or {}).items():
        yield from _tree(each, f"{path}.properties[{name}]", _FIELD)
    if additional is not None:
        if level == _ROOT:
            yield FieldError(FORBIDDEN, f"{path}.additionalProperties", detail="must not be used at the root")
        if isinstance(additional, dict):
            yield from _tree(additional, f"{path}.additionalProperties", _FIELD)
    yield from _extensions(schema, path)
    yield from _values(schema, path, _is_int_or_string(schema), _starts_with_int_or_string(schema))
    yield from _typed(schema, kind, path, level)
    yield from _metadata(schema, path, level)


def _extensions(schema: Schema, path: str) -> Errors:
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                why = "must be false if x-kubernetes-int-or-string is true"
                yield FieldError(INVALID, f"{path}.{name}", True, why)


def _typed(schema: Schema, kind: str, path: str, level: str) -> Errors:
    embedded, preserve = (
        schema.get("x-kubernetes-embedded-resource"),
        schema.get("x-kubernetes-preserve-unknown-fields"),
    )
    if embedded and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield (
            FieldError(INVALID, f"{path}.type", kind, why) if kind else FieldError(REQUIRED, f"{path}.type", detail=why)
        )
    elif not kind and not schema.get("x-kubernetes-int-or-string") and not preserve:
        yield FieldError(REQUIRED, f"{path}.type", detail=f"must not be empty {level}")
    if embedded and schema.get("additionalProperties") is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        yield FieldError(FORBIDDEN, f"{path}.additionalProperties", detail=why)
    if level == _ROOT and kind and kind != "object":
        yield FieldError(INVALID, f"{path}.type", kind, "must be object at the root")
    if embedded and not preserve and not schema.get("properties"):
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield FieldError(REQUIRED, f"{path}.properties", detail=why)


def _metadata(schema: Schema, path: str, level: str) -> Errors:
    properties: Schema = schema.get("properties") or {}
    checked = level == _ROOT or schema.get("x-kubernetes-embedded-resource")
    for name in ("kind", "apiVersion"):
        if checked and name in properties and properties[name].get("type") != "string":
            kind = properties[name].get("type") or ""
            yield FieldError(INVALID, f"{path}.properties[{name}].type", kind, "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if checked and metadata.get("type") != "object":
        yield FieldError(INVALID, f"{where}.type", metadata.get("type") or "", "must be object")
    if level == _ROOT:
        extra = set(metadata) - {"type", "default", "properties", "description"}
        if extra or set(metadata.get("properties") or ()) - {"name", "generateName"}:
            why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield FieldError(FORBIDDEN, where, detail=why)


def _is_int_or_string(schema: Schema) -> bool:
    return schema.get("anyOf") == _INT_OR_STRING


def _starts_with_int_or_string(schema: Schema) -> bool:
    return bool(schema.get("allOf")) and schema["allOf"][0].get("anyOf") == _INT_OR_STRING


# Below junctors


def _values(schema: Schema, path: str, skip_any: bool = False, skip_first: bool = False) -> Errors:
    """What restricts values, in the tree or below a junctor."""
    for junctor in ("anyOf", "allOf", "oneOf"):
        for index, each in enumerate(schema.get(junctor) or ()):
            if junctor == "anyOf" and skip_any:
                continue
            first = junctor == "allOf" and skip_first and index == 0
            yield from _nested(each, f"{path}.{junctor}[{index}]", skip_any=first)
    if schema.get("not") is not None:
        yield from _nested(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        try:
            patterns.compiled(pattern)
        except patterns.PatternError as wrong:
            why = f"must be a valid regular expression, but isn't: {wrong}"
            yield FieldError(INVALID, f"{path}.pattern", pattern, why)


def _nested(schema: Schema, path: str, skip_any: bool = False) -> Errors:
    yield from _values(schema, path, skip_any)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items")
    properties: Schema = schema.get("properties") or {}
    for name, each in properties.items():
        yield from _nested(each, f"{path}.properties[{name}]")
    for name, state in _ONLY_IN_THE_TREE:
        if schema.get(name) or (name in ("default", "additionalProperties") and schema.get(name) is not None):
            yield FieldError(FORBIDDEN, f"{path}.{name}", detail=f"must be {state} to be structural")
    if "metadata" in properties:
        yield FieldError(FORBIDDEN, f"{path}.properties[metadata]", detail="must not be specified in a nested context")


def _declared(values: Schema, tree: Schema | None, tree_path: str, path: str, nested: bool = False) -> Errors:
    """Every field that a junctor speaks of must be declared in the tree."""
    if tree is None:
        yield FieldError(REQUIRED, tree_path, detail=f"because it is defined in {path}")
        return
    if values.get("not") is not None:
        yield from _declared(values["not"], tree, tree_path, f"{path}.not", True)
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(values.get(junctor) or ()):
            yield from _declared(each, tree, tree_path, f"{path}.{junctor}[{index}]", True)
    if not nested:
        return
    if isinstance(values.get("items"), dict):
        items = tree.get("items") if isinstance(tree.get("items"), dict) else None
        yield from _declared(values["items"], items, f"{tree_path}.items", f"{path}.items", True)
    for name, each in (values.get("properties") or {}).items():
        inner = (tree.get("properties") or {}).get(name)
        below = f"properties[{name}]"
        yield from _declared(each, inner, f"{tree_path}.{below}", f"{path}.{below}", True)


# Keywords


def _keywords(schema: Any, path: str, *, root: bool = False, in_meta: bool = False, no_default: str = "") -> Errors:
    """What is not supported anywhere in a schema, and what belongs together."""
    if not isinstance(schema, dict):
        return
    yield from _unsupported(schema, path, in_meta, no_default)
    properties: Schema = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict) or additional is False:
        if properties:
            why = "additionalProperties and properties are mutual exclusive"
            yield FieldError(FORBIDDEN, f"{path}.additionalProperties", detail=why)
        reason = "inside additionalProperties applying to object metadata" if in_meta else no_default
        yield from _keywords(additional, f"{path}.additionalProperties", in_meta=in_meta, no_default=reason)
    for name, each in properties.items():
        is_meta = (root or schema.get("x-kubernetes-embedded-resource")) and name in META_FIELDS
        reason = f"in top-level {name}" if root and name in META_FIELDS else no_default
        where = f"{path}.properties[{name}]"
        yield from _keywords(each, where, in_meta=in_meta or bool(is_meta), no_default=reason)
    more: dict[str, Any] = {"in_meta": in_meta, "no_default": no_default}
    yield from _keywords(schema.get("not"), f"{path}.not", **more)
    for junctor in ("allOf", "oneOf", "anyOf"):
        for index, each in enumerate(schema.get(junctor) or ()):
            yield from _keywords(each, f"{path}.{junctor}[{index}]", **more)
    yield from _keywords(schema.get("items"), f"{path}.items", **more)
    yield from _list_and_map_types(schema, path)


def _unsupported(schema: Schema, path: str, in_meta: bool, no_default: str) -> Errors:
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        listed = ", ".join(f'"{each}"' for each in _TYPES)
        yield FieldError(NOT_SUPPORTED, f"{path}.type", kind, f"supported values: {listed}")
    if schema.get("default") is not None and no_default:
        yield FieldError(FORBIDDEN, f"{path}.default", detail=f"must not be set {no_default}")
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield FieldError(FORBIDDEN, f"{path}.{name}", detail=f"{name} is not supported")
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield FieldError(FORBIDDEN, f"{path}.type", detail=why)
    if isinstance(schema.get("items"), list):
        yield FieldError(FORBIDDEN, f"{path}.items", detail="items must be a schema object and not an array")
    if in_meta and schema.get("x-kubernetes-embedded-resource"):
        why = "must not be used inside of resource meta"
        yield FieldError(FORBIDDEN, f"{path}.x-kubernetes-embedded-resource", detail=why)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield FieldError(FORBIDDEN, f"{path}.uniqueItems", detail=why)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield FieldError(INVALID, f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")


def _list_and_map_types(schema: Schema, path: str) -> Errors:
    kind, map_type, list_type = (
        schema.get("type"),
        schema.get("x-kubernetes-map-type"),
        schema.get("x-kubernetes-list-type"),
    )
    if map_type is not None:
        if kind != "object":
            yield _needs_type(path, kind, "object", "x-kubernetes-map-type")
        if map_type not in ("atomic", "granular"):
            listed = 'supported values: "atomic", "granular"'
            yield FieldError(NOT_SUPPORTED, f"{path}.x-kubernetes-map-type", map_type, listed)
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    if list_type is not None:
        if kind != "array":
            yield _needs_type(path, kind, "array", "x-kubernetes-list-type")
        elif list_type == "set" and isinstance(schema.get("items"), dict):
            yield from _set_items(schema["items"], path)
        if list_type not in ("atomic", "set", "map"):
            listed = 'supported values: "atomic", "map", "set"'
            yield FieldError(NOT_SUPPORTED, f"{path}.x-kubernetes-list-type", list_type, listed)
    if keys and list_type != "map":
        why, where = "must be map if x-kubernetes-list-map-keys is non-empty", f"{path}.x-kubernetes-list-type"
        yield (
            FieldError(REQUIRED, where, detail=why) if list_type is None else FieldError(INVALID, where, list_type, why)
        )
    if list_type == "map":
        yield from _map_list(schema, keys, path)
    if list_type in ("set", "map") and isinstance(schema.get("items"), dict) and schema["items"].get("nullable"):
        why = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield FieldError(FORBIDDEN, f"{path}.items.nullable", detail=why)


def _needs_type(path: str, kind: str | None, wanted: str, extension: str) -> FieldError:
    why = f"must be {wanted} if {extension} is specified"
    return FieldError(INVALID, f"{path}.type", kind, why) if kind else FieldError(REQUIRED, f"{path}.type", detail=why)


def _set_items(items: Schema, path: str) -> Errors:
    why = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        yield FieldError(INVALID, f"{path}.items.x-kubernetes-list-type", items["x-kubernetes-list-type"], why)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield FieldError(INVALID, f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), why)


def _map_list(schema: Schema, keys: list[str], path: str) -> Errors:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield FieldError(REQUIRED, where, detail="must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items")
    if items is None:
        yield FieldError(REQUIRED, f"{path}.items", detail="must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield FieldError(INVALID, f"{path}.items.type", items.get("type") or "", why)
        return
    properties: Schema = items.get("properties") or {}
    for index, key in enumerate(keys):
        below = f"{path}.items.properties[{key}]"
        if key not in properties:
            yield FieldError(INVALID, where, keys, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield FieldError(INVALID, f"{below}.type", "object", why)
        if key in keys[:index]:
            yield FieldError(INVALID, where, keys, "must not contain duplicate entries")
        yield from _key_property(properties.get(key), key in (items.get("required") or ()), below)


def _key_property(schema: Schema | None, required: bool, path: str) -> Errors:
    if schema is None:
        return
    this = "this property is in x-kubernetes-list-map-keys, so it"
    if not required and schema.get("default") is None:
        yield FieldError(REQUIRED, f"{path}.default", detail=f"{this} must have a default or be a required property")
    if schema.get("nullable"):
        yield FieldError(FORBIDDEN, f"{path}.nullable", detail=f"{this} cannot be nullable")
