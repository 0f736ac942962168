"""The pods placed so far on a trial, the groups that are satisfied by them, and the domains that were chosen.

Everything can be undone back to a mark, together with the trial. Identical pods are placed by count; which of them gets
which node is decided once, at the end, in their order of preference.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from muster.scheduler.placement.request import GroupRequest, IdenticalPods
from muster.scheduler.placement.verdict import Assignment
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.runtime.trial import Trial

Mark = tuple[int, int, int, int]


class PartialPlacement:
    """One placement while it is being built. Requests and identical pods are told apart by identity."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.cluster = trial.cluster
        self.domains: list[tuple[GroupRequest, int]] = []  # constrained groups and the value id of their domain
        self.satisfied: list[GroupRequest] = []
        self._log: list[tuple[IdenticalPods, list[int]]] = []
        self._counts: dict[IdenticalPods, int] = defaultdict(int)
        self._values: dict[GroupRequest, int] = {}
        self._satisfied: set[GroupRequest] = set()

    # --- marks -----------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """A point to come back to."""
        return self.trial.mark(), len(self._log), len(self.domains), len(self.satisfied)

    def undo(self, mark: Mark) -> None:
        """Take back everything since the mark."""
        self.trial.undo(mark[0])
        while len(self._log) > mark[1]:
            pods, slots = self._log.pop()
            self._counts[pods] -= len(slots)
        while len(self.domains) > mark[2]:
            del self._values[self.domains.pop()[0]]
        while len(self.satisfied) > mark[3]:
            self._satisfied.discard(self.satisfied.pop())

    # --- changes ---------------------------------------------------------------------------------

    def place_best(self, pods: IdenticalPods, count: int, nodes: Mask | None) -> int:
        """Place up to `count` pods, each on the feasible node with the best score; how many were placed."""
        slots = self.trial.place_many(pods.shape, count, nodes)
        if slots:
            self._record(pods, slots)
        return len(slots)

    def place_on(self, pods: IdenticalPods, slot: int, count: int = 1) -> None:
        """Place pods on a given node."""
        self.trial.place(pods.shape, slot, count)
        self._record(pods, [slot] * count)

    def place_counts(self, pods: IdenticalPods, slots: Ints, counts: Ints) -> None:
        """Place so many pods on each of several distinct nodes."""
        self.trial.place_counts(pods.shape, slots, counts)
        self._record(pods, np.repeat(slots, counts).tolist())

    def _record(self, pods: IdenticalPods, slots: list[int]) -> None:
        self._log.append((pods, slots))
        self._counts[pods] += len(slots)

    def choose_domain(self, request: GroupRequest, value: int) -> None:
        self.domains.append((request, value))
        self._values[request] = value

    def mark_satisfied(self, request: GroupRequest) -> None:
        """The minimum of a group holds with the pods placed so far."""
        self.satisfied.append(request)
        self._satisfied.add(request)

    # --- queries ---------------------------------------------------------------------------------

    def is_satisfied(self, request: GroupRequest) -> bool:
        return request in self._satisfied

    def domain_of(self, request: GroupRequest) -> int | None:
        return self._values.get(request)

    def placed(self, pods: IdenticalPods) -> int:
        """How many of identical pods are placed."""
        return self._counts.get(pods, 0)

    def placed_since(self, mark: Mark) -> int:
        """How many pods were placed since a mark."""
        return sum(len(slots) for _, slots in self._log[mark[1] :])

    def batches_since(self, mark: Mark) -> int:
        """In how many calls pods were placed since a mark."""
        return len(self._log) - mark[1]

    @property
    def count(self) -> int:
        """How many pods are placed."""
        return sum(len(slots) for _, slots in self._log)

    def assignments(self) -> tuple[Assignment, ...]:
        """The placed pods with their nodes, in the order in which they were placed."""
        names = self.cluster.names
        used: dict[IdenticalPods, int] = defaultdict(int)
        found: list[Assignment] = []
        for pods, slots in self._log:
            start = used[pods]
            used[pods] = start + len(slots)
            uids = [member.uid for member in pods.members[start : start + len(slots)]]
            found += map(Assignment, uids, [names[slot] for slot in slots], slots)
        return tuple(found)


def narrowed(nodes: Mask | None, ids: np.ndarray, value: int) -> Mask:
    """Those of some nodes that carry one value of a label."""
    domain = ids == value
    return domain if nodes is None else domain & nodes
