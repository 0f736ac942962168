"""Why no node takes a pod, in the words that Kubernetes users know.

Each node is counted under the first rule that refused it. The text is
`0/N nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint(s).`
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.arrays import Bools
from muster.scheduler.constraints.base import Reason

Culprit = str | tuple[str, str]


@dataclass(slots=True)
class Refusals:
    """The diagnosis of one attempt over `total` nodes.

    `unresolvable` marks the nodes where no eviction could help. `culprits` names the constraints that
    refused, and pairs a constraint with the resource that was short, so that the queue knows what
    could cure it. `message` is set when the pod itself was at fault, before any node was looked at.
    """

    total: int
    unresolvable: Bools
    counts: dict[str, int] = field(default_factory=dict[str, int])
    culprits: frozenset[Culprit] = frozenset()
    message: str = ""

    def note(self, reasons: Iterable[Reason]) -> None:
        for reason in reasons:
            if len(reason.slots) == 0:
                continue
            self.counts[reason.text] = self.counts.get(reason.text, 0) + len(reason.slots)
            self.culprits |= {reason.culprit}
            if isinstance(reason.culprit, tuple):
                self.culprits |= {reason.culprit[0]}
            final = np.broadcast_to(reason.final, reason.slots.shape)
            self.unresolvable[reason.slots[final]] = True

    def text(self, after: str = "") -> str:
        """The whole message; `after` is what a later step (preemption) has to add."""
        what = self.message or ", ".join(sorted(f"{count} {text}" for text, count in self.counts.items()))
        if not self.total:
            return "no nodes available to schedule pods"
        return f"0/{self.total} nodes are available: {what}." + (f" {after}" if after else "")
