"""Pods that other schedulers are about to bind: whether there are any, and when one was last seen bound.

Other schedulers take no part in the binding lease. While they have pods to place, the binds of a gang wait a moment, so
that what they bind at the same time is seen before the gang is sent: until they have judged their new pods (bound them,
or written that they are unschedulable), and until none was bound for a while.
"""

from __future__ import annotations

from collections.abc import Collection

from muster.api.resources import PODS
from muster.api.types import Pod
from muster.scheduler.interface.events import Event, ObjectDeleted, ObjectUpdated

SETTLE = 0.1  # seconds without a bind of another scheduler
MOST_SETTLE = 1.0  # seconds that a gang waits for that
NEW_SECONDS = 5.0  # a pod that nobody has judged for so long is nobody's


class ForeignPods:
    """The pods of other schedulers that wait for a node; `partners` are the schedulers that share the binding lease."""

    def __init__(self, profiles: Collection[str], partners: Collection[str] = ()) -> None:
        self._profiles = profiles
        self._partners = partners
        self._new: dict[str, float] = {}  # not judged yet: uid -> first seen
        self._judged: set[str] = set()
        self._bound_at = 0.0

    def handled(self, event: Event, now: float) -> None:
        """An event on its way to the scheduler."""
        if isinstance(event, ObjectDeleted):
            if event.kind == PODS.kind:
                self._forget(event.uid)
        elif isinstance(event, ObjectUpdated) and event.kind == PODS.kind:
            pod: Pod = event.object
            if pod.spec.scheduler_name not in self._profiles and pod.spec.scheduler_name not in self._partners:
                self._seen(pod, now)
            else:
                self._forget(pod.metadata.uid)

    def _seen(self, pod: Pod, now: float) -> None:
        uid = pod.metadata.uid
        if pod.spec.node_name or pod.spec.scheduling_gates or pod.metadata.deletion_timestamp:
            if self._forget(uid) and pod.spec.node_name:
                self._bound_at = now
        elif any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions or ()):
            self._new.pop(uid, None)
            self._judged.add(uid)
        elif uid not in self._judged:
            self._new.setdefault(uid, now)

    def _forget(self, uid: str) -> bool:
        """Whether the pod was waiting."""
        waited = self._new.pop(uid, None) is not None or uid in self._judged
        self._judged.discard(uid)
        return waited

    def settled_at(self, since: float) -> float:
        """When binds of a gang that were decided at a time may be sent, as far as is known now."""
        if any(since - seen < NEW_SECONDS for seen in self._new.values()):
            return since + MOST_SETTLE
        if not self._judged and self._bound_at < since:
            return since
        return min(max(since, self._bound_at) + SETTLE, since + MOST_SETTLE)
