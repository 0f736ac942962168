"""What admission does for workloads that know nothing of groups: their pods are put into the leaf of their workload.

It comes after all webhooks and mutating policies, because the managers of some kinds write in a webhook the labels that
the leaf is read from. A pod that names a group keeps it. In namespaces labelled as managed, pods that name no scheduler
get ours.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from muster.api.membership import MANAGED_LABEL, facts_of, leaf_of
from muster.server.resources.kind import Obj, Write

_DEFAULT_SCHEDULER = "default-scheduler"


class WorkloadGroups:
    """The rule for the pods of these schedulers, of which the last is given to those that name none."""

    def __init__(self, schedulers: Collection[str]) -> None:
        self._schedulers = tuple(schedulers)

    def __call__(self, write: Write, pod: Obj) -> None:
        if write.kind.plural != "pods" or write.kind.group or write.subresource:
            return
        spec: Obj = pod.get("spec") or {}
        name: Any = spec.get("schedulerName") or _DEFAULT_SCHEDULER
        if name not in self._schedulers:
            if name != _DEFAULT_SCHEDULER or not _is_managed(write):
                return
            spec["schedulerName"] = self._schedulers[-1]
        if spec.get("schedulingGroup") is None and (leaf := leaf_of(facts_of(pod))):
            spec["schedulingGroup"] = {"podGroupName": leaf}


def _is_managed(write: Write) -> bool:
    namespace = write.reader.get("namespaces", "", "", write.namespace) or {}
    labels: Obj = (namespace.get("metadata") or {}).get("labels") or {}
    return labels.get(MANAGED_LABEL) == "true"
