"""Why no node takes a pod, in the words that Kubernetes users know.

Each node is counted under the first rule that refused it. The text is
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
    """The diagnosis of one attempt over `total` nodes.

    `unresolvable` marks the nodes where no eviction could help. `culprits` names the constraints that
    refused, and pairs a constraint with the resource that was short, so that the queue knows what
    could cure it. `message` is set when the pod itself was at fault, before any node was looked at.
    """

    total: int
    unresolvable: Bools
    counts: dict[str, int] = field(default_factory=dict[str, int])
    rejected_by: frozenset[RejectedBy] = frozenset()
    message: str = ""

    def add(self, reasons: Iterable[FilterStatus]) -> None:
        for reason in reasons:
            if len(reason.slots) == 0:
                continue
            self.counts[reason.message] = self.counts.get(reason.message, 0) + len(reason.slots)
            self.rejected_by |= {reason.rejected_by}
            if isinstance(reason.rejected_by, tuple):
                self.rejected_by |= {reason.rejected_by[0]}
            final = np.broadcast_to(reason.unresolvable, reason.slots.shape)
            self.unresolvable[reason.slots[final]] = True

    def message_text(self, after: str = "") -> str:
        """The whole message; `after` is what a later step (preemption) has to add."""
        what = self.message or ", ".join(sorted(f"{count} {text}" for text, count in self.counts.items()))
        if not self.total:
            return "no nodes available to schedule pods"
        return f"0/{self.total} nodes are available: {what}." + (f" {after}" if after else "")


def diagnose(shape: Shape, cluster: Cluster, mask: Bools | None) -> Diagnosis:
    """The refusals of all rules in their order."""
    left = cluster.alive.copy() if mask is None else cluster.alive & mask
    found = Diagnosis(int(left.sum()), np.zeros(cluster.size, dtype=np.bool_))
    if _refused_outright(shape, cluster, left, found):
        return found
    for constraint in profile_of(shape).filters:
        if not (constraint.concerns(shape) and constraint.filter_applies(shape, cluster)):
            continue
        allowed = constraint.filter(shape, cluster, slice(0, cluster.size))
        refused = np.flatnonzero(left & ~allowed)
        if len(refused):
            found.add(constraint.statuses(shape, cluster, refused))
            left &= allowed
    return found


def _refused_outright(shape: Shape, cluster: Cluster, left: Bools, found: Diagnosis) -> bool:
    """What is known before any node is looked at; nodes that are ruled out by name leave `left`."""
    narrowing: list[str] = []
    names: frozenset[str] | None = None
    for constraint in profile_of(shape).filters:
        message = constraint.pre_filter(shape, cluster)
        some = None if message else constraint.pre_filter_nodes(shape, cluster)
        if some is not None:
            narrowing.append(constraint.name)
            names = some if names is None else names & some
            if not names:
                one = f"node(s) didn't satisfy plugin {constraint.name}"
                several = f"node(s) didn't satisfy plugin(s) [{' '.join(narrowing)}] simultaneously"
                message = one if len(narrowing) == 1 else several
        if message:
            found.message = message
            found.rejected_by = frozenset((constraint.name, *narrowing))
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
