"""Gangs that compete for too little room, delivered in every order, with turns and restarts in between.

The rooms are tight on purpose: most worlds hold some of the gangs and not all of them.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.examples import examples
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod
from tests.build.scheduler import TestWorld, a_world


@st.composite
def worlds(draw: st.DrawFn) -> tuple[TestWorld, list, dict[str, int], bool]:
    nodes = [a_node(f"n{i}", cpu=draw(st.integers(1, 4)), rack=f"r{i % 2}") for i in range(draw(st.integers(1, 4)))]
    tree = draw(st.booleans())
    things: list = [a_composite("top", 2)] if tree else []
    minimums: dict[str, int] = {}
    for number in range(draw(st.integers(2, 4))):
        name = f"g{number}"
        minimums[name] = draw(st.integers(1, 4))
        parent = "top" if tree and number < 2 else None
        rack = RACK if draw(st.booleans()) else None
        things.append(a_gang(name, minimums[name], parent=parent, topology=rack, created=number))
        size = minimums[name] + draw(st.integers(-1, 2))
        cpu = draw(st.integers(1, 2))
        things += [a_pod(f"{name}-{i}", name, cpu=cpu, created=number) for i in range(size)]
    return a_world(nodes, seed=draw(st.integers(0, 3))), draw(st.permutations(things)), minimums, tree


def check(world: TestWorld, minimums: dict[str, int], tree: bool) -> None:
    for name, minimum in minimums.items():
        bound = world.bound(f"{name}-")
        assert not bound or len(bound) >= minimum, f"{name} is bound in part: {sorted(bound)} of {minimum}"
        group = world.objects.get(("PodGroup", "ns", name))
        if group is not None and group.spec.scheduling_constraints:
            assert len({world.domain(pod) for pod in bound}) <= 1
    if tree:
        assert bool(world.bound("g0-")) == bool(world.bound("g1-")), "half a tree is bound"


@settings(max_examples=examples(400), deadline=None)
@given(worlds(), st.lists(st.sampled_from(["turn", "rest", "restart", "time"]), min_size=30, max_size=30))
def test_no_gang_ever_starts_in_part(given_world: tuple[TestWorld, list, dict[str, int], bool], between: list[str]):
    world, things, minimums, tree = given_world
    for number, thing in enumerate(things):
        world.add(thing)
        match between[number % len(between)]:
            case "turn":
                world.step()
            case "rest":
                check(world.run(), minimums, tree)
            case "restart":
                world.run()
                world.restart()
            case _:
                world.wait(1.0)
    check(world.wait(5), minimums, tree)


@settings(max_examples=examples(100), deadline=None)
@given(worlds())
def test_a_gang_that_is_left_waiting_would_not_fit_alone_in_what_is_left(
    given_world: tuple[TestWorld, list, dict[str, int], bool],
):
    world, things, minimums, tree = given_world
    world.add(*things).run()
    for name, minimum in minimums.items():
        members = [key for key in world.objects if key[0] == "Pod" and key[2].startswith(f"{name}-")]
        waits = not world.bound(f"{name}-") and len(members) >= minimum
        group = world.get("PodGroup", name)
        if waits and not group.spec.scheduling_constraints and not (tree and name in ("g0", "g1")):
            cpu = int(str(world.pod(members[0][2]).spec.containers[0].resources.requests["cpu"]))
            free = {node.metadata.name: int(str(node.status.allocatable["cpu"])) for node in _nodes(world)}
            for pod, node in world.bound().items():
                free[node] -= int(str(world.pod(pod).spec.containers[0].resources.requests["cpu"]))
            assert sum(room // cpu for room in free.values()) < minimum, f"{name} fits and waits"


def _nodes(world: TestWorld) -> list:
    return [obj for (kind, _, _), obj in world.objects.items() if kind == "Node"]
