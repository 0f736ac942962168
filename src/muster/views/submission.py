"""Manifests as the scheduler would see them once submitted: defaulted, admitted, validated, Jobs expanded to pods.

An API server in memory with its controllers takes the manifests, so whatever it refuses here it would refuse there, in
the same words. Names, uids and creation times do not depend on chance or on the speed of this machine: the same
manifests lead to the same answer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import (
    CORE_EVENTS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    Resource,
)
from muster.views.failures import ViewFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.api.gates import FeatureGates
    from muster.client.protocol import Client, Obj
    from muster.plane.idle import Unfinished
    from muster.plane.plane import Plane
    from muster.scheduler.interface.events import ObjectUpdated
    from muster.scheduler.simulation.snapshot import Snapshot
    from muster.views.documents import Document

Batch = list["Document"]
Name = tuple[str, str, str]  # kind, namespace, name

FIRST = ("Namespace", "PriorityClass")  # what admission of the others asks for
EXPANDED = (DEPLOYMENTS, JOBS, REPLICA_SETS)
"""The kinds whose pods the controllers create at once."""
JOB_CONTROLLER = "kubernetes.io/job-controller"
TIME_LIMIT_SECONDS = 60.0
"""How long the controllers may take to create the pods of one batch."""


async def submit(batches: list[Batch], snapshot: Snapshot, namespace: str) -> list[list[ObjectUpdated]]:
    """For each batch of manifests the events that submitting it would cause in the cluster of the snapshot."""
    from muster.engine.cluster_snapshot import take_snapshot
    from muster.engine.ignored_fields import visible_events
    from muster.plane.options import Options
    from muster.plane.plane import Plane
    from muster.views.custom_resources import as_native, name_custom_resources

    documents = [document for batch in batches for document in batch]
    custom = snapshot.groups_by_label or name_custom_resources(documents)
    if custom:
        batches = [[as_native(document) for document in batch] for batch in batches]
        documents = [document for batch in batches for document in batch]
    for document in documents:
        _check_expandable(document)
    clock = BatchClock()
    gates, managers = _gates_of_jobs(snapshot, custom), _managers_of(documents)
    options = Options(
        https=False,
        scheduler=False,
        freeze=False,
        repeatable_names=True,
        clock=clock,
        gates=gates,
        simulated_managers=managers,
        workloads=bool(managers),
    )
    events: list[list[ObjectUpdated]] = []
    async with Plane(options) as plane:
        client = plane.client
        await _prepare(client, [document.value for document in documents], snapshot, namespace)
        known = {_uid(obj) for _, obj in _objects(await take_snapshot(client))}
        numbering = Numbering(snapshot)
        # Wherever they stand: whoever submits several files expects them to know each other's classes.
        for document in (each for each in documents if each.value.get("kind") in FIRST):
            await _create(client, document, namespace)
        for batch in batches:
            clock.next_batch()
            for document in (each for each in batch if each.value.get("kind") not in FIRST):
                await _create(client, document, namespace)
            await _wait_idle(plane)
            new = [(kind, obj) for kind, obj in _objects(await take_snapshot(client)) if _uid(obj) not in known]
            known |= {_uid(obj) for _, obj in new}
            events.append(list(visible_events(numbering.events(new), snapshot.feature_gates())))
    return events


def _managers_of(documents: Batch) -> tuple[str, ...]:
    """The simulated managers that the manifests need."""
    from muster.controllers.simulated_managers.definitions import KINDS

    named = {(str(each.value.get("apiVersion")).partition("/")[0], each.value.get("kind")) for each in documents}
    return tuple(name for name, resource in KINDS.items() if (resource.group, resource.kind) in named)


def _gates_of_jobs(snapshot: Snapshot, custom: bool) -> FeatureGates:
    """Who makes groups for Jobs is the same here as there; what the scheduler ignores is submitted all the same.

    Where groups are custom resources nobody makes them for Jobs.
    """
    from muster.api.gates import INFER_JOB_GANG, WORKLOAD_WITH_JOB, resolve

    if custom:
        return resolve({WORKLOAD_WITH_JOB: False})[0]
    return resolve({name: on for name, on in snapshot.gates.items() if name in (WORKLOAD_WITH_JOB, INFER_JOB_GANG)})[0]


class BatchClock:
    """A clock that stands still while a batch is submitted; each batch is a second later than the one before it."""

    def __init__(self) -> None:
        self._now = time.time()

    def __call__(self) -> float:
        return self._now

    def next_batch(self) -> None:
        """Move on to the second of the next batch."""
        self._now += 1.0


def _objects(snapshot: Snapshot) -> Iterator[tuple[str, Any]]:
    for event in snapshot.events():
        yield event.kind, event.object


def _uid(obj: Any) -> str:
    return obj.metadata.uid


class Numbering:
    """Gives submitted objects uids in order of kind and name; what the cluster has already is changed, not created."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._existing: dict[Name, Any] = {_name(kind, obj): obj for kind, obj in _objects(snapshot)}
        self._count = 0

    def events(self, objects: list[tuple[str, Any]]) -> list[ObjectUpdated]:
        """The objects as events, pods last."""
        from muster.scheduler.interface.events import ObjectUpdated

        order = sorted(objects, key=lambda item: (item[0] == "Pod", *_name(*item)))
        numbered = [(kind, obj, self._numbered(kind, obj)) for kind, obj in order if not self._is_kept(kind, obj)]
        uids = {_uid(obj): _uid(new) for _, obj, new in numbered}
        return [ObjectUpdated(kind, _owned(new, uids) if kind == "ResourceClaim" else new) for kind, _, new in numbered]

    def _is_kept(self, kind: str, obj: Any) -> bool:
        """Whether the cluster has an object that submitting it again does not change."""
        return kind in ("Pod", *FIRST) and _name(kind, obj) in self._existing

    def _numbered(self, kind: str, obj: Any) -> Any:
        old = self._existing.get(_name(kind, obj))
        if old is not None:
            kept: dict[str, Any] = {"status": old.status} if hasattr(old, "status") else {}
            return msgspec.structs.replace(obj, metadata=old.metadata, **kept)
        self._count += 1
        meta = msgspec.structs.replace(obj.metadata, uid=f"simulated-{self._count:06d}")
        return msgspec.structs.replace(obj, metadata=meta)


