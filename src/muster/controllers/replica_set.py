"""ReplicaSets: as many pods as asked for, replaced when they end."""

from __future__ import annotations

from muster.api.resources import PODS, REPLICA_SETS
from muster.client.clock import seconds_of
from muster.controllers.controller import Controller
from muster.controllers.objects import UpkeepPod, Whole, controller_of
from muster.controllers.pod_control import PodControl, pod_from
from muster.controllers.status import JSON, write_status


class ReplicaSetController(Controller):
    name = "replicaset-controller"
    workers = 4

    def setup(self) -> None:
        self._sets = self.watch_keys(REPLICA_SETS)
        pods = self.watch(PODS)
        self._control = PodControl(self.client, self.clock, pods, REPLICA_SETS, self.events)
        pods.on_change(self._pod_changed)

    def _pod_changed(self, old: UpkeepPod | None, new: UpkeepPod | None) -> None:
        pod = new if new is not None else old
        owner = controller_of(pod.metadata) if pod is not None else None
        if pod is not None and owner is not None and owner.kind == REPLICA_SETS.kind:
            self.queue.add((pod.metadata.namespace, owner.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        found: Whole | None = self._sets.get(*key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        wanted = int(found.spec.get("replicas", 1))
        active = self._active(found)
        if len(active) < wanted:
            template: JSON = found.spec.get("template") or {}
            pods = [
                pod_from(template, REPLICA_SETS, found.metadata, f"{found.metadata.name}-")
                for _ in range(wanted - len(active))
            ]
            await self._control.create(found.metadata, pods)
        elif len(active) > wanted:
            await self._control.delete(sorted(active, key=_worth)[: len(active) - wanted])
        status, again = self._status(found, self._active(found))
        await write_status(self.client, REPLICA_SETS, found, status)
        return again

    def _active(self, found: Whole) -> list[UpkeepPod]:
        pods = self._control.pods_of(found.metadata.uid)
        return [pod for pod in pods if not pod.finished and not self._control.going(pod)]

    def _status(self, found: Whole, active: list[UpkeepPod]) -> tuple[JSON, float | None]:
        """The status, and when the next pod has been ready long enough to count as available."""
        settle = float(found.spec.get("minReadySeconds") or 0)
        now = self.clock.now()
        ready = [pod for pod in active if pod.ready]
        left = [(seconds_of(pod.ready_since) or 0.0) + settle - now for pod in ready]
        status: JSON = {"replicas": len(active), "observedGeneration": found.metadata.generation}
        for key, number in (
            ("fullyLabeledReplicas", len(active)),
            ("readyReplicas", len(ready)),
            ("availableReplicas", sum(1 for each in left if settle == 0 or each <= 0)),
        ):
            if number:
                status[key] = number
        waiting = [each for each in left if settle and each > 0]
        return status, min(waiting, default=None)


def _worth(pod: UpkeepPod) -> tuple[bool, bool, bool, str]:
    """Least worth keeping first: not placed, not running, not ready, youngest."""
    created = pod.metadata.creation_timestamp or ""
    # Younger pods go first, so the later text has to sort lower.
    youth = "".join(chr(0x10FFFF - ord(letter)) for letter in created)
    return (bool(pod.spec.node_name), pod.status.phase == "Running", pod.ready, youth)
