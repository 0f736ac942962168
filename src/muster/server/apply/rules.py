"""How server-side apply divides an object into fields with owners, derived from the schema tables.

A value is atomic (scalars, atomic lists and structs), granular (structs and maps: one owner per member) or an
associative list (one owner per element: lists with keys, and sets). Without a schema, maps are granular and everything
else is atomic. Rules are built on first use.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from muster.server.schema import Field, Message, message

_encode = msgspec.json.Encoder(order="sorted").encode


class Atomic:
    """A value with one owner."""

    __slots__ = ("from_null",)

    def __init__(self, from_null: bool = False) -> None:
        self.from_null = from_null  # Go writes null where nobody set the field, so setting it does not add the field


class Granular:
    """An object whose members are owned one by one: a struct, or a map with any keys."""

    __slots__ = ("_element", "_fields", "_message", "from_null")

    def __init__(self, source: Message | None, element: Rule | None = None) -> None:
        self._message = source
        self._element = element
        self._fields: dict[str, Rule] = {}
        self.from_null = False

    @property
    def named(self) -> bool:
        """Whether the members are the fields of a struct. A map's entries are owned themselves; a field is not."""
        return self._message is not None

    def know(self, key: str, rule: Rule) -> None:
        """Give one member a rule of its own."""
        self._fields[key] = rule

    def of(self, key: str) -> Rule:
        rule = self._fields.get(key)
        if rule is None:
            if self._element is not None:
                return self._element
            field = self._message.fields.get(key) if self._message else None
            rule = self._fields[key] = field_rule(field) if field else DEDUCED
        return rule


class AssociativeList:
    """A list whose elements are known by their keys, or (without keys) by their value."""

    __slots__ = ("defaults", "element", "from_null", "keys")

    def __init__(self, keys: tuple[str, ...], element: Rule, defaults: dict[str, Any], from_null: bool) -> None:
        self.keys = keys
        self.element = element
        self.defaults = defaults
        self.from_null = from_null

    def name(self, item: Any) -> str | None:
        """The path element of one item; None where it has no key at all."""
        if not self.keys:
            return "v:" + _encode(item).decode()
        if type(item) is not dict:
            return None
        if len(self.keys) == 1:
            key = self.keys[0]
            value = item.get(key, self.defaults.get(key))
            return "k:" + _encode({key: value}).decode() if value is not None else None
        found = {key: item.get(key, self.defaults.get(key)) for key in self.keys}
        found = {key: value for key, value in found.items() if value is not None}
        return "k:" + _encode(found).decode() if found else None


Rule = Atomic | Granular | AssociativeList

ATOMIC = Atomic()
ATOMIC_FROM_NULL = Atomic(from_null=True)


def _deduced() -> Granular:
    """Without a schema: members of members, all the way down."""
    rule = Granular(None)
    rule._element = rule  # pyright: ignore[reportPrivateUsage]
    return rule


DEDUCED = _deduced()


def field_rule(field: Field) -> Rule:
    """The rule of one field's value."""
    from_null = field.presence == 0 and field.shape != ""
    if field.shape == "list":
        return _list_rule(field, from_null)
    if field.atomic:
        return ATOMIC
    if field.shape == "map":
        return Granular(None, message_rule(field.message) if field.message else ATOMIC)
    if field.granular and field.message:
        return Granular(field.message)
    return message_rule(field.message) if field.message else ATOMIC


def _list_rule(field: Field, from_null: bool) -> Rule:
    if field.ownership == "atomic":
        return ATOMIC_FROM_NULL if from_null else ATOMIC
    if field.ownership == "set" or field.message is None:
        return AssociativeList((), ATOMIC, {}, from_null)
    keys = field.ownership_keys
    inner = field.message.fields
    defaults = {key: inner[key].default for key in keys if key in inner and inner[key].default is not None}
    return AssociativeList(keys, message_rule(field.message), defaults, from_null)


@cache
def message_rule(source: Message) -> Rule:
    """The rule of one message, shared by all fields that hold it."""
    return ATOMIC if source.atomic else Granular(source)


class Untyped(Granular):
    """The top of an object without a schema: only its metadata is known."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, DEDUCED)
        self.know("metadata", message_rule(message("meta.v1.ObjectMeta")))

    @property
    def named(self) -> bool:
        return True


def object_rule(source: Message | None) -> Granular:
    """The rule of a whole object of this kind."""
    if source is None:
        return _untyped()
    rule = message_rule(source)
    assert isinstance(rule, Granular), source
    return rule


@cache
def _untyped() -> Untyped:
    return Untyped()
