"""The evaluator: shapes, their feasible nodes and scores, and trials, for one cluster (as framework.Handle upstream).

Shapes are interned: pods with equal requirements under one profile share one object while it is in use. The plugin
results of the most recently used shapes are cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from weakref import WeakValueDictionary

import numpy as np

from muster.api.types import Pod
from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import spreading_owner, topology_keys
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.feasibility import Feasibility
from muster.scheduler.runtime.profile import Profile
from muster.scheduler.runtime.trial import Trial

# At most so many array entries are cached; what was used least recently is computed again.
_CACHED_SLOTS = 2_000_000


class Evaluator:
    """Computes on which nodes a pod fits, now or in a trial."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._shapes: WeakValueDictionary[Hashable, Shape] = WeakValueDictionary()
        self._next_id = 0
        self._feasibility: OrderedDict[int, Feasibility] = OrderedDict()

    def shape(self, pod: Pod, profile: Profile) -> Shape:
        """The shape of a pod under a profile; equal requirements give the same object."""
        if not profile.pod_labels <= self.cluster.pod_counts.keys:
            self.cluster.add_label_keys(profile.pod_labels)
        footprint = self.cluster.footprint(pod)
        key = (footprint, profile, pod.spec.node_name, spreading_owner(pod))
        found = self._shapes.get(key)
        if found is None:
            self._next_id += 1
            for label in topology_keys(pod.spec):
                self.cluster.label_column(label)  # on arrival, so that no cycle waits for it
            found = self._shapes[key] = Shape(self._next_id, pod, profile, footprint)
        return found

    def feasibility(self, shape: Shape) -> Feasibility:
        """The feasible nodes and scores of a shape, brought up to date."""
        found = self._feasibility.get(shape.id)
        if found is None:
            found = self._feasibility[shape.id] = Feasibility(shape, self.cluster)
            while len(self._feasibility) > max(64, _CACHED_SLOTS // max(1, self.cluster.size)):
                self._feasibility.popitem(last=False)
        else:
            self._feasibility.move_to_end(shape.id)
        found.refresh()
        return found

    def independent(self, shape: Shape) -> bool:
        """Whether only the node itself decides if one more pod of the shape fits there."""
        return self.feasibility(shape).independent

    def trial(self) -> Trial:
        """A new trial on the cluster; one can be open at a time."""
        return Trial(self.cluster, self.feasibility)

    def empty_capacity(self, shape: Shape) -> Ints:
        """Seats of a shape on every node if nothing ran there; 0 where a plugin rejects the node itself."""
        cluster = self.cluster
        requests = shape.request_vector(cluster)
        rows = np.flatnonzero(requests)
        seats = (cluster.alloc[rows, : cluster.size] // requests[rows][:, None]).min(axis=0)
        usable = self.feasibility(shape).node_ok[: cluster.size] & cluster.alive[: cluster.size]
        return np.where(usable, np.maximum(seats, 0), 0)
