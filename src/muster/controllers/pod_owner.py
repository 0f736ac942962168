"""What the controllers of pods made from a template share: whose pods are whose, and which template is current.

A pod that changes wakes its controller; one without a controller wakes those that would adopt it. Before anything else
is done for an object, pods that match it are adopted and pods that match it no more are released.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from muster.api.resources import CONTROLLER_REVISIONS, PODS, Resource
from muster.controllers.adoption import adopt, orphans_of, release, selector_of
from muster.controllers.controller import Controller
from muster.controllers.objects import PodView, RevisionView, UnstructuredObject, controller_of
from muster.controllers.pod_control import PodControl, PodWords
from muster.controllers.revisions import Revisions
from muster.controllers.status import write_status


class PodOwner(Controller):
    """A controller of one kind, whose objects own pods."""

    resource: ClassVar[Resource]
    words: ClassVar[PodWords] = PodWords()
    adopts_finished: ClassVar[bool] = True

    def setup(self) -> None:
        self.sets = self.watch_keys(self.resource)
        self._by_namespace = self.sets.index("by-namespace", lambda each: each.metadata.namespace)
        pods = self.watch(PODS)
        self._orphans = orphans_of(pods)
        self.control = PodControl(self.client, self.clock, pods, self.resource, self.events, self.words)
        pods.on_change(self._pod_changed)

    def belongs(self, owner: UnstructuredObject) -> Callable[[PodView], bool]:
        """Which pods may be an owner's, by their labels and names."""
        selected = selector_of(owner)
        return lambda pod: selected(pod.metadata)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        namespace = pod.metadata.namespace
        owner = controller_of(pod.metadata)
        before = controller_of(old.metadata) if old is not None else None
        for each in (owner, before):
            if each is not None and each.kind == self.resource.kind:
                self.queue.add((namespace, each.name))
        if owner is None and new is not None:
            for each in self._by_namespace.get(namespace):
                if self.belongs(each)(new):
                    self.queue.add((namespace, each.metadata.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        found: UnstructuredObject | None = self.sets.get(*key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        if await self._claim(found):
            return None  # the pod's event queues the key again
        return await self.manage(found)

    @abstractmethod
    async def manage(self, found: UnstructuredObject) -> float | None:
        """Bring the pods of one object to its desired state; the seconds until that must be done again, if any."""

    async def _claim(self, found: UnstructuredObject) -> bool:
        """Adopt pods that belong here and have no controller, release those that do not; whether there were any."""
        ours = self.belongs(found)
        orphans: list[PodView] = [
            pod
            for pod in self._orphans.get(found.metadata.namespace)
            if not pod.going and (self.adopts_finished or not pod.finished) and ours(pod)
        ]
        for pod in orphans:
            await adopt(self.client, PODS, pod.metadata, self.resource, found.metadata)
        strangers = [pod for pod in self.control.pods_of(found.metadata.uid) if not ours(pod)]
        for pod in strangers:
            await release(self.client, PODS, pod.metadata, found.metadata)
        return bool(orphans or strangers)


class RevisionedPodOwner(PodOwner):
    """One whose templates are kept as ControllerRevisions."""

    def setup(self) -> None:
        super().setup()
        self.revisions = Revisions(self.client, self.watch(CONTROLLER_REVISIONS), self.resource)

    async def manage(self, found: UnstructuredObject) -> float | None:
        known = self.revisions.of(found)
        collisions = int(found.status.get("collisionCount") or 0)
        update = await self.revisions.update_revision(found, known, collisions)
        if update is None:
            await write_status(self.client, self.resource, found, {**found.status, "collisionCount": collisions + 1})
            return None
        return await self.roll_out(found, known, update)

    @abstractmethod
    async def roll_out(
        self, found: UnstructuredObject, known: list[RevisionView], update: RevisionView
    ) -> float | None:
        """Manage the pods, some of which may be of older revisions."""
