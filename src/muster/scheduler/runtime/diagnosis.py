"""Diagnosis: why no node is feasible for a shape, and the message that kube-scheduler gives for it.

Each node is counted under the first plugin that rejects it. The message is
`0/N nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint(s).`
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.cache.arrays import Bools
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import FilterStatus
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.profile import profile_of

RejectedBy = str | tuple[str, str]


@dataclass(slots=True)
class Diagnosis:
    """Why `total` nodes were rejected for one shape.

    `counts` are numbers of nodes by message. `unresolvable` marks the nodes where no eviction can help. `rejected_by`
    holds the names of the plugins that rejected nodes, and pairs of a plugin and a resource that was short, so that the
    queue knows which events can end the rejection. `message` is set if the pod was rejected before filtering.
    """

    total: int
    unresolvable: Bools
    counts: dict[str, int] = field(default_factory=dict[str, int])
    rejected_by: frozenset[RejectedBy] = frozenset()
    message: str = ""

    def add(self, statuses: Iterable[FilterStatus]) -> None:
        for status in statuses:
            if len(status.slots) == 0:
                continue
            self.counts[status.message] = self.counts.get(status.message, 0) + len(status.slots)
            self.rejected_by |= {status.rejected_by}
            if isinstance(status.rejected_by, tuple):
                self.rejected_by |= {status.rejected_by[0]}
            unresolvable = np.broadcast_to(status.unresolvable, status.slots.shape)
            self.unresolvable[status.slots[unresolvable]] = True

    def message_text(self, after: str = "") -> str:
        """The whole message; `after` is what preemption adds to it."""
        what = self.message or ", ".join(sorted(f"{count} {text}" for text, count in self.counts.items()))
        if not self.total:
            return "no nodes available to schedule pods"
        return f"0/{self.total} nodes are available: {what}." + (f" {after}" if after else "")


def diagnose(shape: Shape, cluster: Cluster, mask: Bools | None) -> Diagnosis:
    """Run all filters of the shape's profile in order over the nodes (of the mask), and report who rejects what."""
    left = cluster.alive.copy() if mask is None else cluster.alive & mask
    found = Diagnosis(int(left.sum()), np.zeros(cluster.size, dtype=np.bool_))
    if _rejected_by_pre_filter(shape, cluster, left, found):
        return found
    for plugin in profile_of(shape).filters:
        if not (plugin.concerns(shape) and plugin.filter_applies(shape, cluster)):
            continue
        passed = plugin.filter(shape, cluster, slice(0, cluster.size))
        rejected = np.flatnonzero(left & ~passed)
        if len(rejected):
            found.add(plugin.statuses(shape, cluster, rejected))
            left &= passed
    return found


def _rejected_by_pre_filter(shape: Shape, cluster: Cluster, left: Bools, found: Diagnosis) -> bool:
    """Run the pre-filters; nodes that they exclude by name are removed from `left`. True if the pod is rejected."""
    narrowing: list[str] = []
    names: frozenset[str] | None = None
    for plugin in profile_of(shape).filters:
        message = plugin.pre_filter(shape, cluster)
        allowed = None if message else plugin.pre_filter_nodes(shape, cluster)
        if allowed is not None:
            narrowing.append(plugin.name)
            names = allowed if names is None else names & allowed
            if not names:
                one = f"node(s) didn't satisfy plugin {plugin.name}"
                several = f"node(s) didn't satisfy plugin(s) [{' '.join(narrowing)}] simultaneously"
                message = one if len(narrowing) == 1 else several
        if message:
            found.message = message
            found.rejected_by = frozenset((plugin.name, *narrowing))
            found.unresolvable |= left
            return True
    if names is not None:
        named = np.zeros(cluster.size, dtype=np.bool_)
        named[[cluster.index[name] for name in names if name in cluster.index]] = True
        absent = np.flatnonzero(left & ~named)
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(narrowing)}]"
        found.add([FilterStatus(text, absent, True, narrowing[0])])
        left &= named
    return False
