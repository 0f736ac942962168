"""ReplicaSets and ReplicationControllers: keep as many pods as `spec.replicas` says, and replace those that end."""

from __future__ import annotations

from typing import ClassVar

from muster.api.errors import ApiError
from muster.api.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from muster.client.clock import timestamp
from muster.controllers.adoption import adopt, orphans_of, release, selector_of, selects
from muster.controllers.controller import Controller
from muster.controllers.objects import PodView, UnstructuredObject, available_in, controller_of
from muster.controllers.pod_control import PodControl, pod_from
from muster.controllers.status import JSON, condition, write_status

_FAILURE = "ReplicaFailure"


class ReplicaSetController(Controller):
    name = "replicaset-controller"
    workers = 4
    resource: ClassVar[Resource] = REPLICA_SETS

    def setup(self) -> None:
        self._sets = self.watch_keys(self.resource)
        self._by_namespace = self._sets.index("by-namespace", lambda each: each.metadata.namespace)
        pods = self.watch(PODS)
        self._orphans = orphans_of(pods)
        self._control = PodControl(self.client, self.clock, pods, self.resource, self.events)
        pods.on_change(self._pod_changed)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        owner = controller_of(pod.metadata)
        before = controller_of(old.metadata) if old is not None else None
        for each in (owner, before):
            if each is not None and each.kind == self.resource.kind:
                self.queue.add((pod.metadata.namespace, each.name))
        if owner is None and new is not None:
            for each in self._by_namespace.get(pod.metadata.namespace):
                if selects(each, pod.metadata):
                    self.queue.add((pod.metadata.namespace, each.metadata.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        found: UnstructuredObject | None = self._sets.get(*key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        if await self._adopt(found) or await self._release(found):
            return None  # the pod's event queues the key again
        wanted = int(found.spec.get("replicas", 1))
        failure = await self._manage(found, self._active(found), wanted)
        status, again = self._status(found, self._active(found))
        if conditions := self._conditions(found, failure):
            status["conditions"] = conditions
        await write_status(self.client, self.resource, found, status)
        if failure is not None:
            raise failure[1]
        return again

    async def _manage(
        self, found: UnstructuredObject, active: list[PodView], wanted: int
    ) -> tuple[str, ApiError] | None:
        """Create what is missing or delete what is too much; what went wrong, as a reason and the error."""
        if len(active) < wanted:
            template: JSON = found.spec.get("template") or {}
            pods = [
                pod_from(template, self.resource, found.metadata, f"{found.metadata.name}-")
                for _ in range(wanted - len(active))
            ]
            try:
                await self._control.create(found.metadata, pods)
            except ApiError as error:
                return "FailedCreate", error
        elif len(active) > wanted:
            surplus = sorted(active, key=_deletion_order)[: len(active) - wanted]
            try:
                await self._control.delete(surplus, found.metadata)
            except ApiError as error:
                return "FailedDelete", error
        return None

    def _conditions(self, found: UnstructuredObject, failure: tuple[str, ApiError] | None) -> list[JSON]:
        """Conditions of others as they are, and ours for as long as pods cannot be made or deleted."""
        known: list[JSON] = found.status.get("conditions") or []
        if failure is not None and condition(known, _FAILURE) is None:
            reason, error = failure
            at = timestamp(self.clock.now())
            said = {"status": "True", "lastTransitionTime": at, "reason": reason, "message": error.message}
            return [*known, {"type": _FAILURE, **said}]
        return [each for each in known if failure is not None or each.get("type") != _FAILURE]

    async def _adopt(self, found: UnstructuredObject) -> bool:
        """Adopt pods that match the selector and have no controller; whether there were any."""
        orphans: list[PodView] = [
            pod
            for pod in self._orphans.get(found.metadata.namespace)
            if not pod.finished and not pod.going and selects(found, pod.metadata)
        ]
        for pod in orphans:
            await adopt(self.client, PODS, pod.metadata, self.resource, found.metadata)
        return bool(orphans)

    async def _release(self, found: UnstructuredObject) -> bool:
        """Let go of pods whose labels were changed so that the selector does not match; whether there were any."""
        ours = selector_of(found)
        strangers = [pod for pod in self._control.pods_of(found.metadata.uid) if not ours(pod.metadata)]
        for pod in strangers:
            await release(self.client, PODS, pod.metadata, found.metadata)
        return bool(strangers)

    def _active(self, found: UnstructuredObject) -> list[PodView]:
        pods = self._control.pods_of(found.metadata.uid)
        return [pod for pod in pods if not pod.finished and not self._control.going(pod)]

    def _status(self, found: UnstructuredObject, active: list[PodView]) -> tuple[JSON, float | None]:
        """The status, and when the next pod has been ready long enough to count as available."""
        settle, now = float(found.spec.get("minReadySeconds") or 0), self.clock.now()
        left = [each for pod in active if (each := available_in(pod, settle, now)) is not None]
        status: JSON = {"replicas": len(active), "observedGeneration": found.metadata.generation}
        for key, number in (
            ("fullyLabeledReplicas", len(active)),
            ("readyReplicas", len(left)),
            ("availableReplicas", sum(1 for each in left if each == 0)),
        ):
            if number:
                status[key] = number
        return status, min((each for each in left if each > 0), default=None)


class ReplicationManager(ReplicaSetController):
    """ReplicationControllers: ReplicaSets whose selector is a plain map of labels."""

    name = "replication-controller"
    resource = REPLICATION_CONTROLLERS


def _deletion_order(pod: PodView) -> tuple[bool, bool, bool, str]:
    """The sort key of deletion: not placed, not running, not ready, youngest first."""
    created = pod.metadata.creation_timestamp or ""
    # Younger pods go first, so the later text has to sort lower.
    youth = "".join(chr(0x10FFFF - ord(letter)) for letter in created)
    return (bool(pod.spec.node_name), pod.status.phase == "Running", pod.ready, youth)
