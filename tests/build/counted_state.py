"""All counts of a cluster and all cached results as values that can be compared, and random clusters to compare."""

from __future__ import annotations

import copy
from random import Random

import numpy as np
from hypothesis import HealthCheck, settings

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.plugins import DEFAULT
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.runtime.profile import Profile
from tests.build.cluster import evaluator_of
from tests.build.examples import examples
from tests.build.random_objects import random_node, random_pod, random_services

often = settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
CURVE = {"shape": [{"utilization": 0, "score": 3}, {"utilization": 60, "score": 10}, {"utilization": 100, "score": 1}]}
STRATEGIES = (
    {"type": "LeastAllocated"},
    {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu", "weight": 2}]},
    {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": CURVE},
)
PROFILES = [
    Profile("test", [kind({"scoringStrategy": how}) if kind is NodeResourcesFit else kind() for kind in DEFAULT])
    for how in STRATEGIES
]


def a_random_cluster(draw: Random, nodes: int = 6, rules: float = 0.3) -> Cluster:
    cluster = Cluster(seed=draw.randrange(100))
    for i in range(nodes):
        cluster.change("Node", random_node(draw, i))
    for i in range(draw.randint(0, 8)):
        cluster.change("Pod", random_pod(draw, f"p{i}", f"n{draw.randrange(nodes)}", rules=rules))
    for service in random_services(draw):
        cluster.change("Service", service)
    return cluster


def everything(cluster: Cluster) -> dict[str, object]:
    """All counts of a cluster, as values that can be compared."""
    pod_counts = cluster.pod_counts
    found: dict[str, object] = {"used": cluster.used.tobytes(), "nonzero": cluster.nonzero.tobytes()}
    for kind, held in (("matching", pod_counts._matching), ("carrying", pod_counts._carrying)):
        for what, count in held.items():
            found[f"{kind} {what}"] = (count.column.tobytes(), count.total)
            for sums in count._sums.values():
                fresh = type(sums)(cluster, sums.labels, sums.nodes, count.column)
                assert np.array_equal(sums.values, fresh.values)
    for what, label_class in pod_counts._classes.items():
        found[f"class {what}"] = (dict(label_class.pods_by_slot), dict(label_class.terminating_by_slot))
    storage = cluster.volumes
    held = (storage._uses, storage._counted, storage._attached, storage.promised._by_claim)
    found["storage"] = copy.deepcopy(held)
    return found


def keys(cluster: Cluster, shapes: list) -> list[bytes]:
    return [
        evaluator_of(cluster).feasibility(shape).key.tobytes()
        + evaluator_of(cluster).feasibility(shape).seats().tobytes()
        for shape in shapes
    ]


def register(cluster: Cluster) -> tuple[object, ...]:
    """Who is known to sit where, in the order in which they came."""
    by_slot = {slot: list(there) for slot, there in cluster.pods_by_slot.items()}
    on_unknown_nodes = {node: list(there) for node, there in cluster._on_unknown_nodes.items()}
    pods = [(uid, placed.node, placed.slot, placed.assumed, placed.terminating) for uid, placed in cluster.pods.items()]
    return pods, by_slot, on_unknown_nodes, cluster._uids
