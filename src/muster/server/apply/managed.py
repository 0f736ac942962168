"""`metadata.managedFields`: who owns which fields, kept up to date by every write.

What clients can observe: every object is tracked from its creation, like in Kubernetes, and each update or patch moves
ownership. The one exception is `track=False`, for writers inside the process that name no manager: what they create
carries no managedFields (and so costs nothing on later writes) until somebody applies to it, who then finds all
existing fields owned by `before-first-apply`, as in a Kubernetes API server that does not track on create. Bindings
and deletions own nothing and are not tracked, there as here.

An entry of another API version is compared in the written version: the paths that versions share stay right.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from muster.server.apply import fieldsets, typed
from muster.server.apply.fieldsets import FieldSet
from muster.server.apply.object_schema import ObjectSchema

Obj = dict[str, Any]
Entry = dict[str, Any]

APPLY, UPDATE = "Apply", "Update"
BEFORE_FIRST_APPLY = "before-first-apply"
ANCIENT = "ancient-changes"
MAX_UPDATERS = 10
MAX_MANAGER = 128

_MAPS_OF_TEXT = frozenset(("labels", "annotations"))
_NOT_OWNED = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
)

# A manager: name, operation, API version ("" for appliers, who keep their entry across versions), subresource.
Identity = tuple[str, str, str, str]


class Managers:
    """The owners of one object's fields. Changed only through its methods; entries it was made from are not."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = {_identity(entry): entry for entry in entries}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __iter__(self) -> Any:
        return iter(list(self._entries))

    def fields(self, identity: Identity) -> FieldSet:
        entry = self._entries.get(identity)
        return entry["fieldsV1"] if entry else {}

    def put(self, identity: Identity, owned: FieldSet, api_version: str, now: str) -> None:
        """Sets what a manager owns; the time moves only when that changes."""
        entry = self._entries.get(identity)
        if entry and entry["fieldsV1"] == owned and entry["apiVersion"] == api_version:
            return
        self._entries.pop(identity, None)
        if owned:
            self._entries[identity] = _entry(identity, owned, api_version, now)

    def take(self, identity: Identity, lost: FieldSet) -> None:
        """Takes fields away from a manager, who goes when nothing is left."""
        entry = self._entries[identity]
        left = fieldsets.difference(entry["fieldsV1"], lost)
        if not left:
            del self._entries[identity]
        elif left != entry["fieldsV1"]:
            self._entries[identity] = entry | {"fieldsV1": left}

    def fold_old(self) -> None:
        """Joins the oldest updaters when there are too many, so that entries cannot pile up."""
        updaters = [identity for identity in self._entries if identity[1] == UPDATE]
        excess = len(updaters) - MAX_UPDATERS
        if excess <= 0:
            return
        updaters.sort(key=lambda identity: (self._entries[identity].get("time") or "", identity))
        for identity in updaters[: excess + 1]:
            entry = self._entries.pop(identity)
            bucket = (ANCIENT, UPDATE, entry["apiVersion"], "")
            joined = fieldsets.union(self.fields(bucket), entry["fieldsV1"])
            self._entries[bucket] = _entry(bucket, joined, entry["apiVersion"], entry.get("time") or "")

    def entries(self) -> list[Entry]:
        return sorted(
            self._entries.values(),
            key=lambda entry: (
                entry["operation"],
                entry.get("time") or "",
                entry["manager"],
                entry["apiVersion"],
                entry.get("subresource", ""),
            ),
        )


def _identity(entry: Entry) -> Identity:
    operation = entry["operation"]
    version = "" if operation == APPLY else entry["apiVersion"]
    return entry.get("manager", ""), operation, version, entry.get("subresource", "")


def _entry(identity: Identity, owned: FieldSet, api_version: str, now: str) -> Entry:
    manager, operation, _, subresource = identity
    entry: Entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
    }
    if subresource:
        entry["subresource"] = subresource
    return entry


def entries_of(stored: Obj | None) -> list[Entry]:
    """The entries of a stored object. They were made or checked here when they were stored."""
    return ((stored or {}).get("metadata") or {}).get("managedFields") or []


def _readable(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in (APPLY, UPDATE)
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
        and fieldsets.well_formed(entry.get("fieldsV1"))
    )


