"""A search that goes on later: on its own copy of the nodes, in slices.

The answer is about the nodes as they were when the search began. A placement is applied to the cluster as it is when
the search ends: pods stay on the nodes that were found for them, and those whose seats are gone are placed anew inside
the same domains. `resumed_verdict` in `plan` does that; what it returns is validated like any other plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing, run_slice
from muster.scheduler.placement.request import GroupRequest, IdenticalPods, PodGroupRequest, leaves
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.partial_placement import PartialPlacement, narrowed
from muster.scheduler.planning.tree_search import Found, NotFound


class PausedSearch:
    """The search for the minimum of one request, between two slices."""

    def __init__(
        self, request: GroupRequest, search: Pausing[Found | NotFound], budget: Budget, names: Sequence[str]
    ) -> None:
        self.request = request
        self.budget = budget
        self._search = search
        self._names = tuple(names)  # of the nodes, by slot, when the search began

    def advance(self) -> Found | NotFound | None:
        """Search for one more slice; None if that did not end it."""
        return run_slice(self._search)

    def close(self) -> None:
        """Drop what the search holds."""
        self._search.close()

    def _slots(self, placement: PartialPlacement) -> Ints:
        """The slots that the nodes have now; -1 for those that are gone."""
        cluster = placement.cluster
        if self._names == tuple(cluster.names):
            return np.arange(len(self._names), dtype=np.int64)
        return np.array([cluster.index.get(name, -1) for name in self._names], dtype=np.int64)

    def apply(self, found: Found, placement: PartialPlacement) -> bool:
        """Place what was found on the cluster as it is now; False if a seat is gone and no other is there."""
        left = list[tuple[IdenticalPods, int]]()
        slot_of = self._slots(placement)
        # Shape by shape: what fits is computed anew only when pods of another shape were placed.
        ordered = sorted(found.packed, key=lambda packed: packed.pods.shape.id)
        for shape, all_packed in groupby(ordered, key=lambda packed: packed.pods.shape):
            seats = placement.trial.seats(shape)
            for packed in all_packed:
                missing = _place(placement, packed.pods, slot_of[packed.nodes], packed.counts, seats)
                if missing:
                    left.append((packed.pods, missing))
        for group, value in found.domains:
            placement.choose_domain(group, value)
        groups = {pods: leaf for leaf in leaves(self.request) for pods in leaf.identical}
        for pods, missing in left:
            inside = _nodes_for(groups[pods], self.request, placement, None)
            if placement.place_best(pods, missing, inside) < missing:
                return False
        for group in found.satisfied:
            placement.mark_satisfied(group)
        return True


def _place(placement: PartialPlacement, pods: IdenticalPods, slots: Ints, counts: Ints, seats: Ints) -> int:
    """Place pods where `seats` are left, which become fewer; how many of them do not fit."""
    fitting = np.where(slots >= 0, np.minimum(counts, seats[slots]), 0)
    used = np.flatnonzero(fitting > 0)
    placement.place_counts(pods, slots[used], fitting[used])
    seats[slots[used]] -= fitting[used]
    return int(counts.sum() - fitting[used].sum())


def _nodes_for(
    leaf: PodGroupRequest, group: GroupRequest, placement: PartialPlacement, nodes: Mask | None
) -> Mask | None:
    """The nodes of the domains that were chosen for a PodGroup and the groups above it."""
    value = placement.domain_of(group)
    if value is not None:
        nodes = narrowed(nodes, placement.cluster.labels(group.topology), value)
    if isinstance(group, PodGroupRequest):
        return nodes
    below = next(child for child in group.open if any(one is leaf for one in leaves(child)))
    return _nodes_for(leaf, below, placement, nodes)
