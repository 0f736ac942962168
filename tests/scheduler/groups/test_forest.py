"""The forest: counters that stay true whatever arrives in whatever order."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api import types
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.groups.forest import Forest, minimum_of
from muster.scheduler.groups.group import PENDING, Group, GroupCounts, Traits
from muster.scheduler.groups.validity import find_fault
from muster.scheduler.interface.events import ObjectDeleted, ObjectUpdated
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.runtime.config import default_config
from tests.build.examples import examples
from tests.build.objects import a_basic, a_composite, a_gang, a_pod

TREE = [
    a_composite("top", 2),
    a_composite("mid", 1, parent="top"),
    a_gang("a", 2, parent="mid"),
    a_gang("b", 1, parent="top"),
    *[a_pod(f"a-{i}", "a") for i in range(3)],
    *[a_pod(f"b-{i}", "b", gates=["g"] if i else []) for i in range(2)],
]


def put(forest: Forest, thing) -> None:
    if type(thing).__name__ == "Pod":
        forest.put_member(thing, EntityKey("PodGroup", "ns", thing.spec.scheduling_group.pod_group_name))
    else:
        forest.put_group(thing)


def state(forest: Forest) -> dict[str, tuple]:
    return {
        group.key.name: (group.exists, group.admissible, group.gated, group.pending_below, group.below.admissible)
        for group in forest.groups.values()
    }


def complete() -> Forest:
    forest = Forest()
    for thing in TREE:
        put(forest, thing)
    return forest


@settings(max_examples=examples(200), deadline=None)
@given(st.permutations(TREE))
def test_counters_do_not_depend_on_the_order_of_arrival(things: list):
    forest = Forest()
    for thing in things:
        put(forest, thing)
    assert state(forest) == state(complete())
    top = forest.groups[EntityKey("CompositePodGroup", "ns", "top")]
    assert (top.admissible, top.gated, top.pending_below) == (True, 1, 5)


@settings(max_examples=examples(200), deadline=None)
@given(st.permutations(TREE), st.data())
def test_what_is_taken_away_and_put_back_leaves_no_trace(things: list, data: st.DataObject):
    forest = complete()
    gone = data.draw(st.lists(st.sampled_from(TREE), unique_by=id, max_size=5))
    for thing in gone:
        kind = type(thing).__name__
        if kind == "Pod":
            forest.remove_member(thing.metadata.uid)
        else:
            forest.remove_group(EntityKey(kind, "ns", thing.metadata.name))
    for thing in data.draw(st.permutations(gone)):
        put(forest, thing)
    assert state(forest) == state(complete())


def test_an_empty_forest_keeps_nothing():
    forest = complete()
    for thing in TREE:
        kind = type(thing).__name__
        if kind == "Pod":
            forest.remove_member(thing.metadata.uid)
        else:
            forest.remove_group(EntityKey(kind, "ns", thing.metadata.name))
    assert forest.groups == {}
    assert forest.members == {}


def test_a_placeholder_parent_is_the_root_until_it_is_seen():
    forest = Forest()
    leaf = forest.put_group(a_gang("a", 1, parent="top"))
    assert leaf.root().key.name == "top"
    assert not leaf.root().exists
    forest.put_group(a_composite("top", 1))
    assert leaf.root().exists


@settings(max_examples=examples(100), deadline=None)
@given(st.permutations([("x", "y"), ("y", "z"), ("z", "x")]))
def test_a_ring_is_found_in_any_order_and_mended_by_cutting_it(edges: list[tuple[str, str]]):
    forest = Forest()
    for child, parent in edges:
        forest.put_group(a_composite(child, 1, parent=parent))
    leaf = forest.put_group(a_gang("leaf", 1, parent="x"))
    forest.put_member(a_pod("p", "leaf"), leaf.key)
    fault = find_fault(leaf.root(), forest)
    assert fault is not None
    assert fault.reason == "Invalid"
    assert "cycle" in fault.message

    forest.put_group(a_composite("z", 1))

    top = leaf.root()
    assert top.key.name == "z"
    assert find_fault(top, forest) is None
    assert top.pending_below == 1


def test_a_member_joins_in_constant_time():
    """The work for the n-th member is the same as for the first: no group is walked."""
    forest = Forest()
    forest.put_group(a_gang("g", 10_000))
    touched: list[int] = []
    count = Group.subtree

    def counting(self: Group):
        touched.append(1)
        return count(self)

    Group.subtree = counting  # type: ignore[method-assign]
    try:
        for i in range(2_000):
            forest.put_member(a_pod(f"p{i}", "g"), EntityKey("PodGroup", "ns", "g"))
    finally:
        Group.subtree = count  # type: ignore[method-assign]
    assert not touched
    assert forest.groups[EntityKey("PodGroup", "ns", "g")].known == 2_000


G = EntityKey("PodGroup", "ns", "g")


@pytest.mark.parametrize("state", ["terminating", "failed", "on a lost node"])
def test_a_deleted_group_is_known_for_as_long_as_a_pod_names_it(state: str):
    forest = Forest()
    forest.put_group(a_gang("g", 1))
    bound = a_pod("g-0", "g", node="n0", deleting=state == "terminating", phase="Failed" if state == "failed" else "")
    member = forest.put_member(bound, G)
    forest.set_lost(member, state == "on a lost node")

    forest.remove_group(G)

    assert forest.groups[G] is member.group
    forest.remove_member(member.uid)
    assert forest.groups == {}


def test_a_member_that_is_back_from_a_lost_node_counts_for_the_group_that_was_created_again():
    forest = Forest()
    forest.put_group(a_gang("g", 1))
    member = forest.put_member(a_pod("g-0", "g", node="n0"), G)
    forest.set_lost(member, True)
    forest.remove_group(G)
    group = forest.put_group(a_gang("g", 1))

    forest.set_lost(member, False)

    assert (group.bound, group.admissible) == (1, True)


@pytest.mark.parametrize("first", ["lost", "succeeded"])
def test_a_member_that_succeeded_counts_whatever_becomes_of_its_node(first: str):
    forest = Forest()
    group = forest.put_group(a_gang("g", 1))
    group.scheduled_once = True
    member = forest.put_member(a_pod("g-0", "g", node="n0"), G)
    if first == "lost":
        forest.set_lost(member, True)
    forest.put_member(a_pod("g-0", "g", node="n0", phase="Succeeded"), G)
    forest.set_lost(member, True)
    assert group.bound == 1


def test_a_member_that_succeeded_counts_for_the_group_that_was_created_again_once_that_ran():
    forest = Forest()
    forest.put_group(a_gang("g", 1))
    forest.put_member(a_pod("g-0", "g", node="n0", phase="Succeeded"), G)
    forest.remove_group(G)
    group = forest.put_group(a_gang("g", 1))
    assert group.bound == 0
    group.scheduled_once = True
    assert group.bound == 1


def test_a_pod_that_names_another_group_leaves_the_first():
    forest = Forest()
    forest.put_member(a_pod("x", "g"), G)

    forest.put_member(a_pod("x", "h"), EntityKey("PodGroup", "ns", "h"))

    assert [key.name for key in forest.groups] == ["h"]


def test_a_group_of_another_uid_begins_anew():
    forest = Forest()
    obj = a_gang("g", 1)
    condition = types.Condition("PodGroupInitiallyScheduled", "True", "Scheduled", "")
    ran = msgspec.structs.replace(obj, status=msgspec.structs.replace(obj.status, conditions=(condition,)))
    group = forest.put_group(ran)
    forest.put_member(a_pod("g-0", "g", node="n0", phase="Succeeded"), group.key)
    assert (group.scheduled_once, group.bound) == (True, 1)
    forest.put_group(msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, uid="second")))
    assert (group.scheduled_once, group.bound) == (False, 0)


def test_a_group_that_was_never_seen_cannot_be_removed():
    forest = Forest()
    forest.put_member(a_pod("g-0", "g"), EntityKey("PodGroup", "ns", "g"))
    assert forest.remove_group(EntityKey("PodGroup", "ns", "g")) is None
    assert forest.remove_group(EntityKey("PodGroup", "ns", "unknown")) is None
    assert forest.remove_member("unknown") is None


def test_the_minimum_is_that_of_the_gang_policy_or_one():
    groups = [a_gang("g", 3), a_basic("b"), a_composite("c", 2), a_composite("d", None)]
    assert [minimum_of(group) for group in groups] == [3, 1, 2, 1]


# --- counters of trees -----------------------------------------------------------------------------


def walked_counts(group: Group) -> GroupCounts:
    """What a group adds to its parent, found by walking its whole subtree."""
    below = [walked_counts(child) for child in group.children.values() if not child.cyclic]
    if group.is_leaf:
        confirmed = group.bound - sum(1 for member in group.running.values() if member.assumed)
        quorum, held = group.known >= group.minimum, group.bound >= group.minimum
        bound, placeable = confirmed >= group.minimum, bool(group.pending)
        leaves = (0 < group.bound < group.minimum, group.bound > 0, confirmed > 0)
    else:
        quorum = sum(counts.admissible for counts in below) >= group.minimum
        held = sum(counts.has_minimum for counts in below) >= group.minimum
        bound = sum(counts.quorum_bound for counts in below) >= group.minimum
        placeable = any(counts.placeable for counts in below)
        leaves = tuple(sum(counts[field] for counts in below) for field in (4, 5, 6))
    admissible = group.exists and quorum
    return GroupCounts(admissible, admissible and placeable, held, group.exists and bound, *leaves)


def walked_traits(group: Group) -> Counter[Traits]:
    if group.is_leaf:
        counted = (group.pending, group.running, group.foreign)
        return Counter(member.traits for members in counted for member in members.values())
    below = [walked_traits(child) for child in group.children.values() if not child.cyclic]
    return sum(below, Counter[Traits]())


NAMES = st.sampled_from("abc")
PARENTS = st.sampled_from(["", "x", "y", "z"])
PODS = st.sampled_from([f"p{number}" for number in range(5)])


def a_leaf_change(forest: Forest, data: st.DataObject) -> None:
    name, parent = data.draw(NAMES), data.draw(PARENTS)
    forest.put_group(a_gang(name, data.draw(st.integers(1, 3)), parent=parent or None))


def a_composite_change(forest: Forest, data: st.DataObject) -> None:
    name, parent = data.draw(st.sampled_from("xyz")), data.draw(PARENTS)
    forest.put_group(a_composite(name, data.draw(st.integers(1, 2)), parent=parent or None))


def a_group_removal(forest: Forest, data: st.DataObject) -> None:
    keys = sorted(key for key, group in forest.groups.items() if group.exists)
    if keys:
        forest.remove_group(data.draw(st.sampled_from(keys)))


def a_pod_change(forest: Forest, data: st.DataObject) -> None:
    name, group = data.draw(PODS), data.draw(NAMES)
    known = forest.members.get(a_pod(name).metadata.uid)
    node = known.node if known is not None and known.node else data.draw(st.sampled_from(["", "n0"]))
    phase = data.draw(st.sampled_from(["", "Succeeded", "Failed"])) if node else ""
    pod = a_pod(name, group, node=node or None, phase=phase, priority=data.draw(st.integers(0, 1)))
    forest.put_member(pod, EntityKey("PodGroup", "ns", group))


def a_pod_removal(forest: Forest, data: st.DataObject) -> None:
    if forest.members:
        forest.remove_member(data.draw(st.sampled_from(sorted(forest.members))))


def a_bind(forest: Forest, data: st.DataObject) -> None:
    pending = [m for uid, m in sorted(forest.members.items()) if m.state == PENDING and not m.assumed and not m.lost]
    if pending:
        forest.assume([(data.draw(st.sampled_from(pending)), "n0")])


def an_answer(forest: Forest, data: st.DataObject) -> None:
    assumed = [member for uid, member in sorted(forest.members.items()) if member.assumed]
    if assumed:
        member = data.draw(st.sampled_from(assumed))
        forest.bind_answered(member)
        forest.forget(member)


def a_lost_node(forest: Forest, data: st.DataObject) -> None:
    for member in [member for uid, member in sorted(forest.members.items()) if member.pod.spec.node_name]:
        forest.set_lost(member, data.draw(st.booleans()))


def a_group_that_ran(forest: Forest, data: st.DataObject) -> None:
    if forest.groups:
        forest.groups[data.draw(st.sampled_from(sorted(forest.groups)))].set_scheduled_once()


CHANGES = (
    a_leaf_change,
    a_composite_change,
    a_group_removal,
    a_pod_change,
    a_pod_removal,
    a_bind,
    an_answer,
    a_lost_node,
    a_group_that_ran,
)


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_the_counters_of_a_tree_are_those_that_a_walk_finds_after_any_changes(data: st.DataObject):
    forest = Forest()
    for change in data.draw(st.lists(st.sampled_from(CHANGES), min_size=5, max_size=40)):
        change(forest, data)
        for group in forest.groups.values():
            assert group.counts == walked_counts(group), group.key
            assert group.traits == walked_traits(group), group.key


def test_an_event_of_a_pod_walks_no_tree():
    scheduler = Scheduler(default_config())
    scheduler.handle(ObjectUpdated("CompositePodGroup", a_composite("top", 20)), 0.0)
    for number in range(20):
        scheduler.handle(ObjectUpdated("PodGroup", a_gang(f"g{number}", 1, parent="top")), 0.0)
        scheduler.handle(ObjectUpdated("Pod", a_pod(f"p{number}", f"g{number}")), 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Group, "ordered_children", lambda group: pytest.fail(f"{group.key.name} was walked"))
        scheduler.handle(ObjectUpdated("Pod", a_pod("more", "g7", priority=1)), 0.0)
        scheduler.handle(ObjectUpdated("Pod", a_pod("p7", "g7", node="n0")), 0.0)
        scheduler.handle(ObjectDeleted("Pod", "ns", "more", a_pod("more").metadata.uid), 0.0)
