"""A stand-in for the LeaderWorkerSet manager: leaders and workers with its labels, in its order, re-created as it does.

The pods are made at once, without StatefulSets between: a leader is controlled by the set, a worker by its leader. Left
out: exclusive placement, partitions and surges of rolling updates (one replica is renewed at a time), Services.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from muster.api.membership import LEADER_WORKER_SETS, LWS, SUBGROUP_SIZE
from muster.api.resources import PODS
from muster.controllers.controller import Controller
from muster.controllers.objects import PodView, UnstructuredObject, controller_of, controller_uid
from muster.controllers.pod_control import controller_reference

JSON = dict[str, Any]
REVISION = f"{LWS}template-revision-hash"


class SimulatedLeaderWorkerSets(Controller):
    name = "simulated-lws-manager"
    workers = 4

    def setup(self) -> None:
        self._sets = self.watch_keys(LEADER_WORKER_SETS)
        self._pods = self.watch(PODS)
        self._owned = self._pods.index("by-controller", controller_uid)
        self._pods.on_change(lambda old, new: self._pod_changed(new if new is not None else old))

    def _pod_changed(self, pod: PodView) -> None:
        name = (pod.metadata.labels or {}).get(f"{LWS}name")
        if name and controller_of(pod.metadata) is not None:
            self.queue.add((pod.metadata.namespace, name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        this: UnstructuredObject | None = self._sets.get(*key)
        if this is None or this.metadata.deletion_timestamp is not None:
            return None
        leaders: list[PodView] = self._owned.get(this.metadata.uid)
        by_index = {(leader.metadata.labels or {}).get(f"{LWS}group-index", ""): leader for leader in leaders}
        replicas, revision = _replicas(this), revision_of(this)
        for index in sorted(set(range(replicas)) | {int(text) for text in by_index if text.isdigit()}):
            await self._replica(this, index, by_index.get(str(index)), index < replicas, revision)
        await self._renew_one(this, [by_index[str(index)] for index in range(replicas) if str(index) in by_index])
        await self._report(this, leaders)
        return None

    async def _replica(
        self, this: UnstructuredObject, index: int, leader: PodView | None, wanted: bool, revision: str
    ) -> None:
        if leader is None:
            if wanted:
                await self._create(this, _pod(this, index, 0, revision, None))
            return
        if leader.going:
            return
        workers: list[PodView] = self._owned.get(leader.metadata.uid)
        broken = leader.finished or any(pod.finished or pod.going for pod in workers)
        recreates = _template(this).get("restartPolicy") != "None"
        if not wanted or (broken and recreates):
            await self._delete(leader)
            return
        if this.spec.get("startupPolicy") == "LeaderReady" and not leader.ready:
            return
        have = {pod.metadata.name for pod in workers}
        own = (leader.metadata.labels or {}).get(REVISION, "")
        if own == revision:  # a replica that is renewed soon is not completed any more
            for number in range(1, _size(this)):
                if f"{leader.metadata.name}-{number}" not in have:
                    await self._create(this, _pod(this, index, number, own, leader))

    async def _renew_one(self, this: UnstructuredObject, leaders: list[PodView]) -> None:
        """A rolling update: from the last replica to the first, the next when all others are ready."""
        revision = revision_of(this)
        old = [leader for leader in leaders if (leader.metadata.labels or {}).get(REVISION) != revision]
        if old and all(leader.ready and not leader.going for leader in leaders if leader not in old):
            last = old[-1]
            if not any(leader.going for leader in leaders):
                await self._delete(last)

    async def _create(self, this: UnstructuredObject, pod: JSON) -> None:
        await self.client.create(PODS, pod, this.metadata.namespace)

    async def _delete(self, leader: PodView) -> None:
        meta = leader.metadata
        await self.client.delete(PODS, meta.name, meta.namespace, uid=meta.uid, propagation_policy="Foreground")

    async def _report(self, this: UnstructuredObject, leaders: list[PodView]) -> None:
        ready = sum(leader.ready and not leader.going for leader in leaders)
        status = {"replicas": len(leaders), "readyReplicas": ready}
        if any(this.status.get(key) != value for key, value in status.items()):
            await self.client.patch(
                LEADER_WORKER_SETS,
                this.metadata.name,
                {"status": status},
                this.metadata.namespace,
                subresource="status",
            )


def _template(this: UnstructuredObject) -> JSON:
    return this.spec.get("leaderWorkerTemplate") or {}


def _replicas(this: UnstructuredObject) -> int:
    replicas = this.spec.get("replicas")
    return 1 if replicas is None else int(replicas)


def _size(this: UnstructuredObject) -> int:
    return int(_template(this).get("size") or 1)


def revision_of(this: UnstructuredObject) -> str:
    """The revision of the template that new replicas are made from."""
    text = json.dumps(_template(this), sort_keys=True)
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:10]


def _pod(this: UnstructuredObject, index: int, number: int, revision: str, leader: PodView | None) -> JSON:
    """The leader of a replica (number 0), or one of its workers."""
    meta, whole = this.metadata, _template(this)
    template: JSON = (whole.get("leaderTemplate") if number == 0 else None) or whole.get("workerTemplate") or {}
    leader_name = f"{meta.name}-{index}"
    found: JSON = template.get("metadata") or {}
    labels = {
        f"{LWS}name": meta.name,
        f"{LWS}group-index": str(index),
        f"{LWS}group-key": _key(f"{meta.namespace}/{leader_name}"),
        f"{LWS}worker-index": str(number),
        REVISION: revision,
        **_subgroup(this, number, leader_name),
    }
    annotations = {f"{LWS}size": str(_size(this))}
    if number:
        annotations[f"{LWS}leader-name"] = leader_name
    if size := (whole.get("subGroupPolicy") or {}).get("subGroupSize"):
        annotations[SUBGROUP_SIZE] = str(size)
    owner = (
        controller_reference(LEADER_WORKER_SETS, meta)
        if leader is None
        else controller_reference(PODS, leader.metadata)
    )
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": f"{leader_name}-{number}" if number else leader_name,
            "namespace": meta.namespace,
            "labels": {**(found.get("labels") or {}), **labels},
            "annotations": {**(found.get("annotations") or {}), **annotations},
            "ownerReferences": [owner],
        },
        "spec": {**(template.get("spec") or {}), "subdomain": meta.name},
    }


def _subgroup(this: UnstructuredObject, number: int, leader_name: str) -> dict[str, str]:
    policy: JSON = _template(this).get("subGroupPolicy") or {}
    size = int(policy.get("subGroupSize") or 0)
    if not size:
        return {}
    if policy.get("subGroupPolicyType") == "LeaderExcluded":
        if number == 0:
            return {}
        index = (number - 1) // size
    elif (_size(this) - 1) % size == 0:  # the leader comes on top of the first subgroup
        index = max(0, number - 1) // size
    else:
        index = number // size
    return {f"{LWS}subgroup-index": str(index), f"{LWS}subgroup-key": _key(f"{leader_name}/{index}")}


def _key(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
