"""The status of PodDisruptionBudgets: expected and healthy pods, and how many disruptions are allowed."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.resources import (
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from muster.api.selectors import matches
from muster.api.types import LabelSelector
from muster.client.clock import seconds_of, timestamp
from muster.controllers.controller import Controller
from muster.controllers.objects import PodView, UnstructuredObject, controller_of
from muster.controllers.status import write_status

_CONFIRM_WITHIN = 120.0  # an eviction that is not observed by then is forgotten
_SCALES = {
    ("ReplicaSet", "apps"): REPLICA_SETS,
    ("StatefulSet", "apps"): STATEFUL_SETS,
    ("ReplicationController", ""): REPLICATION_CONTROLLERS,
}


class Disruption(Controller):
    name = "disruption-controller"
    workers = 2

    def setup(self) -> None:
        self._budgets = self.watch_keys(POD_DISRUPTION_BUDGETS)
        self._by_namespace = self._budgets.index("by-namespace", lambda budget: budget.metadata.namespace)
        self._pods = self.watch(PODS)
        self._pods.on_change(self._pod_changed)
        self._scales = {key: self.watch(resource) for key, resource in _SCALES.items()}

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        namespace = (new or old).metadata.namespace  # type: ignore[union-attr]
        if namespace not in self._by_namespace:
            return
        for budget in self._by_namespace.get(namespace):
            selector = _selector(budget)
            if any(pod is not None and matches(selector, pod.metadata.labels) for pod in (old, new)):
                self.queue.add((namespace, budget.metadata.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        budget: UnstructuredObject | None = self._budgets.get(*key)
        if budget is None:
            return None
        selector = _selector(budget)
        pods = [
            pod
            for pod in self._pods.in_namespace(key[0])
            if matches(selector, pod.metadata.labels) and not pod.finished
        ]
        disrupted, again = self._unconfirmed(budget, {pod.metadata.name: pod for pod in pods})
        status = self._status(budget, pods, disrupted)
        if status != budget.status:
            await write_status(self.client, POD_DISRUPTION_BUDGETS, budget, status)
        return again

    def _unconfirmed(self, budget: UnstructuredObject, pods: dict[str, PodView]) -> tuple[dict[str, str], float | None]:
        """Evictions that were granted but not yet observed (`disruptedPods`), and when the next of them expires."""
        now = self.clock.now()
        kept: dict[str, str] = {}
        again: float | None = None
        for name, when in (budget.status.get("disruptedPods") or {}).items():
            pod = pods.get(name)
            left = (seconds_of(when) or 0.0) + _CONFIRM_WITHIN - now
            if pod is not None and not pod.going and left > 0:
                kept[name] = when
                again = left if again is None else min(again, left)
        return kept, again

    def _status(self, budget: UnstructuredObject, pods: list[PodView], disrupted: dict[str, str]) -> dict[str, Any]:
        expected = self._expected(budget, pods)
        healthy = sum(1 for pod in pods if pod.ready and not pod.going and pod.metadata.name not in disrupted)
        desired = _desired(budget.spec, expected)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status: dict[str, Any] = {
            "conditions": self._conditions(budget, allowed),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        if budget.metadata.generation:
            status["observedGeneration"] = budget.metadata.generation
        return status

    def _expected(self, budget: UnstructuredObject, pods: list[PodView]) -> int:
        """How many pods are expected: those that exist for a fixed `minAvailable`, otherwise the controllers' scale."""
        least = budget.spec.get("minAvailable")
        if isinstance(least, int):
            return len(pods)
        wanted: dict[str, int] = {}
        alone = 0
        for pod in pods:
            owner = controller_of(pod.metadata)
            informer = self._scales.get((owner.kind, owner.api_version.rpartition("/")[0])) if owner else None
            scale: UnstructuredObject | None = (
                informer.get(pod.metadata.namespace, owner.name) if informer and owner else None
            )
            if owner is None or scale is None or scale.metadata.uid != owner.uid:
                alone += 1
            else:
                wanted[owner.uid] = int(scale.spec.get("replicas") or 0)
        return alone + sum(wanted.values())

    def _conditions(self, budget: UnstructuredObject, allowed: int) -> list[dict[str, Any]]:
        status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
        known: list[dict[str, Any]] = budget.status.get("conditions") or []
        old = next((each for each in known if each.get("type") == "DisruptionAllowed"), None)
        new: dict[str, Any] = {
            "type": "DisruptionAllowed",
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": timestamp(self.clock.now()),
        }
        if budget.metadata.generation:
            new["observedGeneration"] = budget.metadata.generation
        if old is not None and old.get("status") == status:
            new["lastTransitionTime"] = old.get("lastTransitionTime")
        return [*(each for each in known if each is not old), new]


def _selector(budget: UnstructuredObject) -> LabelSelector | None:
    selector = budget.spec.get("selector")
    return None if selector is None else msgspec.convert(selector, LabelSelector)


def _desired(spec: dict[str, Any], expected: int) -> int:
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None:
        return _amount(least, expected)
    if most is not None:
        return max(0, expected - _amount(most, expected))
    return 0


def _amount(value: int | str, whole: int) -> int:
    """A count, or a percentage rounded up."""
    if isinstance(value, int):
        return value
    return -(-int(value.rstrip("%")) * whole // 100)
