"""ReplicaSets and ReplicationControllers: keep as many pods as `spec.replicas` says, and replace those that end."""

from __future__ import annotations

from typing import ClassVar

from muster.api.errors import ApiError
from muster.api.resources import REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from muster.client.clock import timestamp
from muster.controllers.objects import PodView, UnstructuredObject, available_in
from muster.controllers.pod_control import pod_from
from muster.controllers.pod_owner import PodOwner
from muster.controllers.status import JSON, condition, write_status

_FAILURE = "ReplicaFailure"


class ReplicaSetController(PodOwner):
    name = "replicaset-controller"
    workers = 4
    resource: ClassVar[Resource] = REPLICA_SETS
    adopts_finished = False

    async def manage(self, found: UnstructuredObject) -> float | None:
        wanted = int(found.spec.get("replicas", 1))
        failure = await self._balance(found, self._active(found), wanted)
        status, again = self._status(found, self._active(found))
        if conditions := self._conditions(found, failure):
            status["conditions"] = conditions
        await write_status(self.client, self.resource, found, status)
        if failure is not None:
            raise failure[1]
        return again

    async def _balance(
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
                await self.control.create(found.metadata, pods)
            except ApiError as error:
                return "FailedCreate", error
        elif len(active) > wanted:
            surplus = sorted(active, key=_deletion_order)[: len(active) - wanted]
            try:
                await self.control.delete(surplus, found.metadata)
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

    def _active(self, found: UnstructuredObject) -> list[PodView]:
        pods = self.control.pods_of(found.metadata.uid)
        return [pod for pod in pods if not pod.finished and not self.control.going(pod)]

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