@lru_cache(maxsize=256)
def manager_of(field_manager: str, user_agent: str) -> str:
    """The name a write goes by: what it gives, or else the program in its User-Agent."""
    if field_manager:
        return field_manager
    program = "".join(letter for letter in user_agent.partition("/")[0] if letter.isprintable())
    return program[:MAX_MANAGER] or "unknown"


def update(
    old: Obj | None,
    new: Obj,
    schema: ObjectSchema,
    *,
    manager: str,
    api_version: str,
    now: str,
    subresource: str = "",
    track: bool = True,
) -> list[Entry]:
    """The managedFields of `new` after a create (old is None), update or patch by `manager`.

    Both objects are canonical and in `api_version`. `track` matters only where nothing is tracked yet: at creation.
    The entries a client wrote into `new` count, except through a subresource; an emptied list ([{}]) stops tracking.
    """
    live = entries_of(old)
    given = (new.get("metadata") or {}).get("managedFields")
    if given == [{}]:
        live = []
    elif given and given != live and not subresource and all(_readable(entry) for entry in given):
        live = given
    if not live:
        if old is not None or not track:
            return []
        owned = _owned_at_creation(new, schema, subresource)
        return [_entry((manager, UPDATE, api_version, subresource), owned, api_version, now)] if owned else []
    before = old if old is not None else schema.empty()
    changes = _changes(before, new, schema, subresource)
    if not changes.any:
        return live
    managers = Managers(live)
    taken = fieldsets.union(changes.added, changes.modified)
    identity = (manager, UPDATE, api_version, subresource)
    for other in managers:
        lost = changes.removed if other == identity else fieldsets.union(taken, changes.removed)
        managers.take(other, lost)
    if taken:
        managers.put(identity, fieldsets.union(managers.fields(identity), taken), api_version, now)
    managers.fold_old()
    return managers.entries()


def _owned_at_creation(new: Obj, schema: ObjectSchema, subresource: str) -> FieldSet:
    """What the creator of an object owns: all that it does not have by itself."""
    others = comparable(new, subresource)
    spec = others.pop("spec", None)
    written = b"" if spec is None else msgspec.json.encode(spec)
    meta: Obj = others["metadata"]
    if len(others) == 1 and meta.keys() <= _MAPS_OF_TEXT:
        return _owned_by_keys(schema, subresource, tuple([(name, *(meta[name] or ())) for name in meta]), written)
    changes = typed.compare(_initial_parts(schema, subresource), others, schema.rule)
    owned = fieldsets.union(changes.added, changes.modified)
    return owned if spec is None else fieldsets.union(owned, _owned_spec(schema, written))


@lru_cache(maxsize=512)
def _owned_by_keys(schema: ObjectSchema, subresource: str, maps: tuple[tuple[str, ...], ...], spec: bytes) -> FieldSet:
    """That, of an object with labels and annotations at most: who owns them depends on their keys alone."""
    new: Obj = {"metadata": {name: dict.fromkeys(keys, "") for name, *keys in maps}}
    changes = typed.compare(_initial_parts(schema, subresource), new, schema.rule)
    owned = fieldsets.union(changes.added, changes.modified)
    return fieldsets.union(owned, _owned_spec(schema, spec)) if spec else owned


@lru_cache(maxsize=1024)
def _initial_parts(schema: ObjectSchema, subresource: str) -> Obj:
    """The parts beside the spec that an object of this kind has by itself."""
    return {name: value for name, value in comparable(schema.empty(), subresource).items() if name != "spec"}


@lru_cache(maxsize=512)
def _owned_spec(schema: ObjectSchema, spec: bytes) -> FieldSet:
    """The spec's part of that. A thousand pods of one template have one spec, and it is most of the work."""
    before, new = schema.empty(), {"spec": msgspec.json.decode(spec)}
    bare = {"spec": before["spec"]} if "spec" in before else {}
    changes = typed.compare(bare, new, schema.rule)
    return fieldsets.union(changes.added, changes.modified)


def _changes(old: Obj, new: Obj, schema: ObjectSchema, subresource: str) -> typed.Changes:
    return typed.compare(comparable(old, subresource), comparable(new, subresource), schema.rule)


def comparable(obj: Obj, subresource: str) -> Obj:
    """The part of an object whose fields have owners: not its identity, and not what this write cannot change."""
    hidden = "spec" if subresource == "status" else "status"
    metadata = obj.get("metadata") or {}
    kept = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", hidden)}
    kept["metadata"] = {key: value for key, value in metadata.items() if key not in _NOT_OWNED}
    return kept
