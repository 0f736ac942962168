"""What Kueue writes on the pods that it admits, as far as scheduling reads it.

Kueue decides when a workload starts and makes room for it by suspending others. Two that evict would fight, so nobody
is evicted for its pods, unless the group at the top of their tree says so.
"""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "kueue.x-k8s.io/"
ADMITTED = (f"{PREFIX}podset", f"{PREFIX}managed", f"{PREFIX}queue-name")  # labels; any of them will do

PREEMPTION = "scheduling.muster.dev/kueue-preemption"
ALLOWED, NEVER = "allowed", "never"


def is_admitted(labels: Mapping[str, str] | None) -> bool:
    """Whether a pod with these labels is of a workload that Kueue admits."""
    return labels is not None and any(label in labels for label in ADMITTED)


def may_preempt(annotations: Mapping[str, str] | None) -> bool:
    """Whether a group with these annotations may evict others although Kueue admitted it."""
    return (annotations or {}).get(PREEMPTION) == ALLOWED
