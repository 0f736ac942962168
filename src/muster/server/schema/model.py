"""Typed lookup over the schema tables.

A `Message` is one Go struct as JSON sees it: embedded structs are flattened into `fields`, and `wire` keeps them
apart for protobuf. Messages are built lazily and shared, so comparing them with `is` is fine. Nothing here changes
after it is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import msgspec

ALWAYS, OMIT_EMPTY, OMIT_ZERO = 0, 1, 2

# Kinds that every group-version serves beside its own, all defined in meta/v1.
_EVERYWHERE = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "Status"})


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    name: str
    number: int
    type: str  # a scalar's name ("string", "quantity", "time" ...), or "message"
    shape: str  # "", "list" or "map"
    target: str  # the message's table name where type is "message"
    pointer: bool
    presence: int  # ALWAYS, OMIT_EMPTY or OMIT_ZERO
    list_type: str = ""  # atomic, set or map as declared; "" where nothing is declared
    list_keys: tuple[str, ...] = ()
    atomic: bool = False  # the map or struct is owned as one value
    granular: bool = False  # its members have owners, although the struct is owned as one value elsewhere
    patch_strategy: tuple[str, ...] = ()
    merge_key: str = ""
    default: Any = None
    required: bool = False
    go_type: str = ""  # what Go's decoder calls the scalar or the map, where it has a name of its own

    @property
    def message(self) -> Message | None:
        """The message that this field holds, or that its elements hold."""
        return _message(self.target) if self.target else None

    @property
    def ownership(self) -> str:
        """How server-side apply sees a list: atomic, set or map. A patch strategy stands in for a missing list type."""
        if self.list_type:
            return self.list_type
        if "merge" in self.patch_strategy:
            return "map" if self.merge_key else "set"
        return "atomic"

    @property
    def ownership_keys(self) -> tuple[str, ...]:
        return self.list_keys or ((self.merge_key,) if self.merge_key else ())


class Message:
    """One struct: its fields by JSON name, and by protobuf number."""

    __slots__ = ("__dict__", "atomic", "group", "is_kind", "kind", "name", "package", "version")

    def __init__(self, table_name: str) -> None:
        self.name = table_name
        self.package, _, self.kind = table_name.rpartition(".")
        _, group, self.version = _tables()["packages"][self.package]
        self.group: str = group
        row = self._row
        self.is_kind = bool(row.get("k"))
        self.atomic = bool(row.get("at"))

    def __repr__(self) -> str:
        return f"Message({self.name})"

    @property
    def _row(self) -> dict[str, Any]:
        return _tables()["messages"][self.name]

    @property
    def openapi_name(self) -> str:
        """The name of this schema in OpenAPI documents, such as io.k8s.api.core.v1.Pod."""
        return f"{_tables()['packages'][self.package][0]}.{self.kind}"

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Every JSON field, embedded structs included."""
        found: dict[str, Field] = {}
        if self.is_kind:
            for name in ("kind", "apiVersion"):
                found[name] = Field(name, 0, "string", "", "", False, OMIT_EMPTY)
        for _, embedded in self.embedded():
            found.update(embedded.fields)
        for row in self._row["f"]:
            found[row[0]] = _field(self.package, row)
        return found

    @cached_property
    def wire(self) -> dict[int, Field | Message]:
        """By protobuf number: a field, or an embedded message whose fields belong to this one."""
        own: dict[int, Field | Message] = {row[1]: self.fields[row[0]] for row in self._row["f"]}
        return own | dict(self.embedded())

    def embedded(self) -> Iterator[tuple[int, Message]]:
        for number, code in self._row.get("in", ()):
            yield number, _message(_absolute(self.package, code.lstrip("*")))


def _absolute(package: str, target: str) -> str:
    return target if "." in target else f"{package}.{target}"


def _field(package: str, row: list[Any]) -> Field:
    name, number, code, presence = row[:4]
    extras: dict[str, Any] = row[4] if len(row) > 4 else {}
    pointer = code.startswith("*")
    base = code.lstrip("*[{")
    is_message = base[0].isupper() or "." in base
    return Field(
        name=name,
        number=number,
        type="message" if is_message else base,
        shape="list" if "[" in code else "map" if "{" in code else "",
        target=_absolute(package, base) if is_message else "",
        pointer=pointer,
        presence=presence,
        list_type=extras.get("lt", ""),
        list_keys=tuple(extras.get("lk", ())),
        atomic=extras.get("at") == 1,
        granular=extras.get("at") == 0,
        patch_strategy=tuple(extras.get("ps", "").split(",")) if "ps" in extras else (),
        merge_key=extras.get("mk", ""),
        default=extras.get("df"),
        required=bool(extras.get("rq", presence == ALWAYS)),
        go_type=extras.get("gt", ""),
    )


@cache
def _tables() -> dict[str, Any]:
    return msgspec.json.decode(files("muster.server.schema").joinpath("tables.json").read_bytes())


@cache
def _packages() -> dict[tuple[str, str], str]:
    return {(group, version): short for short, (_, group, version) in _tables()["packages"].items()}


@cache
def _message(table_name: str) -> Message:
    return Message(table_name)


@cache
def kind(group: str, version: str, name: str) -> Message | None:
    """The message of one kind, or None where the tables do not know it."""
    package = _packages().get((group, version))
    if name in _EVERYWHERE:
        package = "meta.v1"
    if package is None or f"{package}.{name}" not in _tables()["messages"]:
        return None
    found = _message(f"{package}.{name}")
    return found if found.is_kind else None


def message(table_name: str) -> Message:
    """A message by its table name, such as core.v1.PodSpec. Raises KeyError where there is none."""
    if table_name not in _tables()["messages"]:
        raise KeyError(table_name)
    return _message(table_name)
