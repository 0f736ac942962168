"""Gangs whose members depend on each other, against an oracle that tries every order and every node."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import CompositeRequest, PodGroupRequest
from muster.scheduler.placement.verdict import Infeasible, Placed, Undecided
from tests.build.examples import examples
from tests.build.objects import RACK, ZONE, a_node, a_pod
from tests.build.planning import Scene

HOST = "kubernetes.io/hostname"
State = tuple[tuple[str, int], ...]  # pods in the order in which they were seated, and their node


@dataclass(frozen=True)
class Kind:
    """A label, what it must be near, what it must be away from: pairs of topology key and label."""

    label: str
    cpu: int
    near: tuple[str, str] | None = None
    apart: tuple[str, str] | None = None

    def affinity(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for side, rule in (("podAffinity", self.near), ("podAntiAffinity", self.apart)):
            if rule is not None:
                term = {"topologyKey": rule[0], "labelSelector": {"matchLabels": {"who": rule[1]}}}
                found[side] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return found


@dataclass
class World:
    scene: Scene
    gang: PodGroupRequest
    kinds: dict[str, Kind]
    cpus: list[int]
    labels: list[dict[str, str]]


def a_world(rng: random.Random) -> World:
    scene, cpus, labels = Scene(seed=rng.randint(0, 3)), [], []
    for index in range(rng.randint(2, 4)):
        at = {"zone": f"z{rng.randint(0, 1)}", "rack": f"r{rng.randint(0, 2)}"}
        cpus.append(rng.randint(1, 3))
        labels.append({HOST: f"n{index}", ZONE: at["zone"], RACK: at["rack"]})
        scene.nodes(a_node(f"n{index}", cpu=cpus[-1], **at))

    def rule() -> tuple[str, str] | None:
        return rng.choice((None, (rng.choice((HOST, ZONE, RACK)), rng.choice("ab"))))

    choices = [Kind(label, rng.randint(1, 2), rule(), rule()) for label in "aab"]
    kinds: dict[str, Kind] = {}
    pods = []
    for index in range(rng.randint(2, 4)):
        kind = rng.choice(choices)
        kinds[f"uid-p{index}"] = kind
        pods.append(a_pod(f"p{index}", cpu=kind.cpu, labels={"who": kind.label}, affinity=kind.affinity()))
    gang = scene.gang("g", *pods, min_count=rng.randint(1, len(pods)), topology=rng.choice(("", "", RACK)))
    return World(scene, gang, kinds, cpus, labels)


def allowed(world: World, state: State, uid: str, node: int) -> bool:
    kind, here = world.kinds[uid], world.labels[node]
    used = sum(world.kinds[other].cpu for other, at in state if at == node)
    if used + kind.cpu > world.cpus[node]:
        return False
    if kind.near is not None:
        key, label = kind.near
        friends = [at for other, at in state if world.kinds[other].label == label]
        if friends and not any(world.labels[at][key] == here[key] for at in friends):
            return False
        if not friends and kind.label != label:
            return False
    for other, at in state:
        rules = ((kind.apart, world.kinds[other].label), (world.kinds[other].apart, kind.label))
        for rule, label in rules:
            if rule is not None and rule[1] == label and world.labels[at][rule[0]] == here[rule[0]]:
                return False
    return True


def placeable(world: World) -> bool:
    nodes = range(len(world.cpus))
    scopes = [tuple(nodes)]
    if world.gang.topology:
        values = sorted({labels[RACK] for labels in world.labels})
        scopes = [tuple(n for n in nodes if world.labels[n][RACK] == value) for value in values]
    return any(_reach(world, (), scope, set()) for scope in scopes)


def _reach(world: World, state: State, scope: tuple[int, ...], seen: set[frozenset[tuple[str, int]]]) -> bool:
    if len(state) >= world.gang.minimum:
        return True
    face = frozenset(state)
    if face in seen:
        return False
    seen.add(face)
    sitting = {uid for uid, _ in state}
    return any(
        _reach(world, (*state, (uid, node)), scope, seen)
        for uid in world.kinds
        if uid not in sitting
        for node in scope
        if allowed(world, state, uid, node)
    )


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_the_verdict_on_dependent_members_equals_the_oracles(seed: int) -> None:
    world = a_world(random.Random(seed))

    verdict = world.scene.plan(world.gang, steps=25_000).verdict

    if isinstance(verdict, Placed):
        assert placeable(world)
        state: State = ()
        for seat in verdict.assignments:
            assert allowed(world, state, seat.uid, int(seat.node[1:]))
            state = (*state, (seat.uid, int(seat.node[1:])))
    elif isinstance(verdict, Infeasible):
        assert not placeable(world)


def a_tree(rng: random.Random, world: World) -> CompositeRequest:
    """The members of a world in two leaves, each with a minimum and perhaps a domain of its own."""
    members = list(world.gang.members)
    rng.shuffle(members)
    cut = rng.randint(1, len(members) - 1)
    parts = [members[:cut], members[cut:]]
    leaves = tuple(
        PodGroupRequest(
            EntityKey("PodGroup", "d", f"l{at}"), rng.randint(1, len(part)), 0, tuple(part), rng.choice((None, RACK))
        )
        for at, part in enumerate(parts)
    )
    return CompositeRequest(
        EntityKey("CompositePodGroup", "d", "root"), rng.randint(1, 2), leaves, rng.choice((None, ZONE))
    )


def tree_placeable(world: World, tree: CompositeRequest) -> bool:
    for scope in scopes(world, tree.topology, tuple(range(len(world.cpus)))):
        for chosen in combinations(tree.children, tree.minimum):
            for places in product(*(scopes(world, leaf.topology, scope) for leaf in chosen)):
                if _reach_all(world, (), list(zip(chosen, places, strict=True)), set()):
                    return True
    return False


def scopes(world: World, key: str | None, nodes: tuple[int, ...]) -> list[tuple[int, ...]]:
    values = sorted({world.labels[n][key] for n in nodes}) if key else []
    return [tuple(n for n in nodes if world.labels[n][key] == value) for value in values] if key else [nodes]


def _reach_all(world: World, state: State, loads: list[Any], seen: set[frozenset[tuple[str, int]]]) -> bool:
    sitting = {uid for uid, _ in state}
    open_loads = [(leaf, at) for leaf, at in loads if sum(m.uid in sitting for m in leaf.members) < leaf.minimum]
    if not open_loads or frozenset(state) in seen:
        return not open_loads
    seen.add(frozenset(state))
    return any(
        _reach_all(world, (*state, (member.uid, node)), loads, seen)
        for leaf, nodes in open_loads
        for member in leaf.members
        if member.uid not in sitting
        for node in nodes
        if allowed(world, state, member.uid, node)
    )


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_the_verdict_on_trees_of_dependent_members_equals_the_oracles(seed: int) -> None:
    rng = random.Random(seed)
    world = a_world(rng)
    tree = a_tree(rng, world)

    verdict = world.scene.plan(tree, steps=25_000).verdict

    if not isinstance(verdict, Undecided):
        assert isinstance(verdict, Placed) == tree_placeable(world, tree)


def test_small_gangs_of_dependent_members_are_decided() -> None:
    rng = random.Random(4)
    worlds = [a_world(rng) for _ in range(300)]

    undecided = sum(isinstance(world.scene.plan(world.gang).verdict, Undecided) for world in worlds)

    assert undecided <= len(worlds) // 50
