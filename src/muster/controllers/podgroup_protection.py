"""Groups go bottom-up: a PodGroup stays while pods that run or wait name it, a CompositePodGroup while it has children.

Owns both protection finalizers everywhere: adds them where they are missing (objects older than the
admission step, or whose finalizers were edited away) and removes them when nothing holds the group.
"""

from __future__ import annotations

from typing import Any

from muster.api.groups import COMPOSITE_PROTECTION, POD_GROUP_PROTECTION
from muster.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS
from muster.controllers.controller import Controller
from muster.controllers.finalizers import add_finalizer, remove_finalizer
from muster.controllers.objects import UpkeepPod, Whole

GroupKey = tuple[str, str, str]  # plural, namespace, name


class PodGroupProtection(Controller):
    name = "podgroup-protection-controller"
    workers = 4

    def setup(self) -> None:
        self._groups = self.watch(POD_GROUPS)
        self._composites = self.watch(COMPOSITE_POD_GROUPS)
        pods = self.watch(PODS)
        self._members = pods.index("active-by-group", _active_member_of)
        self._child_groups = self._groups.index("by-parent", _parent_of)
        self._child_composites = self._composites.index("by-parent", _parent_of)
        pods.on_change(self._pod_changed)
        self._groups.on_change(lambda old, new: self._group_changed(POD_GROUPS.plural, old, new))
        self._composites.on_change(lambda old, new: self._group_changed(COMPOSITE_POD_GROUPS.plural, old, new))

    def _pod_changed(self, old: UpkeepPod | None, new: UpkeepPod | None) -> None:
        left = _active_member_of(old) if old is not None else None
        if left is not None and (new is None or _active_member_of(new) != left):
            self.queue.add((POD_GROUPS.plural, *left))

    def _group_changed(self, plural: str, old: Whole | None, new: Whole | None) -> None:
        obj: Any = new if new is not None else old
        if new is not None:
            self.queue.add((plural, obj.metadata.namespace, obj.metadata.name))
        elif (parent := _parent_of(obj)) is not None:
            self.queue.add((COMPOSITE_POD_GROUPS.plural, *parent))

    async def reconcile(self, key: GroupKey) -> float | None:
        plural, namespace, name = key
        composite = plural == COMPOSITE_POD_GROUPS.plural
        resource = COMPOSITE_POD_GROUPS if composite else POD_GROUPS
        finalizer = COMPOSITE_PROTECTION if composite else POD_GROUP_PROTECTION
        group: Whole | None = (self._composites if composite else self._groups).get(namespace, name)
        if group is None:
            return None
        held = finalizer in (group.metadata.finalizers or ())
        if group.metadata.deletion_timestamp is None:
            if not held:
                await add_finalizer(self.client, resource, group.metadata, finalizer)
        elif held and not self._in_use(composite, (namespace, name)) and not await self._used_live(composite, group):
            await remove_finalizer(self.client, resource, group.metadata, finalizer)
        return None

    def _in_use(self, composite: bool, key: tuple[str, str]) -> bool:
        if composite:
            return key in self._child_groups or key in self._child_composites
        return key in self._members

    async def _used_live(self, composite: bool, group: Whole) -> bool:
        """Ask the server itself before a group goes: a member may be newer than what the watch has shown."""
        if composite:
            return False
        selector = f"spec.schedulingGroup.podGroupName={group.metadata.name}"
        page = await self.client.list(PODS, group.metadata.namespace, field_selector=selector, into=UpkeepPod)
        return any(not pod.finished for pod in page.items)


def _active_member_of(pod: UpkeepPod) -> tuple[str, str] | None:
    """The group that a pod holds. A pod on its way out still holds it until it has ended or is gone."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name or pod.finished:
        return None
    return (pod.metadata.namespace, group.pod_group_name)


def _parent_of(group: Whole) -> tuple[str, str] | None:
    parent = group.spec.get("parentCompositePodGroupName")
    return (group.metadata.namespace, parent) if parent else None
