"""The columns agree with a naive pod-by-pod scheduler on feasibility, reasons and scores."""

from __future__ import annotations

from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api.types import Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.runtime.profile import default_profile
from tests.build.cluster import evaluator_of
from tests.build.examples import examples
from tests.build.random_objects import random_namespaces, random_node, random_pod, random_services
from tests.promises import pod_oracle as oracle

PROFILE = default_profile()
many = settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))


def a_world(draw: Random) -> oracle.World:
    nodes = [random_node(draw, i) for i in range(draw.randint(1, 7))]
    pods = [random_pod(draw, f"p{i}", draw.choice(nodes).metadata.name) for i in range(draw.randint(0, 10))]
    return oracle.World(nodes, pods, random_namespaces(draw), random_services(draw))


def a_cluster(world: oracle.World, draw: Random) -> Cluster:
    """The world's objects, delivered in any order."""
    cluster = Cluster()
    objects = [*world.nodes, *world.pods, *world.namespaces, *world.services]
    draw.shuffle(objects)
    for obj in objects:
        cluster.change(type(obj).__name__, obj)
    return cluster


def check(world: oracle.World, cluster: Cluster, pod: Pod) -> None:
    shape = evaluator_of(cluster).shape(pod, PROFILE)
    trial = evaluator_of(cluster).trial()
    refusals = {node.metadata.name: oracle.refusal(pod, node, world) for node in world.nodes}
    allowed = {cluster.names[slot] for slot in np.flatnonzero(trial.feasible(shape))}
    assert allowed == {name for name, reasons in refusals.items() if not reasons}
    counts: dict[str, int] = {}
    for reasons in refusals.values():
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    diagnosis = trial.diagnose(shape)
    assert diagnosis.counts == counts
    final = {n.metadata.name for n in world.nodes if oracle.final(pod, n, refusals[n.metadata.name])}
    assert {cluster.names[slot] for slot in np.flatnonzero(diagnosis.unresolvable)} == final
    assert {cluster.names[slot] for slot in np.flatnonzero(trial.seats(shape))} == allowed
    feasible = [node for node in world.nodes if node.metadata.name in allowed]
    expected = oracle.totals(pod, feasible, world)
    slots = [cluster.index[node.metadata.name] for node in feasible]
    found = dict(zip(expected, trial.score(shape, slots).tolist(), strict=True))
    assert found == expected
    best = max(slots, key=lambda s: (expected[cluster.names[s]], cluster.rank[s]), default=-1)
    assert trial.best(shape) == best


@many
@given(st.integers(0, 2**32))
def test_columns_and_oracle_agree_on_where_a_pod_can_go_and_how_good_each_node_is(seed: int) -> None:
    draw = Random(seed)
    world = a_world(draw)
    cluster = a_cluster(world, draw)
    for i in range(2):
        check(world, cluster, random_pod(draw, f"new{i}", rules=0.5))


@pytest.mark.slow
def test_they_agree_on_ten_thousand_worlds() -> None:
    for seed in range(10_000):
        draw = Random(f"world {seed}")
        world = a_world(draw)
        check(world, a_cluster(world, draw), random_pod(draw, "new", rules=0.5))


@settings(many, max_examples=examples(200))
@given(st.integers(0, 2**32))
def test_they_still_agree_after_pods_and_nodes_came_changed_and_went(seed: int) -> None:
    draw = Random(seed)
    world = a_world(draw)
    cluster = a_cluster(world, draw)
    incoming = [random_pod(draw, f"new{i}", rules=0.5) for i in range(3)]
    for step in range(8):
        check(world, cluster, draw.choice(incoming))
        _happen(draw, world, cluster, step)
    for pod in incoming:
        check(world, cluster, pod)


def _happen(draw: Random, world: oracle.World, cluster: Cluster, step: int) -> None:
    """Something in the world changes, and the cluster is told."""
    match draw.randint(0, 5):
        case 0 | 1:
            pod = random_pod(draw, f"late{step}", draw.choice(world.nodes).metadata.name)
            world.pods.append(pod)
            cluster.change("Pod", pod)
        case 2 if world.pods:
            pod = world.pods.pop(draw.randrange(len(world.pods)))
            cluster.remove("Pod", pod.metadata.namespace, pod.metadata.name)
        case 3 if world.pods:
            at = draw.randrange(len(world.pods))
            old = world.pods[at]
            world.pods[at] = random_pod(draw, old.metadata.name, old.spec.node_name)
            if old.metadata.namespace != world.pods[at].metadata.namespace:
                cluster.remove("Pod", old.metadata.namespace, old.metadata.name)
            cluster.change("Pod", world.pods[at])
        case 4:
            at = draw.randrange(len(world.nodes))
            world.nodes[at] = random_node(draw, int(world.nodes[at].metadata.name[1:]))
            cluster.change("Node", world.nodes[at])
        case 5 if len(world.nodes) > 1:
            node = world.nodes.pop(draw.randrange(len(world.nodes)))
            cluster.remove("Node", "", node.metadata.name)
            world.nodes.append(random_node(draw, 100 + step))
            cluster.change("Node", world.nodes[-1])
        case _:
            world.namespaces = random_namespaces(draw)
            for namespace in world.namespaces:
                cluster.change("Namespace", namespace)


@settings(many, max_examples=examples(120))
@given(st.integers(0, 2**32))
def test_they_agree_after_every_pod_that_a_trial_places_and_evicts(seed: int) -> None:
    draw = Random(seed)
    world = a_world(draw)
    cluster = a_cluster(world, draw)
    pods = [random_pod(draw, f"new{i}", rules=0.5) for i in range(3)]
    for pod in pods:
        cluster.change("Pod", pod)
    shapes = [evaluator_of(cluster).shape(pod, PROFILE) for pod in pods]
    with evaluator_of(cluster).trial() as trial:
        for step in range(6):
            at = draw.randrange(3)
            slot = trial.best(shapes[at])
            if slot >= 0 and draw.random() < 0.7:
                trial.place(shapes[at], slot)
                world.pods.append(_placed(pods[at], cluster.names[slot], f"t{step}"))
            elif world.pods:
                pod = draw.choice(world.pods)
                if pod.metadata.uid in cluster.pods and pod.metadata.uid not in trial.evicted:
                    trial.evict(pod.metadata.uid)
                    world.pods.remove(pod)
            for pod in pods:
                check(world, cluster, pod)


def _placed(pod: Pod, node: str, name: str) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, name=name, uid=name)
    return Pod(meta, msgspec.structs.replace(pod.spec, node_name=node), pod.status)
