"""Deletes objects: at once, gracefully, or when the last finalizer is gone.

Pods that run on a node get a deletionTimestamp in the future and wait for their kubelet; everything else goes at once
unless finalizers hold it. The propagation policy only sets the finalizers that the garbage collector works off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.api.errors import INVALID, FieldError, bad_request, conflict, invalid, not_found
from muster.server import bodies, codec, metadata
from muster.server.backend import Backend
from muster.server.call import Call
from muster.server.metadata import FOREGROUND, ORPHAN
from muster.server.object_writer import MODIFIED, ObjectWriter, Outcome, finished
from muster.server.resources.kind import Kind, Obj, Write
from muster.server.store.records import Record, RevisionMismatchError

_RACES = 8
_OPTIONS = ("", "v1", "DeleteOptions")
_POLICIES = ("Orphan", "Background", "Foreground")


@dataclass(slots=True)
class DeleteOptions:
    """What a client says about a deletion."""

    grace: int | None = None
    policy: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def delete_options(call: Call) -> DeleteOptions:
    """From the body (kubectl sends one without kind) and from query parameters."""
    request = call.request
    return options_from(bodies.decode(request, _OPTIONS)[0] if request.body.strip() else {}, call)


def options_from(given: Obj, call: Call) -> DeleteOptions:
    """The options as posted, completed from the query."""
    request = call.request
    preconditions: Any = given.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise bad_request("preconditions must be an object")
    dry_run: Any = given.get("dryRun") or []
    return DeleteOptions(
        _asked_grace(given.get("gracePeriodSeconds"), request.arg("gracePeriodSeconds")),
        _policy(given, request.arg("propagationPolicy"), request.arg("orphanDependents")),
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        call.dry_run or (isinstance(dry_run, list) and "All" in dry_run),
    )


def _asked_grace(posted: Any, argument: str) -> int | None:
    if posted is None and argument:
        posted = int(argument) if argument.lstrip("-").isdigit() and len(argument) < 12 else argument
    if posted is None:
        return None
    if isinstance(posted, bool) or not isinstance(posted, int):
        raise bad_request("gracePeriodSeconds must be an integer")
    # A negative grace period means the smallest one that still lets the kubelet act.
    return posted if posted >= 0 else 1


def _policy(given: Obj, policy_argument: str, orphan_argument: str) -> str:
    policy: Any = given.get("propagationPolicy") or policy_argument
    orphan: Any = given.get("orphanDependents")
    if orphan is None and orphan_argument:
        orphan = orphan_argument in ("true", "1")
    if policy and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        raise _wrong_option("propagationPolicy", policy, why)
    if policy and policy not in _POLICIES:
        listed = ", ".join(f'"{known}"' for known in (*_POLICIES[::-1], "nil"))
        raise _wrong_option("propagationPolicy", policy, f"must be one of: {listed}")
    if policy:
        return policy
    if orphan is None:
        return ""
    return "Orphan" if orphan else "Background"


def _wrong_option(field: str, value: Any, why: str) -> Exception:
    return invalid("meta.k8s.io", "DeleteOptions", "", [FieldError(INVALID, field, value, why)])


class ObjectDeleter:
    """Carries out DELETE of one object."""

    def __init__(self, backend: Backend, writer: ObjectWriter) -> None:
        self._backend = backend
        self._store = backend.store
        self._writer = writer

    async def delete(self, call: Call, options: DeleteOptions) -> Outcome:
        """Remove an object or begin its removal."""
        for _ in range(_RACES):
            record = self._store.head(call.kind.table, call.key)
            if record is None:
                raise not_found(call.kind.group, call.kind.plural, call.name)
            await codec.prepare(call.kind, (record,))
            try:
                return await self._delete_once(call, record, options)
            except RevisionMismatchError:
                continue
        raise conflict(call.kind.group, call.kind.plural, call.name, MODIFIED)

    async def _delete_once(self, call: Call, record: Record, options: DeleteOptions) -> Outcome:
        kind = call.kind
        self._check_preconditions(call, record, options)
        old = codec.load(kind, record)
        write = Write(
            kind,
            "DELETE",
            call.namespace,
            call.name,
            "",
            call.user,
            options.dry_run,
            self._backend.reader,
            self._backend.clock(),
            call.warnings,
            call.view.version,
        )
        for admit in kind.admit:
            await admit(write, old, old)
        # Of an eviction, others have seen the Eviction.
        dynamic = self._backend.hooks.admission if call.path.subresource != "eviction" else None
        if dynamic is not None and dynamic.asked(write):
            await dynamic.mutate(write, None, old)
            await dynamic.validate(write, None, old)
        new = self._terminating(kind, codec.copy(old), options)
        if finished(kind, new):
            # An object that is removed at once is returned as it was; only one that waited has a deletionTimestamp.
            return await self._remove(kind, record, old if "deletionTimestamp" not in old["metadata"] else new, options)
        if new == old:
            await self._store.durable(record)
            return Outcome(old, record)
        if kind.generation and "deletionTimestamp" not in old["metadata"]:
            new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if options.dry_run:
            return Outcome(new, None)
        return Outcome(new, await self._writer.replace(kind, record, new))

    async def _remove(self, kind: Kind, record: Record, last: Obj, options: DeleteOptions) -> Outcome:
        if options.dry_run:
            return Outcome(last, record, removed=True)
        return Outcome(last, await self._writer.remove(kind, record, last), removed=True)

    def _check_preconditions(self, call: Call, record: Record, options: DeleteOptions) -> None:
        if options.uid and options.uid != record.uid:
            why = (
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({record.uid}). "
                "The object might have been deleted and then recreated"
            )
            raise conflict(call.kind.group, call.kind.plural, call.name, why)
        if options.resource_version and options.resource_version != str(record.revision):
            why = (
                f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
                f"ResourceVersion in record ({record.revision}). The object might have been modified"
            )
            raise conflict(call.kind.group, call.kind.plural, call.name, why)

    def _terminating(self, kind: Kind, obj: Obj, options: DeleteOptions) -> Obj:
        """The object with what a deletion asks for written on it."""
        meta = obj["metadata"]
        self._set_propagation(meta, options.policy)
        grace = _grace(obj, options.grace) if kind.graceful else 0
        first = "deletionTimestamp" not in meta
        if first:
            meta["deletionTimestamp"] = metadata.timestamp(self._backend.clock() + grace)
            meta["deletionGracePeriodSeconds"] = grace
        elif grace < meta.get("deletionGracePeriodSeconds", 0):
            # A later request may shorten the wait, never lengthen it.
            meta["deletionTimestamp"] = metadata.timestamp(self._backend.clock() + grace)
            meta["deletionGracePeriodSeconds"] = grace
        if kind.deletion_finalizer and kind.deletion_finalizer not in (meta.get("finalizers") or ()) and first:
            meta["finalizers"] = [*(meta.get("finalizers") or ()), kind.deletion_finalizer]
        if kind.plural == "namespaces" and not kind.group:
            obj.setdefault("status", {})["phase"] = "Terminating"
        return obj

    def _set_propagation(self, meta: Obj, policy: str) -> None:
        if not policy:
            return
        finalizers: list[str] = [entry for entry in meta.get("finalizers") or () if entry not in (ORPHAN, FOREGROUND)]
        if policy == "Orphan":
            finalizers.append(ORPHAN)
        elif policy == "Foreground":
            finalizers.append(FOREGROUND)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)


def _grace(pod: Obj, asked: int | None) -> int:
    """How long a pod may take to stop: nothing runs where it is bound to no node or has ended."""
    spec: Obj = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return asked
    return int(spec.get("terminationGracePeriodSeconds", 30))
