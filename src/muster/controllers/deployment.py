"""Deployments: one ReplicaSet per template, and a change of template rolled out step by step.

Never more pods than `maxSurge` allows, never fewer available ones than `maxUnavailable` allows. Old ReplicaSets are
kept, empty, for `kubectl rollout undo`, up to the history limit.
"""

from __future__ import annotations

import json
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from muster.client.clock import seconds_of, timestamp
from muster.controllers.adoption import adopt, orphans_of, selects
from muster.controllers.controller import Controller
from muster.controllers.job_group_objects import safe_hash
from muster.controllers.objects import UnstructuredObject, controller_of, controller_uid
from muster.controllers.pod_control import controller_reference
from muster.controllers.rolling_limits import rolling_limit
from muster.controllers.status import JSON, condition, with_condition, write_status

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


class DeploymentController(Controller):
    name = "deployment-controller"
    workers = 4

    def setup(self) -> None:
        self._deployments = self.watch_keys(DEPLOYMENTS)
        self._sets = self.watch(REPLICA_SETS)
        self._owned = self._sets.index("by-controller", controller_uid)
        self._orphans = orphans_of(self._sets)
        self._sets.on_change(self._set_changed)
        self._pods = self.watch(PODS)
        self._pods_of_set = self._pods.index("by-controller", controller_uid)

    def _set_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        found = new if new is not None else old
        owner = controller_of(found.metadata) if found is not None else None
        if found is not None and owner is not None and owner.kind == DEPLOYMENTS.kind:
            self.queue.add((found.metadata.namespace, owner.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        deployment: UnstructuredObject | None = self._deployments.get(*key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return None
        if await self._adopt(deployment):
            return None  # the adopted set's event queues the key again
        sets: list[UnstructuredObject] = sorted(self._owned.get(deployment.metadata.uid), key=_revision)
        current = next((each for each in reversed(sets) if _same_template(each, deployment)), None)
        old = [each for each in sets if each is not current]
        if current is None and not deployment.spec.get("paused"):
            await self._create(deployment, sets)
            return None  # the new set's event queues the key again
        if current is not None and await self._raise_revision(deployment, current, old):
            return None
        if deployment.spec.get("paused"):
            await self._scale_paused(deployment, current, old)
        elif current is not None:
            await self._roll(deployment, current, old)
        again = await self._report(deployment, current, sets)
        await self._prune(deployment, old)
        return again

    # The sets

    async def _adopt(self, deployment: UnstructuredObject) -> bool:
        """Adopt ReplicaSets that match the selector and have no controller; whether there were any."""
        orphans: list[UnstructuredObject] = [
            each
            for each in self._orphans.get(deployment.metadata.namespace)
            if each.metadata.deletion_timestamp is None and selects(deployment, each.metadata)
        ]
        for each in orphans:
            await adopt(self.client, REPLICA_SETS, each.metadata, DEPLOYMENTS, deployment.metadata)
        return bool(orphans)

    async def _create(self, deployment: UnstructuredObject, sets: list[UnstructuredObject]) -> None:
        template: JSON = deployment.spec.get("template") or {}
        collisions = int(deployment.status.get("collisionCount") or 0)
        digest = safe_hash(json.dumps(template, sort_keys=True) + (str(collisions) if collisions else ""))
        labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: digest}
        selector: JSON = deployment.spec.get("selector") or {}
        surge = _surge(deployment)
        total = sum(_replicas(each) for each in sets)
        body: JSON = {
            "apiVersion": REPLICA_SETS.api_version,
            "kind": REPLICA_SETS.kind,
            "metadata": {
                "name": f"{deployment.metadata.name}-{digest}",
                "namespace": deployment.metadata.namespace,
                "labels": labels,
                "annotations": {REVISION: str(max((_revision(each) for each in sets), default=0) + 1)},
                "ownerReferences": [controller_reference(DEPLOYMENTS, deployment.metadata)],
            },
            "spec": {
                "replicas": _room_for_new(deployment, 0, total, surge),
                "minReadySeconds": int(deployment.spec.get("minReadySeconds") or 0),
                "selector": {
                    **selector,
                    "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: digest},
                },
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
            },
        }
        try:
            await self.client.create(REPLICA_SETS, body, deployment.metadata.namespace)
            text = f"Scaled up replica set {body['metadata']['name']} from 0 to {body['spec']['replicas']}"
            await self.events.normal(DEPLOYMENTS, deployment.metadata, "ScalingReplicaSet", text)
        except ApiError as error:
            if error.code != 409 or any(each.metadata.name == body["metadata"]["name"] for each in sets):
                raise
            status = {**deployment.status, "collisionCount": collisions + 1}
            await write_status(self.client, DEPLOYMENTS, deployment, status)

    async def _raise_revision(
        self, deployment: UnstructuredObject, current: UnstructuredObject, old: list[UnstructuredObject]
    ) -> bool:
        """A set that becomes current again gets a new, highest revision. The deployment carries it as well."""
        newest = max((_revision(each) for each in old), default=0)
        if _revision(current) <= newest:
            await self._annotate(REPLICA_SETS, current, str(newest + 1))
            return True
        if (deployment.metadata.annotations or {}).get(REVISION) != str(_revision(current)):
            await self._annotate(DEPLOYMENTS, deployment, str(_revision(current)))
            return True
        return False

    async def _annotate(self, resource: Any, obj: UnstructuredObject, revision: str) -> None:
        patch = {"metadata": {"annotations": {REVISION: revision}}}
        await self.client.patch(resource, obj.metadata.name, patch, obj.metadata.namespace)

    async def _scale(self, deployment: UnstructuredObject, replica_set: UnstructuredObject, replicas: int) -> None:
        if _replicas(replica_set) != replicas:
            patch = {"spec": {"replicas": replicas}}
            await self.client.patch(REPLICA_SETS, replica_set.metadata.name, patch, replica_set.metadata.namespace)
            way = "up" if replicas > _replicas(replica_set) else "down"
            text = f"Scaled {way} replica set {replica_set.metadata.name} from {_replicas(replica_set)} to {replicas}"
            await self.events.normal(DEPLOYMENTS, deployment.metadata, "ScalingReplicaSet", text)

    # Rolling

    async def _roll(
        self, deployment: UnstructuredObject, current: UnstructuredObject, old: list[UnstructuredObject]
    ) -> None:
        if (deployment.spec.get("strategy") or {}).get("type") == "Recreate":
            await self._recreate(deployment, current, old)
            return
        total = sum(_replicas(each) for each in (*old, current))
        wanted = _replicas(deployment)
        if _replicas(current) > wanted:
            await self._scale(deployment, current, wanted)
        elif _replicas(current) < wanted:
            room = _room_for_new(deployment, _replicas(current), total, _surge(deployment))
            if room != _replicas(current):
                await self._scale(deployment, current, room)
                return
        await self._shrink_old(deployment, current, old)

    async def _shrink_old(
        self, deployment: UnstructuredObject, current: UnstructuredObject, old: list[UnstructuredObject]
    ) -> None:
        """Scale old sets down as far as `maxUnavailable` allows; replicas that are not available go first."""
        least = _replicas(deployment) - _unavailable(deployment)
        available = sum(_available(each) for each in (*old, current))
        # Old pods that are available must not be removed for new ones that are not available yet.
        spare = sum(map(_replicas, (*old, current))) - least - (_replicas(current) - _available(current))
        healthy_spare = available - least
        for each in old:
            idle = min(_replicas(each) - min(_available(each), _replicas(each)), max(0, spare))
            working = min(_replicas(each) - idle, max(0, min(healthy_spare, spare - idle)))
            if idle + working > 0:
                spare -= idle + working
                healthy_spare -= working
                await self._scale(deployment, each, _replicas(each) - idle - working)

    async def _recreate(
        self, deployment: UnstructuredObject, current: UnstructuredObject, old: list[UnstructuredObject]
    ) -> None:
        for each in old:
            await self._scale(deployment, each, 0)
        gone = not any(not pod.finished for each in old for pod in self._pods_of_set.get(each.metadata.uid))
        if gone and not any(_replicas(each) for each in old):
            await self._scale(deployment, current, _replicas(deployment))
        elif not gone:
            self.queue.add_after((deployment.metadata.namespace, deployment.metadata.name), 1.0)

    async def _scale_paused(
        self, deployment: UnstructuredObject, current: UnstructuredObject | None, old: list[UnstructuredObject]
    ) -> None:
        """A paused deployment still follows its replica count, on the set that it has."""
        target = current if current is not None else (old[-1] if old else None)
        if target is not None and not any(_replicas(each) for each in old if each is not target):
            await self._scale(deployment, target, _replicas(deployment))

    async def _prune(self, deployment: UnstructuredObject, old: list[UnstructuredObject]) -> None:
        limit = int(deployment.spec.get("revisionHistoryLimit", 10))
        empty = [each for each in old if not _replicas(each) and not each.status.get("replicas")]
        for each in empty[: max(0, len(empty) - limit)]:
            await self.client.delete(REPLICA_SETS, each.metadata.name, each.metadata.namespace, uid=each.metadata.uid)

    # Reporting

    async def _report(
        self, deployment: UnstructuredObject, current: UnstructuredObject | None, sets: list[UnstructuredObject]
    ) -> float | None:
        wanted = _replicas(deployment)
        total = sum(int(each.status.get("replicas") or 0) for each in sets)
        available = sum(map(_available, sets))
        updated = int(current.status.get("replicas") or 0) if current is not None else 0
        numbers = {
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": sum(int(each.status.get("readyReplicas") or 0) for each in sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, wanted - available),
        }
        status: JSON = {key: number for key, number in numbers.items() if number}
        status["observedGeneration"] = deployment.metadata.generation
        if "collisionCount" in deployment.status:
            status["collisionCount"] = deployment.status["collisionCount"]
        conditions: list[JSON] = deployment.status.get("conditions") or []
        enough = available >= wanted - _unavailable(deployment)
        conditions = self._with_condition(conditions, "Available", *_availability(enough))
        done = updated >= wanted and total == updated and available >= wanted and _caught_up(sets)
        conditions, again = self._progress(deployment, current, conditions, done, status)
        status["conditions"] = conditions
        await write_status(self.client, DEPLOYMENTS, deployment, status)
        return again

    def _progress(
        self,
        deployment: UnstructuredObject,
        current: UnstructuredObject | None,
        conditions: list[JSON],
        done: bool,
        status: JSON,
    ) -> tuple[list[JSON], float | None]:
        """Whether the rollout moves on, is done, or has taken too long."""
        name = current.metadata.name if current is not None else ""
        if done:
            text = f'ReplicaSet "{name}" has successfully progressed.'
            return self._with_condition(conditions, "Progressing", "True", "NewReplicaSetAvailable", text), None
        deadline = deployment.spec.get("progressDeadlineSeconds")
        known = condition(conditions, "Progressing")
        moved = any(status.get(key) != deployment.status.get(key) for key in ("updatedReplicas", "availableReplicas"))
        if known is None or moved or known.get("reason") == "NewReplicaSetAvailable" or deadline is None:
            text = f'ReplicaSet "{name}" is progressing.'
            return self._with_condition(
                conditions, "Progressing", "True", "ReplicaSetUpdated", text, refresh=True
            ), deadline
        left = (seconds_of(known.get("lastUpdateTime")) or 0.0) + deadline - self.clock.now()
        if left > 0:
            return conditions, left
        text = f'ReplicaSet "{name}" has timed out progressing.'
        return self._with_condition(conditions, "Progressing", "False", "ProgressDeadlineExceeded", text), None

    def _with_condition(
        self, conditions: list[JSON], kind: str, status: str, reason: str, message: str, *, refresh: bool = False
    ) -> list[JSON]:
        now = timestamp(self.clock.now())
        known = condition(conditions, kind)
        same = known is not None and (known.get("status"), known.get("reason")) == (status, reason)
        if same and not refresh:
            return conditions
        new = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
        if known is not None and known.get("status") == status:
            new["lastTransitionTime"] = known.get("lastTransitionTime") or now
            return [new if each is known else each for each in conditions]
        return with_condition(conditions, new)


def _replicas(obj: UnstructuredObject) -> int:
    return int(obj.spec.get("replicas", 1))


def _available(replica_set: UnstructuredObject) -> int:
    return int(replica_set.status.get("availableReplicas") or 0)


def _caught_up(sets: list[UnstructuredObject]) -> bool:
    return all(int(each.status.get("replicas") or 0) == _replicas(each) for each in sets)


def _revision(replica_set: UnstructuredObject) -> int:
    text = (replica_set.metadata.annotations or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _same_template(replica_set: UnstructuredObject, deployment: UnstructuredObject) -> bool:
    return _without_hash(replica_set.spec.get("template") or {}) == _without_hash(deployment.spec.get("template") or {})


def _without_hash(template: JSON) -> JSON:
    """A template without the pod-template-hash label."""
    metadata: JSON = dict(template.get("metadata") or {})
    metadata["labels"] = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": {key: value for key, value in metadata.items() if value}}


def _surge(deployment: UnstructuredObject) -> int:
    return _limit(deployment, "maxSurge", round_up=True)


def _unavailable(deployment: UnstructuredObject) -> int:
    found = _limit(deployment, "maxUnavailable", round_up=False)
    # Percentages can round both limits to nothing, and then no step would be possible.
    return 1 if found == 0 and _surge(deployment) == 0 else min(found, _replicas(deployment))


def _limit(deployment: UnstructuredObject, key: str, *, round_up: bool) -> int:
    strategy: JSON = deployment.spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0
    value = (strategy.get("rollingUpdate") or {}).get(key, "25%")
    return rolling_limit(value, _replicas(deployment), round_up=round_up)


def _room_for_new(deployment: UnstructuredObject, current: int, total: int, surge: int) -> int:
    """How many replicas the new set may have now."""
    wanted = _replicas(deployment)
    if (deployment.spec.get("strategy") or {}).get("type") == "Recreate":
        return wanted if total == current else current
    return min(wanted, current + max(0, wanted + surge - total))


def _availability(enough: bool) -> tuple[str, str, str]:
    if enough:
        return "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    return "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
