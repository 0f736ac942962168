"""The controllers of groups on clusters that Muster does not run itself. Only the leader runs them.

Where the server has the group API, kube-controller-manager protects PodGroups and nothing protects CompositePodGroups.
Where groups are custom resources, these controllers do all of the protection, and also what admission does elsewhere:
they resolve priority class names into priorities.
"""

from __future__ import annotations

from typing import Any

from muster.api.groups import HUB, PREEMPT_LOWER_PRIORITY
from muster.api.manifests import CRD_GROUP, CRD_LABEL
from muster.api.membership import facts_of_meta, leaf_of
from muster.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, PRIORITY_CLASSES, Resource
from muster.api.types import PriorityClass
from muster.client.protocol import Client
from muster.controllers.controller import Controller
from muster.controllers.manager import ControllerManager
from muster.controllers.objects import PodView, UnstructuredObject
from muster.controllers.podgroup_protection import PodGroupProtection
from muster.controllers.workloads.controller import WorkloadController
from muster.controllers.workloads.settings import WorkloadSettings

CRD_POD_GROUPS = POD_GROUPS._replace(group=CRD_GROUP, version=HUB)
CRD_COMPOSITES = COMPOSITE_POD_GROUPS._replace(group=CRD_GROUP, version=HUB)


class CompositeProtection(PodGroupProtection):
    """On native clusters: composites only; pods need not be watched for that."""

    name = "compositepodgroup-protection-controller"

    def watch_members(self) -> None:
        """Nothing: kube-controller-manager protects PodGroups."""

    async def reconcile(self, key: tuple[str, str, str]) -> float | None:
        return await super().reconcile(key) if key[0] == self.composites.plural else None


class CrdProtection(PodGroupProtection):
    """Both kinds as custom resources, and members that name their group by a label or by what they are."""

    groups = CRD_POD_GROUPS
    composites = CRD_COMPOSITES

    def watch_members(self) -> None:
        if self.context.workloads is None:  # else pods without the label are members as well
            self.context.informers.of(PODS, label_selector=CRD_LABEL)
        super().watch_members()

    def named_by(self, pod: PodView) -> str:
        label = (pod.metadata.labels or {}).get(CRD_LABEL, "")
        workloads = self.context.workloads
        if label or workloads is None or pod.spec.scheduler_name not in workloads.schedulers:
            return label
        return leaf_of(facts_of_meta(pod.metadata))

    async def named_live(self, group: UnstructuredObject) -> list[PodView]:
        name = group.metadata.name
        selector = f"{CRD_LABEL}={name}" if self.context.workloads is None else ""
        page = await self.client.list(PODS, group.metadata.namespace, label_selector=selector, into=PodView)
        return [pod for pod in page.items if self.named_by(pod) == name]


class CrdPriority(Controller):
    """A group that is a custom resource gets the priority and the preemption policy of its class."""

    name = "podgroup-priority-controller"
    workers = 4

    def setup(self) -> None:
        self._classes = self.watch(PRIORITY_CLASSES)
        self._classes.on_change(lambda old, new: self._class_changed())
        self._kinds = {each.plural: self.watch(each) for each in (CRD_POD_GROUPS, CRD_COMPOSITES)}
        for plural, informer in self._kinds.items():
            informer.on_change(lambda old, new, plural=plural: self._group_changed(plural, new))

    def _group_changed(self, plural: str, group: UnstructuredObject | None) -> None:
        if group is not None and not _is_filled(group):
            self.queue.add((plural, group.metadata.namespace, group.metadata.name))

    def _class_changed(self) -> None:
        for plural, informer in self._kinds.items():
            for group in informer.objects.values():
                self._group_changed(plural, group)

    async def reconcile(self, key: tuple[str, str, str]) -> float | None:
        plural, namespace, name = key
        informer = self._kinds[plural]
        group: UnstructuredObject | None = informer.get(namespace, name)
        if group is None or _is_filled(group):
            return None
        wanted = str(group.spec.get("priorityClassName") or "")
        found = self._class(wanted)
        if found is None and wanted:
            message = (
                f"no PriorityClass with name {wanted} was found: the group's priority stays open until there is one"
            )
            await self.events.warning(informer.resource, group.metadata, "PriorityClassNotFound", message)
            return None
        await self._fill(informer.resource, group, found)
        return None

    def _class(self, name: str) -> PriorityClass | None:
        if name:
            found: PriorityClass | None = self._classes.get("", name)
            return found
        marked = [each for each in self._classes.objects.values() if each.global_default]
        return min(marked, key=lambda each: each.value, default=None)

    async def _fill(self, resource: Resource, group: UnstructuredObject, found: PriorityClass | None) -> None:
        spec: dict[str, Any] = {"priority": 0, "preemptionPolicy": PREEMPT_LOWER_PRIORITY}
        if found is not None:
            spec = {
                "priorityClassName": found.metadata.name,
                "priority": found.value,
                "preemptionPolicy": found.preemption_policy or PREEMPT_LOWER_PRIORITY,
            }
        if group.spec.get("priority") is not None:
            spec = {"preemptionPolicy": spec["preemptionPolicy"]}  # a priority of its own is of no class
        # Set fields are kept: they are immutable, only missing ones can be filled.
        missing = {field: value for field, value in spec.items() if group.spec.get(field) in (None, "")}
        meta = {"uid": group.metadata.uid, "resourceVersion": group.metadata.resource_version}
        await self.client.patch(
            resource, group.metadata.name, {"metadata": meta, "spec": missing}, group.metadata.namespace
        )


def _is_filled(group: UnstructuredObject) -> bool:
    return group.spec.get("priority") is not None and group.spec.get("preemptionPolicy") is not None


ON_NATIVE: tuple[type[Controller], ...] = (CompositeProtection,)
ON_CRDS: tuple[type[Controller], ...] = (CrdProtection, CrdPriority)


async def run_controllers(
    client: Client, controllers: tuple[type[Controller], ...], workloads: WorkloadSettings | None = None
) -> None:
    """Run the given controllers until cancelled, and with settings for them that of workloads."""
    if workloads is not None:
        controllers = (*controllers, WorkloadController)
    await ControllerManager(client, collections=(), controllers=controllers, workloads=workloads).run()