def _owned(claim: Any, uids: dict[str, str]) -> Any:
    """A claim whose owners have their new uids: a pod only takes a claim that was made for it."""
    known = claim.metadata.owner_references or ()
    owners = tuple(msgspec.structs.replace(owner, uid=uids.get(owner.uid, owner.uid)) for owner in known)
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, owner_references=owners))


def _name(kind: str, obj: Any) -> Name:
    return (kind, obj.metadata.namespace, obj.metadata.name)


# --- what can be submitted -------------------------------------------------------------------------


def _check_expandable(document: Document) -> None:
    """Refuse an object whose pods no controller here would create: its pods would silently be left out."""
    obj: Obj = document.value
    spec: Any = obj.get("spec")
    if not isinstance(spec, dict) or not ("template" in spec or "jobTemplate" in spec):
        return
    kind, group = str(obj.get("kind")), str(obj.get("apiVersion")).rpartition("/")[0]
    if (group, kind) not in {(each.group, each.kind) for each in EXPANDED}:
        raise _unsupported(document, f"the pods of a {kind} ({obj.get('apiVersion')}) cannot be simulated")
    manager: Any = obj["spec"].get("managedBy")
    if kind == JOBS.kind and manager not in (None, JOB_CONTROLLER):
        raise _unsupported(document, f"its pods are created by {manager}, which does not run in a simulation")


