"""Between stored bytes and objects: loading, encoding, and showing a record in an asked version.

Stored bytes are the storage version without `kind` and `apiVersion`, so a version with the same fields is shown by
putting another head before the same bytes; only a version with other fields is decoded, converted and encoded. Bytes of
custom resources keep their `apiVersion`: which version is stored can change, and what is shown follows today's schema.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from muster.api.errors import internal
from muster.server.apply.object_schema import ObjectSchema, built_in
from muster.server.resources.kind import Definition, Kind, Obj
from muster.server.store.records import Record

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


_MOST_SHOWN = 16_384

_NO_LABELS: dict[str, str] = {}  # shared by all records without labels; nobody writes to a record's labels


class _LabelsOnly(msgspec.Struct):
    labels: dict[str, str] | None = None


class _MetadataOnly(msgspec.Struct):
    metadata: _LabelsOnly


_labels_decode = msgspec.json.Decoder(_MetadataOnly).decode


def load(kind: Kind, record: Record) -> Obj:
    """The object in its storage version, a fresh copy."""
    head: Obj = {"kind": kind.kind, "apiVersion": storage_api_version(kind)}
    head.update(_decode(record.body))
    return _current(kind, kind.definition, record, head) if kind.definition is not None else head


def _current(kind: Kind, definition: Definition, record: Record, stored: Obj) -> Obj:
    """A custom resource in this kind's version and under its schema."""
    if definition.converter is not None and stored["apiVersion"] != storage_api_version(kind):
        converted = definition.converter.found(record, kind.versions[0])
        if converted is None:
            raise internal(f"{kind.plural} {record.key[1]} is stored in another version and was not converted")
        stored = converted
    return definition.read(stored)


async def prepare(kind: Kind, records: Iterable[Record]) -> None:
    """Before `load` and the views can show these records: have them converted, where somebody else does that."""
    if kind.definition is not None and kind.definition.converter is not None:
        await kind.definition.converter.prepare(records, kind.versions[0])


async def stored_form(kind: Kind, obj: Obj) -> Obj:
    """An object as it is to be encoded for the store."""
    definition = kind.definition
    if definition is None or definition.converter is None or definition.storage_version == kind.versions[0]:
        return obj
    return (await definition.converter.convert([obj], definition.storage_version))[0]


State = tuple[int, int]


def state_of(record: Record) -> State:
    """What stands for the content of a record. A watch may show an older state at a newer revision."""
    return (record.revision, hash(record.body))


def storage_api_version(kind: Kind) -> str:
    return kind.alternate.api_version if kind.alternate is not None else kind.api_version(kind.stored_as)


def encode(kind: Kind, obj: Obj, revision: int) -> bytes:
    """The stored bytes of an object at a revision (0 leaves the resourceVersion out)."""
    metadata: Obj = obj["metadata"]
    if revision:
        metadata["resourceVersion"] = str(revision)
    else:
        metadata.pop("resourceVersion", None)
    body: Obj = {"metadata": metadata}
    if kind.definition is not None:
        body["apiVersion"] = kind.api_version(kind.definition.storage_version)
    for name, value in obj.items():
        if name != "kind" and name != "apiVersion" and name != "metadata":
            body[name] = value
    return _encode(body)


def copy(obj: Obj) -> Obj:
    """A deep copy; through bytes, which is several times faster than `copy.deepcopy`."""
    return _decode(_encode(obj))


def to_storage(kind: Kind, version: str, obj: Obj) -> Obj:
    """An object as a client sent it, in the storage version."""
    if kind.alternate is not None:
        return kind.alternate.to_storage(obj)
    if version != kind.stored_as:
        if version not in kind.alike and kind.convert is not None:
            obj = kind.convert(obj, kind.stored_as)
        obj["apiVersion"] = kind.api_version(kind.stored_as)
    return obj


def to_version(kind: Kind, version: str, obj: Obj) -> Obj:
    """A storage-version object in the asked version."""
    if kind.alternate is not None:
        return kind.alternate.to_version(obj)
    if version != kind.stored_as:
        if version not in kind.alike and kind.convert is not None:
            obj = kind.convert(obj, version)
        obj["apiVersion"] = kind.api_version(version)
    return obj


def shows_stored_bytes(kind: Kind, version: str) -> bool:
    return kind.alternate is None and kind.definition is None and (version == kind.stored_as or version in kind.alike)


class View:
    """One kind in one version: how its records become bytes."""

    __slots__ = ("_shown", "api_version", "direct", "head", "kind", "schema", "version")

    def __init__(self, kind: Kind, version: str) -> None:
        self.kind = kind
        self.version = version
        self.api_version = kind.api_version(version)
        self.direct = shows_stored_bytes(kind, version)
        self.head = f'{{"kind":"{kind.kind}","apiVersion":"{self.api_version}",'.encode()
        self.schema: ObjectSchema = (
            kind.definition.schema if kind.definition else built_in(kind.group, version, kind.kind)
        )
        self._shown: dict[State, bytes] = {}  # custom resources: reading one again costs nothing

    def object(self, record: Record) -> bytes:
        """The whole object, as a get answers."""
        if self.direct:
            return self.head + record.body[1:]
        if self.kind.definition is not None:
            return self.head + self._read(record)[1:]
        return _encode(to_version(self.kind, self.version, load(self.kind, record)))

    def item(self, record: Record) -> bytes:
        """The object as an item of a list: without kind and apiVersion, if it is a built-in one."""
        if self.direct:
            return record.body
        if self.kind.definition is not None:
            return self.object(record)  # in lists of custom resources each says what it is
        obj = to_version(self.kind, self.version, load(self.kind, record))
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        return _encode(obj)

    def _read(self, record: Record) -> bytes:
        """A custom resource as it is read today, without kind and apiVersion."""
        state = state_of(record)
        found = self._shown.get(state)
        if found is None:
            if len(self._shown) >= _MOST_SHOWN:
                self._shown.clear()
            obj = load(self.kind, record)
            del obj["kind"], obj["apiVersion"]
            found = self._shown[state] = _encode(obj)
        return found

    def encode(self, obj: Obj) -> bytes:
        """An object that is not stored (a dry run) in this version."""
        return _encode(to_version(self.kind, self.version, obj))


def labels_of(record: Record) -> dict[str, str]:
    """The labels that selectors look at."""
    labels = record.labels
    if labels is None:
        labels = record.labels = _labels_decode(record.body).metadata.labels or _NO_LABELS
    return labels


def fields_of(kind: Kind, record: Record) -> tuple[str, ...]:
    """The selectable fields, in the order of `kind.selectable`."""
    if kind.definition is not None:
        return select(kind, load(kind, record))  # each version has selectable fields of its own
    fields = record.fields
    if fields is None:
        fields = record.fields = select(kind, load(kind, record))
    return fields


def select(kind: Kind, obj: Obj) -> tuple[str, ...]:
    """The values of the selectable fields; interned, because thousands of pods share few node names and phases."""
    return tuple([sys.intern(read(obj)) for read in kind.selectable.values()])


def labels_in(obj: Obj) -> dict[str, str]:
    """The labels of an object about to be stored."""
    labels: Any = obj["metadata"].get("labels")
    return dict(labels) if labels else _NO_LABELS
