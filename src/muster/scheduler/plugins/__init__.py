"""The scheduling plugins, one module each, under the names that kube-scheduler's default profile gives them."""

from __future__ import annotations

from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from muster.scheduler.plugins.dynamic_resources import DynamicResources
from muster.scheduler.plugins.image_locality import ImageLocality
from muster.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from muster.scheduler.plugins.node_affinity import NodeAffinity
from muster.scheduler.plugins.node_name import NodeName
from muster.scheduler.plugins.node_ports import NodePorts
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.plugins.node_unschedulable import NodeUnschedulable
from muster.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from muster.scheduler.plugins.pod_topology_spread import PodTopologySpread
from muster.scheduler.plugins.taint_toleration import TaintToleration
from muster.scheduler.plugins.volume_binding import VolumeBinding
from muster.scheduler.plugins.volume_restrictions import VolumeRestrictions
from muster.scheduler.plugins.volume_zone import VolumeZone

# In the order in which they filter: a node is reported under the first plugin that rejects it.
DEFAULT: tuple[type[Plugin], ...] = (
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
