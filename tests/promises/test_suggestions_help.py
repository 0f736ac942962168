"""Every suggestion helps: carried out on a random cluster, it makes the group run."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api import types
from muster.scheduler.explain.suggestions import ACTIONS
from tests.build.examples import examples
from tests.build.objects import BLOCK, RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world
from tests.build.suggestions import carry_out, change, suggested

_KINDS = st.sampled_from(["A", "B"])
_STATES = {
    "": types.NodeSpec(),
    "tainted": types.NodeSpec(taints=(types.Taint("team", "NoSchedule", "x"),)),
    "cordoned": types.NodeSpec(unschedulable=True),
    "ill": types.NodeSpec(taints=(types.Taint("node.kubernetes.io/not-ready", "NoSchedule"),)),
}


@st.composite
def stuck_worlds(draw: st.DrawFn) -> TestWorld:
    """A few racks with some load, tainted and cordoned nodes, and a gang or a small tree that may be too much."""
    nodes = []
    for i in range(draw(st.integers(1, 6))):
        node = a_node(f"n{i}", cpu=draw(st.integers(1, 4)), rack=f"r{i // 2}", block=f"b{i // 4}", kind=draw(_KINDS))
        state = draw(st.sampled_from(["", "", "", "tainted", "cordoned", "ill"]))
        nodes.append(change(node, spec=_STATES[state]))
    world = a_world(nodes)
    for i in range(draw(st.integers(0, 2))):
        size = draw(st.integers(1, 3))
        world.add(a_gang(f"old{i}", size), *pods(size, f"old{i}"))
    world.run()
    selector = draw(st.sampled_from([None, None, {"kind": "A"}, {"kind": "a"}]))
    more = {"nodeSelector": selector} if selector else {}
    if draw(st.booleans()):
        world.add(a_gang("ahead", 2, created=1), *pods(2, "ahead", created=1, cpu=2)).run()
    size = draw(st.integers(1, 7))
    topology = draw(st.sampled_from([None, RACK, "kubernetes.io/hostname"]))
    cpus = draw(st.sampled_from([(1,), (1, 2), (2,)]))
    alone = draw(st.booleans())
    if not alone:
        world.add(a_composite("top", 2, created=5, topology=draw(st.sampled_from([None, RACK, BLOCK]))))
        world.add(a_gang("h", 1, parent="top", created=5), *pods(1, "h", created=5, cpu=draw(st.integers(1, 3))))
    parent = {} if alone else {"parent": "top"}
    world.add(a_gang("g", size, topology=topology, created=5, **parent))
    world.add(*[a_pod(f"g-{i}", "g", cpu=cpus[i % len(cpus)], created=5, **more) for i in range(size)])
    return world.run()


def copied(world: TestWorld) -> TestWorld:
    """The same stored objects, and a scheduler that has just come to rest on them."""
    other = TestWorld()
    for obj in world.objects.values():
        other.add(obj)
    return other.run()


@settings(max_examples=examples(120), deadline=None)
@given(stuck_worlds())
def test_every_suggestion_makes_the_group_run_when_it_is_carried_out(world: TestWorld):
    root = (
        ("PodGroup", "g") if ("CompositePodGroup", "ns", "top") not in world.objects else ("CompositePodGroup", "top")
    )
    condition = world.condition(*root)
    if condition is not None and condition.status == "True":
        return
    hints = suggested(world, *root)
    order = [(hint.recreate != "", ACTIONS.index(hint.action)) for hint in hints]
    assert order == sorted(order), "cheapest first, what must be made anew last"
    for hint in hints:
        other = copied(world)
        carry_out(other, hint)
        said = other.condition(*root)
        assert said is not None
        assert said.status == "True", f"{hint.text}: {said.message}"
