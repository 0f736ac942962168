"""Deletion protection: a PodGroup stays while unfinished pods name it, a CompositePodGroup while it has children.

Owns both protection finalizers: adds them where they are missing (objects older than the admission step, or
whose finalizers were edited away) and removes them when nothing holds the group. `muster.controllers.external_clusters`
has the variants for clusters where kube-controller-manager does a part of this, or where groups are custom resources.
"""

from __future__ import annotations

from typing import Any, ClassVar

from muster.api.groups import COMPOSITE_PROTECTION, POD_GROUP_PROTECTION
from muster.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, Resource
from muster.controllers.controller import Controller
from muster.controllers.finalizers import add_finalizer, remove_finalizer
from muster.controllers.objects import PodView, UnstructuredObject

GroupKey = tuple[str, str, str]  # plural, namespace, name
_ASK_AGAIN = 5.0  # seconds until a group is looked at again whose members only the server knows


class PodGroupProtection(Controller):
    name = "podgroup-protection-controller"
    workers = 4
    groups: ClassVar[Resource] = POD_GROUPS
    composites: ClassVar[Resource] = COMPOSITE_POD_GROUPS

    def setup(self) -> None:
        self._groups = self.watch(self.groups)
        self._composites = self.watch(self.composites)
        self._child_groups = self._groups.index("by-parent", _parent_of)
        self._child_composites = self._composites.index("by-parent", _parent_of)
        self._groups.on_change(lambda old, new: self._group_changed(POD_GROUPS.plural, old, new))
        self._composites.on_change(lambda old, new: self._group_changed(COMPOSITE_POD_GROUPS.plural, old, new))
        self.watch_members()

    def watch_members(self) -> None:
        """Watch the pods, which hold groups."""
        pods = self.watch(PODS)
        self._members = pods.index("active-by-group", self.held_by)
        pods.on_change(self._pod_changed)

    def held_by(self, pod: PodView) -> tuple[str, str] | None:
        """The group that a pod holds. A pod that is being deleted holds it until it has ended or is gone."""
        name = self.named_by(pod)
        return (pod.metadata.namespace, name) if name and not pod.finished else None

    def named_by(self, pod: PodView) -> str:
        group = pod.spec.scheduling_group
        return (group.pod_group_name or "") if group is not None else ""

    async def named_live(self, group: UnstructuredObject) -> list[PodView]:
        """The pods that name a group, as the server itself knows them."""
        selector = f"spec.schedulingGroup.podGroupName={group.metadata.name}"
        page = await self.client.list(PODS, group.metadata.namespace, field_selector=selector, into=PodView)
        return page.items

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        left = self.held_by(old) if old is not None else None
        if left is not None and (new is None or self.held_by(new) != left):
            self.queue.add((POD_GROUPS.plural, *left))

    def _group_changed(self, plural: str, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        obj: Any = new if new is not None else old
        if new is not None:
            self.queue.add((plural, obj.metadata.namespace, obj.metadata.name))
        elif (parent := _parent_of(obj)) is not None:
            self.queue.add((COMPOSITE_POD_GROUPS.plural, *parent))

    async def reconcile(self, key: GroupKey) -> float | None:
        plural, namespace, name = key
        composite = plural == COMPOSITE_POD_GROUPS.plural
        resource = self.composites if composite else self.groups
        finalizer = COMPOSITE_PROTECTION if composite else POD_GROUP_PROTECTION
        group: UnstructuredObject | None = (self._composites if composite else self._groups).get(namespace, name)
        if group is None:
            return None
        held = finalizer in (group.metadata.finalizers or ())
        if group.metadata.deletion_timestamp is None:
            if not held:
                await add_finalizer(self.client, resource, group.metadata, finalizer)
        elif held and not self._in_use(composite, (namespace, name)):
            if await self._used_live(composite, group):
                return _ASK_AGAIN  # the watch may never show that member: it can be gone before it is listed again
            await remove_finalizer(self.client, resource, group.metadata, finalizer)
        return None

    def _in_use(self, composite: bool, key: tuple[str, str]) -> bool:
        if composite:
            return key in self._child_groups or key in self._child_composites
        return key in self._members

    async def _used_live(self, composite: bool, group: UnstructuredObject) -> bool:
        """Ask the server itself before a group goes: a member may be newer than what the watch has shown."""
        return not composite and any(not pod.finished for pod in await self.named_live(group))


def _parent_of(group: UnstructuredObject) -> tuple[str, str] | None:
    parent = group.spec.get("parentCompositePodGroupName")
    return (group.metadata.namespace, parent) if parent else None
