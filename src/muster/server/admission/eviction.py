"""Eviction respects PodDisruptionBudgets: a pod is evicted only if its budget allows one more disruption.

`review` decides and is pure; `BudgetGuard` is the server's hook around it. An eviction that is allowed
is charged to the budget at once (`disruptedPods`, one disruption less), so that a burst of evictions
cannot overdraw it before the budget controller has seen the first one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from muster.api.errors import ApiError, forbidden, internal
from muster.api.resources import POD_DISRUPTION_BUDGETS
from muster.api.selectors import matches
from muster.api.types import LabelSelector
from muster.client.protocol import Client
from muster.server.metadata import timestamp
from muster.server.resources.kind import Obj, Write

VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_AFTER = 10
_MAX_UNCONFIRMED = 2000
_RACES = 5


class BudgetGuard:
    """Raises 429 where a budget forbids an eviction; otherwise records it in the budget's status."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock

    async def __call__(self, pod: Obj, write: Write) -> None:
        for _ in range(_RACES):
            namespace: str = pod["metadata"]["namespace"]
            charged = review(pod, write.reader.list("poddisruptionbudgets", "policy", namespace), self._clock())
            if charged is None or write.dry_run:
                return
            try:
                await self._client.update(POD_DISRUPTION_BUDGETS, charged, subresource="status")
                return
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
        raise ApiError(429, "TooManyRequests", VIOLATION, retry_after=_RETRY_AFTER)


def review(pod: Obj, budgets: Iterable[Obj], now: float) -> Obj | None:
    """The budget as charged for this eviction; None if none has to be charged. Raises if it is not allowed."""
    status: Obj = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed", "Pending") or pod["metadata"].get("deletionTimestamp"):
        return None
    covering = [each for each in budgets if _covers(each, pod)]
    if not covering:
        return None
    if len(covering) > 1:
        raise internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    budget = covering[0]
    if not _ready(status) and _spares_unhealthy(budget):
        return None
    return _charge(budget, pod, now)


def _covers(budget: Obj, pod: Obj) -> bool:
    selector: Any = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    return matches(msgspec.convert(selector, LabelSelector), pod["metadata"].get("labels"))


def _ready(status: Obj) -> bool:
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ())


def _spares_unhealthy(budget: Obj) -> bool:
    """Whether a pod that is not ready may be evicted without being counted (`unhealthyPodEvictionPolicy`)."""
    policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") or "IfHealthyBudget"
    status: Obj = budget.get("status") or {}
    healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    return policy == "AlwaysAllow" or (desired > 0 and healthy >= desired)


def _charge(budget: Obj, pod: Obj, now: float) -> Obj:
    name: str = budget["metadata"]["name"]
    status: Obj = budget.get("status") or {}
    if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise _violation(f"The disruption budget {name} is still being processed by the server.", _RETRY_AFTER)
    allowed: int = status.get("disruptionsAllowed") or 0
    unconfirmed: Obj = status.get("disruptedPods") or {}
    if allowed < 0:
        raise forbidden("policy", "poddisruptionbudgets", name, "pod disruption budget is negative")
    if len(unconfirmed) > _MAX_UNCONFIRMED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("policy", "poddisruptionbudgets", name, why)
    if allowed == 0:
        needs, has = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
        raise _violation(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently")
    disrupted = {**unconfirmed, pod["metadata"]["name"]: timestamp(now)}
    return {**budget, "status": {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}}


def _violation(message: str, retry_after: int | None = None) -> ApiError:
    """A refusal. Clients that are told when to try again do so by themselves, so only a moment's hindrance says it."""
    details = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    return ApiError(429, "TooManyRequests", VIOLATION, details, retry_after=retry_after)
