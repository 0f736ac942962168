"""Brings the groups of one workload to what its tree says: creates, changes minimums, deletes, each in a safe order.

Parents are created before children and deleted after them. What belongs to somebody else is never touched: a name that
is taken is reported. Minimums of a running gang grow only when the pods are there, else a replacement of one of the old
pods would wait for the new ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from muster.api.errors import ApiError
from muster.api.expected_members import EXPECTED_MEMBERS
from muster.api.groups import GROUP, HUB, POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED
from muster.api.membership import OWNER_UID
from muster.api.resources import Resource
from muster.api.versions import convert
from muster.client.protocol import Client
from muster.controllers.informers import ObjectStore
from muster.controllers.objects import UnstructuredObject, controller_of
from muster.controllers.workloads.group_objects import MADE_FOR_PODS, GroupSet
from muster.controllers.workloads.seen_leaves import LeafKey, SeenLeaves
from muster.controllers.workloads.tree import JSON, Remark

AT_ONCE = 16
_LOOK_AGAIN = 1.0

Stores = dict[str, ObjectStore]  # by kind


class Outcome(NamedTuple):
    """What is left to say and to do."""

    remarks: tuple[Remark, ...] = ()
    again: float | None = None
    growing: frozenset[LeafKey] = frozenset()  # leaves whose minimum rises when their pods are there


class GroupWriter:
    """Writes the groups of all workloads of one server."""

    def __init__(self, client: Client, stores: Stores, seen: SeenLeaves) -> None:
        self._client = client
        self._stores = stores
        self._seen = seen
        self._workload_uids: dict[tuple[str, str], str] = {}  # of those that were just made
        self._by_owner = {kind: store.index("by-controller", _controller_uid) for kind, store in stores.items()}
        self._by_parent = {
            kind: store.index("by-parent", _parent_of) for kind, store in stores.items() if kind != "Workload"
        }

    def existing(self, uid: str, kind: str) -> list[UnstructuredObject]:
        """The groups of a kind that were made here for the workload with this uid."""
        if kind not in self._by_owner:
            return []
        found: list[UnstructuredObject] = self._by_owner[kind].get(uid)
        return [each for each in found if (each.metadata.labels or {}).get(OWNER_UID) == uid]

    async def bring_about(self, uid: str, wanted: GroupSet) -> Outcome:
        """Create what is missing, change what differs, delete what is too much."""
        if not self._can_have(wanted):
            text = "the server does not serve CompositePodGroup and Workload: only groups without a tree can be made"
            return Outcome((Remark("TreesNotServed", text),))
        outcome = _Progress()
        owned = {"Workload": wanted.workloads, "CompositePodGroup": wanted.composites, "PodGroup": wanted.groups}
        for kind, objects in owned.items():
            if kind == "PodGroup":
                await self._at_once(lambda obj: self._ensure("PodGroup", uid, obj, outcome), objects)
            else:
                for obj in objects:
                    await self._ensure(kind, uid, obj, outcome)
        for made in wanted.workloads:
            self._workload_uids.pop((made["metadata"]["namespace"], made["metadata"]["name"]), None)
        for kind in ("PodGroup", "CompositePodGroup", "Workload"):
            names = {each["metadata"]["name"] for each in owned[kind]}
            too_many = [each for each in self.existing(uid, kind) if each.metadata.name not in names]
            await self._at_once(lambda obj, kind=kind: self._delete(kind, obj, outcome), too_many)
        return outcome.done()

    def _can_have(self, wanted: GroupSet) -> bool:
        return not wanted.composites or ("CompositePodGroup" in self._stores and "Workload" in self._stores)

    async def _at_once(self, work: Callable[[Any], Any], objects: Iterable[Any]) -> None:
        """Many writes at the same time, but not more than a server takes well; the first error is raised at the end."""
        waiting = list(objects)
        for start in range(0, len(waiting), AT_ONCE):
            done = await asyncio.gather(
                *(work(obj) for obj in waiting[start : start + AT_ONCE]), return_exceptions=True
            )
            for each in done:
                if isinstance(each, BaseException):
                    raise each

    # --- create ------------------------------------------------------------------------------------

    async def _ensure(self, kind: str, uid: str, obj: JSON, outcome: _Progress) -> None:
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        known: UnstructuredObject | None = self._stores[kind].get(namespace, name)
        if known is None:
            await self._create(kind, uid, obj, outcome)
        elif _controller_uid(known) == uid:
            await self._change(kind, known, obj, outcome)
        else:
            self._taken(kind, known.metadata, outcome)

    async def _create(self, kind: str, uid: str, obj: JSON, outcome: _Progress) -> None:
        resource = self._stores[kind].resource
        body = in_version(obj, resource)
        if reference := (obj.get("spec") or {}).get("workloadRef"):
            self._add_workload(body, obj["metadata"]["namespace"], reference["workloadName"])
        try:
            made = await self._client.create(resource, body, obj["metadata"]["namespace"])
            if kind == "Workload":
                self._workload_uids[obj["metadata"]["namespace"], obj["metadata"]["name"]] = made["metadata"]["uid"]
        except ApiError as error:
            if error.code != 409:
                raise
            live = await self._client.get(resource, obj["metadata"]["name"], obj["metadata"]["namespace"])
            owners = live["metadata"].get("ownerReferences") or ()
            if not any(each.get("controller") and each.get("uid") == uid for each in owners):
                self._taken(kind, _Meta.of(live), outcome)

    def _add_workload(self, body: JSON, namespace: str, name: str) -> None:
        """The Workload owns its groups as well, where it is known already."""
        found: UnstructuredObject | None = self._stores["Workload"].get(namespace, name)
        uid = found.metadata.uid if found is not None else self._workload_uids.get((namespace, name))
        if uid is not None:
            resource = self._stores["Workload"].resource
            body["metadata"]["ownerReferences"] = [
                *body["metadata"]["ownerReferences"],
                {
                    "apiVersion": resource.api_version,
                    "kind": resource.kind,
                    "name": name,
                    "uid": uid,
                },
            ]

    def _taken(self, kind: str, meta: Any, outcome: _Progress) -> None:
        if meta.deletion_timestamp is not None:
            outcome.again = _LOOK_AGAIN  # of an object of the same name that is on its way out
        elif MADE_FOR_PODS not in (meta.labels or {}):
            text = f"{kind} {meta.name} exists and belongs to somebody else: the pods that name it are in that group"
            outcome.remarks.append(Remark("GroupNameTaken", text))

    # --- change ------------------------------------------------------------------------------------

    async def _change(self, kind: str, known: UnstructuredObject, obj: JSON, outcome: _Progress) -> None:
        if kind == "Workload":
            return
        namespace, name = known.metadata.namespace, known.metadata.name
        patch: JSON = {}
        old, new = _minimum(known.spec), _minimum(obj["spec"])
        if old is not None and new is not None and old != new:
            if kind == "PodGroup" and new > old and not self._may_grow(known, new):
                outcome.growing.add(LeafKey(namespace, name))
            else:
                word = "minCount" if kind == "PodGroup" else "minGroupCount"
                patch["spec"] = {"schedulingPolicy": {"gang": {word: new}}}
        expects = (obj["metadata"].get("annotations") or {}).get(EXPECTED_MEMBERS)
        if expects != (known.metadata.annotations or {}).get(EXPECTED_MEMBERS):
            patch["metadata"] = {"annotations": {EXPECTED_MEMBERS: expects}}
        if _frozen(known.spec) != _frozen(obj["spec"]) or (old is None) != (new is None):
            await self._replace(kind, known, outcome)
        elif patch:
            await self._patch(kind, known, patch, outcome)

    def _may_grow(self, known: UnstructuredObject, minimum: int) -> bool:
        running = any(
            each.get("type") in (POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED) and each.get("status") == "True"
            for each in known.status.get("conditions") or ()
        )
        return not running or self._seen.count(LeafKey(known.metadata.namespace, known.metadata.name)) >= minimum

    async def _patch(self, kind: str, known: UnstructuredObject, patch: JSON, outcome: _Progress) -> None:
        meta = {**patch.get("metadata", {}), "uid": known.metadata.uid}
        try:
            await self._client.patch(
                self._stores[kind].resource,
                known.metadata.name,
                {**patch, "metadata": meta},
                known.metadata.namespace,
            )
        except ApiError as error:
            if error.code != 422:
                raise
            text = f"{kind} {known.metadata.name} cannot be changed on this server: {error.message}"
            outcome.remarks.append(Remark("GroupUnchanged", text))

    async def _replace(self, kind: str, known: UnstructuredObject, outcome: _Progress) -> None:
        """Fields that are fixed at creation differ: a group that nobody needs is made anew, another stays."""
        leaf = LeafKey(known.metadata.namespace, known.metadata.name)
        used = leaf in self._seen if kind == "PodGroup" else bool(self._children(leaf))
        if used:
            text = f"{kind} {leaf.name} keeps what it was created with; only a group without members can be made anew"
            outcome.remarks.append(Remark("GroupUnchanged", text))
        elif known.metadata.deletion_timestamp is None:
            await self._remove(kind, known)
            outcome.again = _LOOK_AGAIN

    # --- delete ------------------------------------------------------------------------------------

    def _children(self, key: LeafKey) -> list[UnstructuredObject]:
        return [child for index in self._by_parent.values() for child in index.get(key)]

    async def _delete(self, kind: str, known: UnstructuredObject, outcome: _Progress) -> None:
        key = LeafKey(known.metadata.namespace, known.metadata.name)
        if known.metadata.deletion_timestamp is not None:
            return
        if kind == "PodGroup" and key in self._seen:
            return  # with its last pod
        if kind == "CompositePodGroup" and self._children(key):
            return  # with its last child
        if kind == "Workload" and any(
            (each.spec.get("workloadRef") or {}).get("workloadName") == key.name
            for other in ("CompositePodGroup", "PodGroup")
            for each in self.existing((known.metadata.labels or {}).get(OWNER_UID, ""), other)
        ):
            return
        await self._remove(kind, known)

    async def _remove(self, kind: str, known: UnstructuredObject) -> None:
        try:
            await self._client.delete(
                self._stores[kind].resource, known.metadata.name, known.metadata.namespace, uid=known.metadata.uid
            )
        except ApiError as error:
            if error.code not in (404, 409):
                raise


class _Progress:
    """An outcome in the making."""

    def __init__(self) -> None:
        self.remarks: list[Remark] = []
        self.again: float | None = None
        self.growing: set[LeafKey] = set()

    def done(self) -> Outcome:
        return Outcome(tuple(self.remarks), self.again, frozenset(self.growing))


class _Meta(NamedTuple):
    name: str
    deletion_timestamp: str | None
    labels: dict[str, str] | None

    @staticmethod
    def of(obj: JSON) -> _Meta:
        meta = obj["metadata"]
        return _Meta(meta["name"], meta.get("deletionTimestamp"), meta.get("labels"))


def in_version(obj: JSON, resource: Resource) -> JSON:
    """An object of the hub version as the server takes it: in another version, or as a custom resource."""
    if resource.group == GROUP and resource.version not in (HUB, "v1beta1"):
        obj = convert(obj, resource.version)
    return {**obj, "apiVersion": resource.api_version, "metadata": {**obj["metadata"]}}


def _controller_uid(obj: UnstructuredObject) -> str | None:
    owner = controller_of(obj.metadata)
    return owner.uid if owner is not None else None


def _parent_of(group: UnstructuredObject) -> tuple[str, str] | None:
    parent = group.spec.get("parentCompositePodGroupName")
    return (group.metadata.namespace, parent) if parent else None


def _minimum(spec: JSON) -> int | None:
    gang: JSON = (spec.get("schedulingPolicy") or {}).get("gang") or {}
    return gang.get("minCount") or gang.get("minGroupCount")


def _frozen(spec: JSON) -> tuple[Any, ...]:
    """What a server does not let change, as far as it is decided here."""
    topology = [each.get("key") for each in (spec.get("schedulingConstraints") or {}).get("topology") or ()]
    whole = (spec.get("disruptionMode") or {}).get("all") is not None
    return (topology, whole, spec.get("parentCompositePodGroupName") or "")
