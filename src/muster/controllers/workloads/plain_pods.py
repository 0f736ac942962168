"""Groups that only pods speak of: Kueue's plain-pod groups, and leaves that no workload explains.

They have no owner; the controller deletes them when their last pod is gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.api.membership import KUEUE, Facts
from muster.api.resources import POD_GROUPS
from muster.controllers.workloads.group_objects import MADE_FOR_PODS, PODS_VALUE
from muster.controllers.workloads.seen_leaves import LeafKey
from muster.controllers.workloads.tree import JSON

TOTAL_COUNT = f"{KUEUE}pod-group-total-count"


def minimum_of(pods: Iterable[Facts]) -> int:
    """How many pods a plain-pod group has, as its pods say; at least one."""
    stated = [text for pod in pods if (text := pod.annotations.get(TOTAL_COUNT, "")).isascii() and text.isdigit()]
    return max((int(text) for text in stated), default=1) or 1


def group_of(leaf: LeafKey, minimum: int | None) -> JSON:
    """The PodGroup; without a minimum a basic one."""
    policy: JSON = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": leaf.name, "namespace": leaf.namespace, "labels": {MADE_FOR_PODS: PODS_VALUE}},
        "spec": {"schedulingPolicy": policy},
    }
