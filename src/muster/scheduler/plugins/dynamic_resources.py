"""DynamicResources: rejects pods with resource claims, because device allocation is not implemented."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Bools, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape


class DynamicResources(Plugin):
    name = "DynamicResources"
    filter_depends_on = DependsOn.NODE
    message = "pod has dynamic resource claims, which this scheduler does not support"
    unresolvable = True
    known_args = frozenset(("filterTimeout", "bindingTimeout"))

    def concerns(self, shape: Shape) -> bool:
        return bool(shape.pod.spec.resource_claims)

    def pre_filter(self, shape: Shape, cluster: Cluster) -> str | None:
        return self.message if self.concerns(shape) else None

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        return np.zeros(cluster.alive[slots].shape, dtype=np.bool_)
