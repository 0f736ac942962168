"""JSON schemas of messages, in the names and with the extensions that Kubernetes clients read.

The tables give the structure. For the group kinds `muster.api.openapi` adds descriptions and limits to it.
"""

from __future__ import annotations

from typing import Any

from muster.api import openapi as group_kinds
from muster.server.openapi.texts import FIELDS, KINDS, MESSAGES
from muster.server.resources.kind import Kind
from muster.server.schema import Field, Message
from muster.server.schema import message as known_message
from muster.server.schema.model import ALWAYS
from muster.server.schema.scalars import ZERO

Schema = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
PATCH = f"{_META}.Patch"
_OBJECT_META, _LIST_META = "meta.v1.ObjectMeta", "meta.v1.ListMeta"

_PLAIN: dict[str, Schema] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "strings": {"type": "array", "items": {"type": "string"}},
}
_NAMED: dict[str, tuple[str, Schema]] = {
    "time": (f"{_META}.Time", {"type": "string", "format": "date-time", "description": "A time, in RFC 3339."}),
    "microtime": (
        f"{_META}.MicroTime",
        {"type": "string", "format": "date-time", "description": "A time in RFC 3339, with microseconds."},
    ),
    "quantity": (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {
            "oneOf": [{"type": "string"}, {"type": "number"}],
            "description": "An amount with an optional suffix, such as 500m, 2 or 1Gi.",
        },
    ),
    "intorstring": (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
            "description": "A number, or a string such as a name or a percentage.",
        },
    ),
    "raw": (
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        {"type": "object", "description": "Any object, not looked into."},
    ),
    "fields": (f"{_META}.FieldsV1", {"type": "object", "description": "A set of field paths."}),
}
# Fields of definitions' schemas that hold any value: not only objects, as everywhere else, but also strings, lists …
_SCHEMA_PROPS = "apiextensions.v1.JSONSchemaProps"
_ANY_VALUE = {
    "default": "JSON",
    "enum": "JSON",
    "example": "JSON",
    "items": "JSONSchemaPropsOrArray",
    "additionalItems": "JSONSchemaPropsOrBool",
    "additionalProperties": "JSONSchemaPropsOrBool",
    "dependencies": "JSONSchemaPropsOrStringArray",
}
_LIMITS = ("minimum", "maximum", "enum", "maxItems", "minItems", "pattern", "maxLength")


def reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


class Schemas:
    """Collects the schemas that a document needs, each with everything it refers to."""

    def __init__(self, version: str) -> None:
        self._texts = group_kinds.META_SCHEMAS | group_kinds.schemas(version)
        self.found: dict[str, Schema] = {}

    def add(self, message: Message) -> str:
        """Makes a message and its parts known; the name to refer to it by."""
        pending = [message]
        while pending:
            each = pending.pop()
            if each.openapi_name not in self.found:
                self.found[each.openapi_name] = self._object(each)
                pending += [field.message for field in each.fields.values() if field.message]
                self._add_named(each)
        return message.openapi_name

    def add_patch(self) -> str:
        self.found[PATCH] = {"type": "object", "description": "A patch, in the form that the content type says."}
        return PATCH

    def _add_named(self, message: Message) -> None:
        for field in message.fields.values():
            if any_value := _any_value(message, field):
                self.found[any_value] = {"description": "Any value that the rules of schemas allow here."}
            elif field.type in _NAMED:
                name, schema = _NAMED[field.type]
                self.found[name] = schema

    def _object(self, message: Message) -> Schema:
        texts = self._words(message)
        schema: Schema = {"type": "object"}
        description = texts.get("description") or self._description(message)
        if description:
            schema["description"] = description
        words: dict[str, Schema] = texts.get("properties", {})
        schema["properties"] = {
            name: _property(field, words.get(name, {}), message) for name, field in sorted(message.fields.items())
        }
        required = [name for name, field in message.fields.items() if field.required]
        if required:
            schema["required"] = required
        if message.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        if message.is_kind:
            schema["x-kubernetes-group-version-kind"] = [
                {"group": _group(message), "kind": message.kind, "version": message.version}
            ]
        return schema

    def add_custom(self, kind: Kind) -> str:
        """Makes a custom kind known; its schema is the one of its definition."""
        assert kind.definition is not None
        name = custom_name(kind, kind.kind)
        if name not in self.found:
            meta = self.add(known_message(_OBJECT_META))
            self.found[name] = _custom_object(kind, reference(meta))
        return name

    def add_custom_list(self, kind: Kind) -> str:
        """Makes the list of a custom kind known."""
        name = custom_name(kind, kind.listed_as)
        if name not in self.found:
            meta = self.add(known_message(_LIST_META))
            self.found[name] = {
                "type": "object",
                "description": f"{kind.listed_as} is a list of {kind.kind}.",
                "required": ["items"],
                "properties": {
                    **_type_meta(),
                    "metadata": {"allOf": [reference(meta)], "description": FIELDS["metadata"]},
                    "items": {
                        "type": "array",
                        "items": reference(self.add_custom(kind)),
                        "description": FIELDS["items"],
                    },
                },
                "x-kubernetes-group-version-kind": [_gvk(kind, kind.listed_as)],
            }
        return name

    def _words(self, message: Message) -> Schema:
        """What is said of a message. Kubernetes has separate types for composites where one description does."""
        name = message.openapi_name
        plain = f"{name.removesuffix(message.kind)}{message.kind.removeprefix('Composite')}"
        found = self._texts.get(name) or self._texts.get(plain)
        if found is None and name in MESSAGES:
            fields = {field: {"description": text} for field, text in MESSAGES[name].fields.items()}
            found = {"description": MESSAGES[name].description, "properties": fields}
        return found or {}

    @staticmethod
    def _description(message: Message) -> str:
        if not message.is_kind:
            return ""
        if message.kind in KINDS:
            return KINDS[message.kind]
        item = message.kind.removesuffix("List")
        return f"{message.kind} is a list of {item} objects." if item in KINDS else ""


