"""Makes the groups of workloads and keeps them as their workloads are: created, scaled, suspended, restarted, deleted.

It reads workloads and pods and writes groups, nothing else. What it makes is controlled by the workload, so that the
garbage collector removes it with it. A kind is watched from when the server serves it until it does not any more. A
leaf that pods name and that no workload explains becomes a basic group after a while, so that nothing waits for ever,
and an event says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

from muster.api.errors import ApiError
from muster.api.gates import INFER_JOB_GANG
from muster.api.membership import KUEUE_LEAF, MANAGED_LABEL, WorkloadKey, is_legal
from muster.api.resources import NAMESPACES, POD_GROUPS, PODS, Resource
from muster.client.access_review import READ, missing_rights
from muster.controllers.controller import Context, Controller
from muster.controllers.informers import ObjectStore
from muster.controllers.objects import PodView, UnstructuredObject, controller_of, json_of
from muster.controllers.workloads import plain_pods
from muster.controllers.workloads.group_objects import MADE_FOR_PODS, GroupSet
from muster.controllers.workloads.group_writer import GroupWriter, in_version
from muster.controllers.workloads.kinds import KINDS, OWN_MANAGERS, PARENTS, WATCHED, WorkloadKind
from muster.controllers.workloads.seen_leaves import LeafKey, OwnerKey, SeenLeaf, SeenLeaves
from muster.controllers.workloads.settings import WorkloadSettings
from muster.controllers.workloads.tree import JSON, NOTHING, Remark, Sight, Tree, at
from muster.logs import keys

log = logging.getLogger(__name__)

DISCOVERY_PERIOD = 10.0
RIGHTS_PERIOD = 60.0
_DEFAULT_SCHEDULER = "default-scheduler"
_ENDED = ("Complete", "Completed", "Failed", "Succeeded")

Served = tuple[str, str]  # API group, kind


class WorkloadController(Controller):
    name = "workload-controller"
    workers = 8

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._settings: WorkloadSettings | None = context.workloads
        self._kinds: dict[Served, tuple[WorkloadKind, ObjectStore]] = {}
        self._parents: dict[Served, ObjectStore] = {}
        self._refused: dict[Served, str] = {}  # kinds that cannot be read, and why
        self._said: dict[str, set[Remark]] = {}  # by the uid of the owner
        self._growing: set[LeafKey] = set()

    # --- what is watched ---------------------------------------------------------------------------

    def setup(self) -> None:
        settings = self._settings
        if settings is None:
            return
        self._seen = SeenLeaves(settings.schedulers)
        self._namespaces = self.watch(NAMESPACES)
        stores = {
            each.kind: self.watch(each)
            for each in (settings.workloads, settings.composites, settings.pod_groups)
            if each is not None
        }
        self._groups = stores[POD_GROUPS.kind]
        self._writer = GroupWriter(self.client, stores, self._seen)
        for store in stores.values():
            store.on_change(self._group_changed)
        self._pods = self.watch(PODS)
        self._pods.on_change(self._pod_changed)
        for kind in KINDS:
            if kind.built_in and not settings.discovers:
                self._start(kind.resource)
        for resource in self.context.collections:
            self._added(resource)
        self.context.collections.on_change(self._added, self._removed)

    def _added(self, resource: Resource) -> None:
        if any((each.group, each.kind) == (resource.group, resource.kind) for each in WATCHED):
            self._start(resource)

    def _start(self, resource: Resource) -> None:
        """Follow a kind that the server has."""
        served = (resource.group, resource.kind)
        if served in self._kinds or served in self._parents:
            return
        store = self.watch(resource)
        if any((each.group, each.kind) == served for each in PARENTS):
            self._parents[served] = store
            store.on_change(lambda old, new: self._parent_changed(resource, new if new is not None else old))
            return
        kind = next(each for each in KINDS if (each.resource.group, each.resource.kind) == served)
        self._kinds[served] = (kind, store)
        store.on_change(lambda old, new: self._owner_changed(served, old, new))
        log.info("Groups are made for a kind", extra=keys(kind=resource.kind, apiVersion=resource.api_version))

    def _removed(self, resource: Resource) -> None:
        """The server has the kind no more; its objects went with it, and their groups go with them."""
        served = (resource.group, resource.kind)
        if self._kinds.pop(served, None) is not None or self._parents.pop(served, None) is not None:
            log.info("A kind is not served any more", extra=keys(kind=resource.kind, group=resource.group))

    # --- what changes ------------------------------------------------------------------------------

    def _owner_changed(self, served: Served, old: Any, new: Any) -> None:
        meta = (new if new is not None else old).metadata
        if new is None:
            self._said.pop(meta.uid, None)
        self.queue.add(OwnerKey(meta.namespace, WorkloadKey(*served, meta.name)))

    def _parent_changed(self, resource: Resource, parent: Any) -> None:
        for served, (_, store) in self._kinds.items():
            for owner in store.in_namespace(parent.metadata.namespace):
                above = controller_of(owner.metadata)
                if above is not None and above.uid == parent.metadata.uid:
                    self.queue.add(OwnerKey(owner.metadata.namespace, WorkloadKey(*served, owner.metadata.name)))

    def _group_changed(self, old: Any, new: Any) -> None:
        meta = (new if new is not None else old).metadata
        owner = controller_of(meta)
        if owner is not None:
            workload = WorkloadKey(owner.api_version.rpartition("/")[0], owner.kind, owner.name)
            self.queue.add(OwnerKey(meta.namespace, workload))
        elif new is None:
            self.queue.add(LeafKey(meta.namespace, meta.name))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        before = self._seen.get(self._leaf_named(old)) if old is not None else None
        leaf = self._seen.change(old, new)
        if leaf is None:
            return
        found = self._seen.get(leaf)
        if found is None:  # its last pod has left
            if before is not None and before.owner is not None:
                self.queue.add(before.owner)
            self.queue.add(leaf)
        elif found.owner is None:
            self.queue.add(leaf)
        elif len(found.pods) == 1 or leaf in self._growing:
            self.queue.add(found.owner)
            assert self._settings is not None
            self.queue.add_after(leaf, self._settings.unknown_after)

    def _leaf_named(self, pod: PodView) -> LeafKey:
        return self._seen.named_by(pod.metadata.namespace, pod.metadata.name) or LeafKey("", "")

    # --- reconcile ---------------------------------------------------------------------------------

    async def reconcile(self, key: OwnerKey | LeafKey) -> float | None:
        if isinstance(key, OwnerKey):
            return await self._reconcile_owner(key)
        return await self._reconcile_leaf(key)

    async def _reconcile_owner(self, key: OwnerKey) -> float | None:
        found = self._kinds.get((key.workload.group, key.workload.kind))
        if found is None:
            return None
        kind, store = found
        owner: UnstructuredObject | None = store.get(key.namespace, key.workload.name)
        if owner is None or owner.metadata.deletion_timestamp is not None:
            return None
        obj: JSON = {"apiVersion": store.resource.api_version, "kind": store.resource.kind, **json_of(owner)}
        if _has_ended(obj):
            return None  # its groups stay until it goes
        infer = self.context.gates.enabled(INFER_JOB_GANG)
        sight = Sight(self._seen.of(key), self._parent(owner), infer)
        tree = kind.tree_of(obj, sight) if self._is_ours(obj) else NOTHING
        tree = _with_legal_names(tree)
        wanted = GroupSet(obj, store.resource, tree)
        remarks = [*tree.remarks, *wanted.remarks]
        try:
            outcome = await self._writer.bring_about(owner.metadata.uid, wanted)
        except ApiError as error:
            if error.code != 403:
                raise
            log.warning(
                "A right is missing", extra=keys(kind=key.workload.kind, name=owner.metadata.name, err=str(error))
            )
            await self._say(store.resource, owner, [*remarks, Remark("MissingRights", error.message)])
            return RIGHTS_PERIOD
        names = {LeafKey(key.namespace, leaf.name) for leaf in tree.leaves()}
        self._growing = (self._growing - names) | outcome.growing
        await self._say(store.resource, owner, [*remarks, *outcome.remarks])
        return outcome.again

    def _parent(self, owner: UnstructuredObject) -> JSON | None:
        above = controller_of(owner.metadata)
        if above is None:
            return None
        store = self._parents.get((above.api_version.rpartition("/")[0], above.kind))
        if store is None:
            return None
        found: UnstructuredObject | None = store.get(owner.metadata.namespace, above.name)
        return None if found is None else {"kind": above.kind, **json_of(found)}

    def _is_ours(self, owner: JSON) -> bool:
        """Whether the pods of a workload name one of our schedulers, and nobody else makes its groups."""
        assert self._settings is not None
        spec: JSON = owner.get("spec") or {}
        manager = spec.get("managedBy") or at(spec, "runPolicy", "managedBy")
        if manager and manager not in OWN_MANAGERS:
            return False
        if owner["kind"] != "Job" and spec.get("scheduling"):
            return False  # its manager makes groups by itself
        names = set(_scheduler_names(spec))
        if not names:
            return True  # it has no pod template; who names its group decides
        if names & set(self._settings.schedulers):
            return True
        return _DEFAULT_SCHEDULER in names and self._is_managed(owner["metadata"]["namespace"])

    def _is_managed(self, namespace: str) -> bool:
        found: UnstructuredObject | None = self._namespaces.get("", namespace)
        return found is not None and (found.metadata.labels or {}).get(MANAGED_LABEL) == "true"

    async def _say(self, resource: Resource, owner: UnstructuredObject, remarks: list[Remark]) -> None:
        """Each remark once, for as long as it holds."""
        said = self._said.get(owner.metadata.uid, set())
        now = set(remarks)
        if now or said:
            self._said[owner.metadata.uid] = now
        for remark in dict.fromkeys(remarks):
            if remark not in said:
                write = self.events.warning if remark.warning else self.events.normal
                await write(resource, owner.metadata, remark.reason, remark.message)

    # --- leaves that no workload explains ----------------------------------------------------------

    async def _reconcile_leaf(self, leaf: LeafKey) -> float | None:
        found, known = self._seen.get(leaf), self._groups.get(leaf.namespace, leaf.name)
        if found is None:
            if known is not None and MADE_FOR_PODS in (known.metadata.labels or {}):
                await self._delete_group(known)
            return None
        if known is not None:
            if found.rule.name == KUEUE_LEAF and MADE_FOR_PODS in (known.metadata.labels or {}):
                await self._set_minimum(known, plain_pods.minimum_of(found.pods.values()))
            return None
        if found.rule.name == KUEUE_LEAF:
            await self._create_group(plain_pods.group_of(leaf, plain_pods.minimum_of(found.pods.values())))
        elif found.owner is not None and self._is_waited_for(leaf, found):
            await self._create_group(plain_pods.group_of(leaf, None))
            await self._explain(leaf, found)
        return None

    def _is_waited_for(self, leaf: LeafKey, found: SeenLeaf) -> bool:
        """Whether a pod of the leaf is not on its way out."""
        pods = (self._pods.get(leaf.namespace, name) for name in found.pods)
        return any(pod is not None and not pod.going for pod in pods)

    async def _create_group(self, group: JSON) -> None:
        resource = self._groups.resource
        await self.client.create(resource, in_version(group, resource), group["metadata"]["namespace"])

    async def _delete_group(self, known: UnstructuredObject) -> None:
        if known.metadata.deletion_timestamp is None:
            await self.client.delete(
                self._groups.resource, known.metadata.name, known.metadata.namespace, uid=known.metadata.uid
            )

    async def _set_minimum(self, known: UnstructuredObject, minimum: int) -> None:
        if at(known.spec, "schedulingPolicy", "gang", "minCount") not in (None, minimum):
            patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}}
            await self.client.patch(self._groups.resource, known.metadata.name, patch, known.metadata.namespace)

    async def _explain(self, leaf: LeafKey, found: SeenLeaf) -> None:
        assert found.owner is not None
        workload = found.owner.workload
        served = (workload.group, workload.kind)
        if served in self._refused:
            why = f"may not be read: {self._refused[served]}"
        elif served not in self._kinds:
            why = f"is of a kind that the server does not have ({workload.group})"
        else:
            why = "does not exist, or says nothing of this group"
        text = f"{workload.kind} {workload.name} {why}: the pods of group {leaf.name} start one by one"
        log.warning("A group is not explained by its workload", extra=keys(group=leaf.name, why=text))
        for name in sorted(found.pods)[:1]:
            pod: PodView | None = self._pods.get(leaf.namespace, name)
            if pod is not None:
                await self.events.warning(PODS, pod.metadata, "GroupOwnerUnknown", text)

    # --- kinds that come and go, where nobody tells of them ----------------------------------------

    async def run(self) -> None:
        if self._settings is None or not self._settings.discovers:
            return await super().run()
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self._discover())

    async def _discover(self) -> None:
        """Look again and again for kinds that the server has begun or ceased to serve."""
        while True:
            try:
                await self._look()
            except (ApiError, ConnectionError, TimeoutError) as error:
                log.warning("The served kinds cannot be asked for", extra=keys(err=str(error)))
            await self.clock.sleep(DISCOVERY_PERIOD)

    async def _look(self) -> None:
        served = {(each.group, each.kind): each async for each in self._served()}
        for key, resource in served.items():
            if key in self._kinds or key in self._parents:
                continue
            missing = await missing_rights(self.client, resource, READ)
            if not missing:
                self._refused.pop(key, None)
                self._start(resource)
            elif self._refused.get(key) != missing:
                self._refused[key] = missing
                log.warning("No groups are made for a kind", extra=keys(kind=resource.kind, missing=missing))
        for key in [*self._kinds, *self._parents]:
            if key not in served:
                store = self._kinds[key][1] if key in self._kinds else self._parents[key]
                self._removed(store.resource)
                self.context.informers.withdraw(store.resource)

    async def _served(self) -> AsyncIterator[Resource]:
        """The kinds of workloads that the server has, each in the version it prefers."""
        groups: list[JSON] = (await self.client.request("GET", "/apis")).get("groups") or []
        preferred = {each["name"]: each["preferredVersion"]["version"] for each in groups}
        listed: dict[str, list[JSON]] = {}
        for wanted in WATCHED:
            version = preferred.get(wanted.group)
            if version is None:
                continue
            if wanted.group not in listed:
                answer = await self.client.request("GET", f"/apis/{wanted.group}/{version}")
                listed[wanted.group] = answer.get("resources") or []
            for each in listed[wanted.group]:
                if each["kind"] == wanted.kind and "/" not in each["name"]:
                    yield Resource(wanted.group, version, each["name"], each["kind"], True)


def _has_ended(owner: JSON) -> bool:
    status: JSON = owner.get("status") or {}
    conditions: list[JSON] = status.get("conditions") or []
    return bool(status.get("terminalState")) or any(
        each.get("type") in _ENDED and each.get("status") == "True" for each in conditions
    )


def _scheduler_names(value: Any) -> Iterator[str]:
    """The schedulers that the pod specs in a spec name."""
    if isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _scheduler_names(each)
    elif isinstance(value, dict):
        found: JSON = value
        if isinstance(found.get("containers"), list):
            yield str(found.get("schedulerName") or _DEFAULT_SCHEDULER)
            return
        for each in found.values():
            yield from _scheduler_names(each)


def _with_legal_names(tree: Tree) -> Tree:
    bad = [node.name for node, _ in tree.nodes() if not is_legal(node.name)]
    if not bad:
        return tree
    text = f"{bad[0]!r} cannot be the name of a group, so there is none: the pods start one by one"
    return Tree(remarks=(*tree.remarks, Remark("NameNotLegal", text)))
