"""What is known of the fields of one kind in one version: how objects are read, and who may own which part.

Built-in kinds take it from the tables (`MessageSchema`); kinds that a CustomResourceDefinition defines bring their own
(`muster.server.custom_resources`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Protocol

from muster.server import fields, schema
from muster.server.apply.rules import Granular, object_rule
from muster.server.schema import Message

Obj = dict[str, Any]


class ObjectSchema(Protocol):
    """The fields of a kind in one version."""

    @property
    def message(self) -> Message | None:
        """The built-in message, which strategic merge patches and protobuf need; None where there is none."""
        ...

    @property
    def rule(self) -> Granular:
        """How server-side apply divides an object."""
        ...

    def decode(self, obj: Obj, mode: str, repeated: Iterable[str], *, patched: bool) -> tuple[Obj, list[str]]:
        """A written object as it is stored, and the warnings that go with it."""
        ...

    def configuration(self, obj: Obj) -> Obj:
        """An applied configuration, checked, with nothing added or dropped."""
        ...

    def empty(self) -> Obj:
        """The object that nobody has set anything on."""
        ...


class MessageSchema:
    """A kind of the tables; without a message, any object goes."""

    __slots__ = ("message",)

    def __init__(self, message: Message | None) -> None:
        self.message = message

    @property
    def rule(self) -> Granular:
        return object_rule(self.message)

    def decode(
        self, obj: Obj, mode: str = fields.WARN, repeated: Iterable[str] = (), *, patched: bool = False
    ) -> tuple[Obj, list[str]]:
        if self.message is None:
            return obj, []
        return fields.decode(obj, self.message, mode, repeated, patched=patched)

    def configuration(self, obj: Obj) -> Obj:
        return fields.configuration(obj, self.message) if self.message else obj

    def empty(self) -> Obj:
        return fields.canonicalise({}, self.message) if self.message else {"metadata": {}}


@cache
def built_in(group: str, version: str, kind: str) -> MessageSchema:
    """The schema of a built-in kind."""
    return MessageSchema(schema.kind(group, version, kind))