def _unsupported(document: Document, why: str) -> ViewFailure:
    names = [*(each.kind for each in EXPANDED), "JobSet", "LeaderWorkerSet"]
    kinds = " and ".join((", ".join(names[:-1]), names[-1]))
    message = f"{_place(document)}: {why}; simulate creates the pods of {kinds}, and takes Pods as they are written"
    return ViewFailure(message)


def _place(document: Document) -> str:
    return f"{document.source}:{document.line}: {_title(document.value)}"


def _metadata(obj: Obj) -> Obj:
    return obj.get("metadata") or {}


def _title(obj: Obj) -> str:
    meta = _metadata(obj)
    return f"{obj.get('kind')}/{meta.get('name') or meta.get('generateName') or '?'}"


# --- the server in memory --------------------------------------------------------------------------


async def _prepare(client: Client, objects: list[Obj], snapshot: Snapshot, namespace: str) -> None:
    """Create what admission asks for: the namespaces and priority classes of the cluster."""
    names = {str(_metadata(obj).get("namespace") or namespace) for obj in objects} - {"default"}
    own = {str(_metadata(obj).get("name")) for obj in objects if obj.get("kind") in FIRST}
    for name in sorted(names - own):
        await _ensure(client, NAMESPACES, {"metadata": {"name": name}})
    for each in snapshot.objects.get("PriorityClass", ()):
        if each.metadata.name not in own:
            body: Obj = {
                "metadata": {"name": each.metadata.name},
                "value": each.value,
                "globalDefault": each.global_default,
                "preemptionPolicy": each.preemption_policy or "PreemptLowerPriority",
            }
            await _ensure(client, PRIORITY_CLASSES, body)


async def _ensure(client: Client, resource: Resource, obj: Obj) -> None:
    try:
        await client.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj})
    except ApiError as error:
        if error.code not in (409, 403, 422):  # there already, or a system class
            raise


async def _create(client: Client, document: Document, namespace: str) -> None:
    obj: Obj = document.value
    kind, version = str(obj.get("kind")), str(obj.get("apiVersion"))
    resource = await resource_of(client, version, kind)
    if resource is None:
        raise _unsupported(document, f"{version} has no kind {kind} that can be simulated")
    where: str = _metadata(obj).get("namespace") or namespace
    try:
        await client.create(resource, obj, where if resource.namespaced else None)
    except ApiError as error:
        raise ViewFailure(f"{_title(obj)}: {error.message}") from error


async def resource_of(client: Client, api_version: str, kind: str) -> Resource | None:
    """The resource that serves a kind, as discovery names it."""
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{api_version}" if group else f"/api/{api_version}"
    try:
        answer = await client.request("GET", path)
    except ApiError:
        return None
    resources: list[Obj] = answer.get("resources") or []
    for each in resources:
        if each["kind"] == kind and "/" not in each["name"]:
            return Resource(group, version, each["name"], kind, each["namespaced"])
    return None


async def _wait_idle(plane: Plane) -> None:
    """Wait until the controllers have created the pods that Jobs, Deployments and ReplicaSets ask for."""
    unfinished = await plane.wait_idle(TIME_LIMIT_SECONDS)
    if not unfinished:
        return
    if all(each.failures for each in unfinished):
        reasons = [await _failure_of(plane.client, each) for each in unfinished]
        raise ViewFailure(f"the pods cannot be created: {'; '.join(reasons)}")
    works = ", ".join(sorted(f"{each.controller} {each.key}" for each in unfinished)[:3])
    limit = f"the controllers did not finish within {TIME_LIMIT_SECONDS:g} s ({works})"
    raise ViewFailure(f"{limit}, so some pods are missing and there is no answer", undecided=True)


async def _failure_of(client: Client, unfinished: Unfinished) -> str:
    """What a controller that fails said last in an event about the object."""
    name = unfinished.key.rpartition("/")[2]
    events = await client.list(CORE_EVENTS, field_selector=f"type=Warning,involvedObject.name={name}")
    messages = [str(each.get("message")) for each in events.items]
    return f"{unfinished.key}: {messages[-1] if messages else f'{unfinished.controller} fails'}"
