"""Creating and changing objects: default, prepare, admit, validate, store.

A change is a function from the stored object to the new one, so that PUT, PATCH, apply and the subresources share one
implementation. Unless the client named a resourceVersion, a change that lost a race is computed again on the newer
object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.api.errors import (
    INVALID,
    ApiError,
    FieldError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from muster.server import codec, metadata
from muster.server.backend import Backend, ConfiguredAdmission
from muster.server.call import Call
from muster.server.managed_fields import set_owners, write_owners
from muster.server.resources.kind import Kind, Obj, Write
from muster.server.store.records import KeyExistsError, Record, RevisionMismatchError

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_RACES = 8

Make = Callable[[Obj], Obj]  # stored object (a fresh copy, storage version) -> new object (storage version)


class Outcome:
    """What a write left behind: a stored record, or the object of a dry run."""

    __slots__ = ("created", "obj", "record", "removed")

    def __init__(self, obj: Obj, record: Record | None, created: bool = False, removed: bool = False) -> None:
        self.obj = obj
        self.record = record
        self.created = created
        self.removed = removed


class ObjectWriter:
    """Carries out creates and updates of all kinds."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._store = backend.store

    # Create

    async def create(self, call: Call, obj: Obj) -> Outcome:
        """Store a new object; with generateName a taken name is replaced by another, a few times."""
        meta = self._check_new(call, obj)
        base: str = "" if meta.get("name") else meta.get("generateName", "")
        if not base:
            try:
                return await self._create_once(call, obj)
            except KeyExistsError:
                raise already_exists(call.kind.group, call.kind.plural, meta["name"]) from None
        name = ""
        for _ in range(metadata.GENERATE_ATTEMPTS):
            fresh = codec.copy(obj)
            name = self._backend.identifiers.name(call.kind.table, call.namespace, fresh["metadata"])
            fresh["metadata"]["name"] = name
            try:
                return await self._create_once(call, fresh)
            except KeyExistsError:
                continue
        raise _no_name_found(call.kind, name)

    def _check_new(self, call: Call, obj: Obj) -> Obj:
        meta = metadata.of(obj)
        if meta.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if call.name and meta.get("name", call.name) != call.name:
            raise bad_request(_wrong_name(meta["name"], call.name))
        if call.kind.namespaced and meta.get("namespace", call.namespace) not in (call.namespace, ""):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        return meta

    async def _create_once(self, call: Call, obj: Obj) -> Outcome:
        kind = call.kind
        stored = codec.to_storage(kind, call.view.version, obj)
        if kind.default is not None:
            kind.default(stored)
        metadata.begin(kind, stored, call.namespace, self._backend.clock(), self._backend.identifiers)
        owners = self._owners(call, stored, None)
        if kind.prepare is not None:
            kind.prepare(stored, None, "")
        set_owners(stored, owners)
        name: str = stored["metadata"].get("name", "")
        write = self._write(call, "CREATE", name)
        for admit in kind.admit:
            await admit(write, stored, None)
        dynamic = self._configured(write)
        if dynamic is not None:
            stored = await self._mutated(dynamic, call, write, stored, None, "")
        if self._backend.hooks.join_group is not None:
            self._backend.hooks.join_group(write, stored)
        self._validate(kind, stored, None, "")
        if dynamic is not None:
            await dynamic.validate(write, stored, None)
        key = (call.namespace if kind.namespaced else "", name)
        if self._store.head(kind.table, key) is not None:
            raise KeyExistsError(key)
        await self._charge_quota(write, stored, None)
        if call.dry_run:
            return Outcome(stored, None, created=True)
        kept = await codec.stored_form(kind, stored)
        record = await self._store.create(
            kind.table,
            key,
            stored["metadata"]["uid"],
            lambda revision: codec.encode(kind, kept, revision),
            codec.labels_in(stored),
            codec.select(kind, stored),
        )
        await codec.prepare(kind, (record,))
        return Outcome(stored, record, created=True)

    # Change

    async def change(self, call: Call, make: Make, *, expected: str = "", subresource: str = "") -> Outcome:
        """Replace an object by what `make` gives. `expected` is the resourceVersion the client insists on."""
        for _ in range(_RACES):
            record = self._store.head(call.kind.table, call.key)
            if record is None:
                raise not_found(call.kind.group, call.kind.plural, call.name)
            if expected and expected != str(record.revision):
                raise conflict(call.kind.group, call.kind.plural, call.name, MODIFIED)
            await codec.prepare(call.kind, (record,))
            try:
                return await self._change_once(call, record, make, subresource)
            except RevisionMismatchError:
                continue
        raise conflict(call.kind.group, call.kind.plural, call.name, MODIFIED)

    async def _change_once(self, call: Call, record: Record, make: Make, subresource: str) -> Outcome:
        kind = call.kind
        old = codec.load(kind, record)
        new = make(codec.load(kind, record))
        self._check_identity(call, new, old)
        if kind.default is not None:
            kind.default(new)
        metadata.carry_over(kind, new, old)
        owners = self._owners(call, new, old)
        if kind.prepare is not None:
            kind.prepare(new, old, subresource)
        set_owners(new, owners)
        metadata.count_generation(kind, new, old)
        write = self._write(call, "UPDATE", call.name)
        for admit in kind.admit:
            await admit(write, new, old)
        dynamic = self._configured(write)
        if dynamic is not None:
            new = await self._mutated(dynamic, call, write, new, old, subresource)
        self._validate(kind, new, old, subresource)
        if dynamic is not None:
            form = call.admission_form
            await dynamic.validate(write, *((new, old) if form is None else (form.show(new), form.show(old))))
        await self._charge_quota(write, new, old)
        if new == old or call.dry_run:
            await self._store.durable(record)
            return Outcome(new, record if new == old else None)
        if finished(kind, new):
            return Outcome(new, await self.remove(kind, record, new), removed=True)
        return Outcome(new, await self.replace(kind, record, new))

    async def replace(self, kind: Kind, record: Record, new: Obj) -> Record:
        """Store the next state of an object that is still at this record."""
        kept = await codec.stored_form(kind, new)
        replaced = await self._store.update(
            kind.table,
            record.key,
            record.revision,
            lambda revision: codec.encode(kind, kept, revision),
            codec.labels_in(new),
            codec.select(kind, new),
        )
        await codec.prepare(kind, (replaced,))
        return replaced

    async def remove(self, kind: Kind, record: Record, last: Obj) -> Record:
        """Remove an object that is still at this record; its last state is what watches see."""
        kept = await codec.stored_form(kind, last)
        removed = await self._store.delete(
            kind.table, record.key, record.revision, lambda revision: codec.encode(kind, kept, revision)
        )
        await codec.prepare(kind, (removed,))
        return removed

    def _configured(self, write: Write) -> ConfiguredAdmission | None:
        """The configured webhooks and policies, where there could be one for this write."""
        dynamic = self._backend.hooks.admission
        return dynamic if dynamic is not None and dynamic.asked(write) else None

    async def _mutated(
        self, dynamic: ConfiguredAdmission, call: Call, write: Write, new: Obj, old: Obj | None, subresource: str
    ) -> Obj:
        """The object as mutating admission leaves it, with everything that the server itself decides put back."""
        form = call.admission_form
        if form is None or old is None:
            changed = await dynamic.mutate(write, new, old)
            if changed is None or changed is new:
                return new
        else:
            shown = form.show(new)
            taken = await dynamic.mutate(write, shown, form.show(old))
            if taken is None or taken is shown:
                return new
            changed = form.take(codec.copy(new), taken)
        kind = call.kind
        metadata.keep_own_fields(changed, new)
        if kind.default is not None:
            kind.default(changed)
        owners = self._owners(call, changed, old)
        if kind.prepare is not None:
            kind.prepare(changed, old, subresource)
        set_owners(changed, owners)
        if old is not None:
            metadata.count_generation(kind, changed, old)
        return changed

    async def _charge_quota(self, write: Write, new: Obj, old: Obj | None) -> None:
        if write.kind.namespaced and self._backend.hooks.charge_quota is not None:
            await self._backend.hooks.charge_quota(write, new, old)

    def _owners(self, call: Call, new: Obj, old: Obj | None) -> list[Obj]:
        if call.applied:
            return new["metadata"].get("managedFields") or []
        return write_owners(call, new, old, self._backend.clock())

    def _check_identity(self, call: Call, new: Obj, old: Obj) -> None:
        meta = metadata.of(new)
        given = meta.get("name", "")
        if given != call.name:
            if not given:
                meta["name"] = call.name
            else:
                raise bad_request(_wrong_name(given, call.name))
        if call.kind.namespaced and meta.get("namespace", call.namespace) not in (call.namespace, ""):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        version = meta.get("resourceVersion", "")
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(call.kind.group, call.kind.plural, call.name, MODIFIED)
        uid, stored_uid = meta.get("uid", ""), old["metadata"]["uid"]
        if uid and uid != stored_uid:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}"
            raise conflict(call.kind.group, call.kind.plural, call.name, why)

    def _write(self, call: Call, operation: str, name: str) -> Write:
        return Write(
            call.kind,
            operation,
            call.namespace,
            name,
            call.path.subresource,
            call.user,
            call.dry_run,
            self._backend.reader,
            self._backend.clock(),
            call.warnings,
            call.view.version,
            None if call.admission_form is None else call.admission_form.posted,
        )

    def _validate(self, kind: Kind, new: Obj, old: Obj | None, subresource: str) -> None:
        errors = metadata.validate(kind, new, old)
        if kind.validate is not None:
            errors += kind.validate(new, old, subresource)
        if errors:
            raise invalid(kind.group, kind.kind, new["metadata"].get("name", ""), errors)