def custom_name(kind: Kind, name: str) -> str:
    """The name of a custom kind's schema: its group backwards, as Java names packages."""
    return ".".join([*reversed(kind.group.split(".")), kind.versions[0], name])


def _gvk(kind: Kind, name: str) -> Schema:
    return {"group": kind.group, "kind": name, "version": kind.versions[0]}


def _type_meta() -> Schema:
    return {name: {"type": "string", "description": FIELDS[name]} for name in ("apiVersion", "kind")}


def _custom_object(kind: Kind, metadata: Schema) -> Schema:
    assert kind.definition is not None
    given = kind.definition.openapi
    shown = {"allOf": [metadata], "description": FIELDS["metadata"]}
    properties = {**(given.get("properties") or {}), **_type_meta(), "metadata": shown}
    return {**given, "properties": properties, "x-kubernetes-group-version-kind": [_gvk(kind, kind.kind)]}


def _group(message: Message) -> str:
    """Options and Status belong to the core group as far as clients are concerned."""
    return "" if message.package == "meta.v1" else message.group


def _any_value(message: Message, field: Field) -> str:
    """The name of the schema of a field that takes any value, if it is one."""
    if field.type != "raw" or f"{message.package}.{message.kind}" != _SCHEMA_PROPS:
        return ""
    return f"{message.openapi_name.removesuffix(message.kind)}{_ANY_VALUE[field.name]}"


def _property(field: Field, words: Schema, message: Message) -> Schema:
    schema = _shaped(field, _any_value(message, field))
    description = words.get("description") or (FIELDS.get(field.name, "") if message.is_kind else "")
    if description:
        schema["description"] = description
    for limit in _LIMITS:
        if limit in words:
            schema[limit] = words[limit]
    if field.list_type:
        schema["x-kubernetes-list-type"] = field.list_type
    if field.list_keys:
        schema["x-kubernetes-list-map-keys"] = list(field.list_keys)
    if field.atomic or field.granular:
        schema["x-kubernetes-map-type"] = "atomic" if field.atomic else "granular"
    if field.patch_strategy:
        schema["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategy)
    if field.merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.merge_key
    if (default := _default(field)) is not None:
        schema["default"] = default
    return schema


def _shaped(field: Field, any_value: str) -> Schema:
    one = reference(any_value) if any_value else _one(field)
    if field.shape == "list":
        return {"type": "array", "items": one}
    if field.shape == "map":
        return {"type": "object", "additionalProperties": one}
    return {"allOf": [one]} if "$ref" in one else one


def _one(field: Field) -> Schema:
    if field.message is not None:
        return reference(field.message.openapi_name)
    if field.type in _NAMED:
        return reference(_NAMED[field.type][0])
    return dict(_PLAIN[field.type])


def _default(field: Field) -> Any:
    if field.default is not None:
        return field.default
    if field.pointer or field.shape:
        return None
    if field.type == "message":
        return {}
    return ZERO[field.type] if field.presence == ALWAYS and field.type in _PLAIN else None
