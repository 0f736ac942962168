"""One module per scheduling rule, all of one shape, registered in one list."""

from __future__ import annotations

from muster.scheduler.constraints.balanced_allocation import NodeResourcesBalancedAllocation
from muster.scheduler.constraints.base import Constraint
from muster.scheduler.constraints.dynamic_resources import DynamicResources
from muster.scheduler.constraints.image_locality import ImageLocality
from muster.scheduler.constraints.inter_pod_affinity import InterPodAffinity
from muster.scheduler.constraints.node_affinity import NodeAffinity
from muster.scheduler.constraints.node_name import NodeName
from muster.scheduler.constraints.node_ports import NodePorts
from muster.scheduler.constraints.node_resources_fit import NodeResourcesFit
from muster.scheduler.constraints.node_unschedulable import NodeUnschedulable
from muster.scheduler.constraints.node_volume_limits import NodeVolumeLimits
from muster.scheduler.constraints.pod_topology_spread import PodTopologySpread
from muster.scheduler.constraints.taint_toleration import TaintToleration
from muster.scheduler.constraints.volume_binding import VolumeBinding
from muster.scheduler.constraints.volume_restrictions import VolumeRestrictions
from muster.scheduler.constraints.volume_zone import VolumeZone

# In the order in which they judge: a node is reported under the first that refuses it.
DEFAULT: tuple[type[Constraint], ...] = (
    NodeName,
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    NodeResourcesBalancedAllocation,
    ImageLocality,
)
