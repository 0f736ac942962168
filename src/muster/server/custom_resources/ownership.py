"""How server-side apply divides a custom resource into fields with owners, from its structural schema."""

from __future__ import annotations

from muster.server.apply.rules import ATOMIC, DEDUCED, AssociativeList, Granular, Rule, message_rule
from muster.server.custom_resources.structural import Structural
from muster.server.schema import message


class StructRule(Granular):
    """An object with named properties; other members are owned as an object without a schema would be."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Structural) -> None:
        super().__init__(None)
        self._schema = schema

    @property
    def named(self) -> bool:
        return True

    def of(self, key: str) -> Rule:
        rule = self._fields.get(key)
        if rule is None:
            field = self._schema.field(key)
            rule = self._fields[key] = value_rule(field) if field is not None else DEDUCED
        return rule


def object_rule(schema: Structural) -> Granular:
    """The rule of a whole custom resource. Its metadata is owned as that of every object."""
    rule = StructRule(schema)
    rule.know("metadata", message_rule(message("meta.v1.ObjectMeta")))
    return rule


def value_rule(schema: Structural) -> Rule:
    """The rule of one value."""
    if schema.type == "array":
        return _list_rule(schema)
    if schema.type == "object":
        if schema.map_type == "atomic":
            return ATOMIC
        if schema.properties:
            return _struct_rule(schema)
        if schema.additional is not None:
            return Granular(None, value_rule(schema.additional))
        return _struct_rule(schema) if schema.embedded else DEDUCED if schema.preserve else StructRule(schema)
    return DEDUCED if schema.preserve else ATOMIC


def _struct_rule(schema: Structural) -> Rule:
    rule = StructRule(schema)
    if schema.embedded:
        rule.know("metadata", message_rule(message("meta.v1.ObjectMeta")))
    return rule


def _list_rule(schema: Structural) -> Rule:
    if schema.list_type == "set":
        return AssociativeList((), ATOMIC, {}, False)
    if schema.list_type != "map" or schema.items is None:
        return ATOMIC
    fields = schema.items.properties
    defaults = {key: fields[key].default for key in schema.list_keys if key in fields and fields[key].has_default}
    return AssociativeList(schema.list_keys, value_rule(schema.items), defaults, False)