def put(call: Call, obj: Obj) -> tuple[Make, str]:
    """The change of a PUT: the client's object instead of the stored one, and the resourceVersion it insists on."""
    meta = metadata.of(obj)
    version: str = meta.get("resourceVersion", "")
    if version and not (version.isascii() and version.isdigit()):
        wrong = FieldError(INVALID, "metadata.resourceVersion", version, "must be a resource version the server gave")
        raise invalid(call.kind.group, call.kind.kind, call.name, [wrong])
    if version.strip("0") == "":
        version = ""
        meta.pop("resourceVersion", None)
    if not version and not call.kind.unconditional_update:
        wrong = FieldError(INVALID, "metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(call.kind.group, call.kind.kind, call.name, [wrong])
    stored = codec.to_storage(call.kind, call.view.version, obj)

    def make(_: Obj) -> Obj:
        return codec.copy(stored)

    return make, version


def finished(kind: Kind, obj: Obj) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    meta: dict[str, Any] = obj["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if kind.graceful and meta.get("deletionGracePeriodSeconds", 0) > 0:
        return False
    return not (kind.plural == "namespaces" and obj.get("spec", {}).get("finalizers"))


def shown(call: Call, outcome: Outcome) -> bytes:
    """The object that a write answers with."""
    if outcome.record is not None:
        return call.view.object(outcome.record)
    return call.view.encode(outcome.obj)


def _wrong_name(given: str, wanted: str) -> str:
    return f"the name of the object ({given}) does not match the name on the URL ({wanted})"


def _no_name_found(kind: Kind, name: str) -> ApiError:
    error = already_exists(kind.group, kind.plural, name)
    message = f"{error.message}, the server was not able to generate a unique name for the object"
    return ApiError(409, "AlreadyExists", message, error.details)
