"""Requests: what is derived from the inputs of a tree, and its variants."""

from __future__ import annotations

import pytest

from muster.scheduler.placement.request import (
    CompositeRequest,
    GroupRequest,
    PodGroupRequest,
    admissible_leaves,
    groups,
    leaves,
    open_leaves,
    rebuilt,
    shapes_of,
)
from tests.build.objects import RACK, ZONE, a_pod
from tests.build.planning import Scene


@pytest.mark.parametrize(
    ("pending", "bound", "minimum", "need", "satisfied", "admissible"),
    [
        (3, 0, 3, 3, False, True),
        (3, 0, 4, 4, False, False),
        (3, 1, 4, 3, False, True),
        (1, 4, 4, 0, True, True),
        (0, 5, 4, 0, True, True),
        (0, 3, 4, 1, False, False),
    ],
)
def test_need_is_what_is_missing_for_the_minimum(
    pending: int, bound: int, minimum: int, need: int, satisfied: bool, admissible: bool
):
    gang = Scene().uniform("g", pending, bound=bound, min_count=minimum)

    assert (gang.need, gang.satisfied, gang.admissible) == (need, satisfied, admissible)


def test_pods_of_one_shape_are_identical_in_the_order_of_preference():
    scene = Scene()
    gang = scene.gang("g", *(a_pod(name, cpu=cpu) for name, cpu in [("a", 2), ("b", 1), ("c", 2), ("d", 1), ("e", 1)]))
    gang = gang.with_minimum(3)

    large, small = gang.identical

    assert [member.name for member in large.members] == ["a", "c"]
    assert [member.name for member in small.members] == ["b", "d", "e"]
    assert (large.preferred, small.preferred) == (2, 1)  # a, b and c are the first three
    assert gang.pending == 5


def test_all_pods_of_one_shape_are_one_entry_with_the_need_preferred():
    gang = Scene().uniform("g", 5, min_count=3)

    (pods,) = gang.identical

    assert (pods.count, pods.preferred, pods.members) == (5, 3, gang.members)
    assert pods.shape is gang.members[0].shape


def test_bound_members_pin_the_domain():
    scene = Scene()
    assert scene.uniform("g", 1, topology=RACK).pin is None
    assert scene.uniform("g", 1, bound=1, topology=RACK, domains=("r1",)).pin == "r1"
    assert scene.uniform("g", 1, bound=1, topology=RACK, domains=("",)).pin == ""
    assert scene.uniform("g", 1, bound=1, domains=("r1",)).pin is None


def test_bound_members_in_two_domains_leave_nothing_to_place():
    scene = Scene()
    short = scene.uniform("short", 2, bound=2, min_count=4, topology=RACK, domains=("r1", "r2"))
    enough = scene.uniform("enough", 2, bound=2, min_count=2, topology=RACK, domains=("r1", "r2"))
    free = scene.uniform("free", 2, bound=2, min_count=4, domains=("r1", "r2"))

    assert (short.admissible, short.identical, short.pending) == (False, (), 0)
    assert (enough.admissible, enough.identical, enough.pending) == (True, (), 0)
    assert (free.admissible, free.pending) == (True, 2)


def a_mixed_tree(scene: Scene, **more: object) -> CompositeRequest:
    return scene.composite(
        "root",
        scene.uniform("open", 2),
        scene.uniform("done", 1, bound=3, min_count=2),
        scene.uniform("impossible", 1, min_count=5),
        min_groups=2,
        **more,  # type: ignore[arg-type]
    )


def test_children_are_open_done_or_left_out():
    tree = a_mixed_tree(Scene())

    assert [child.key.name for child in tree.open] == ["open"]
    assert [child.key.name for child in tree.done] == ["done"]
    assert (tree.need, tree.satisfied, tree.admissible, tree.bound) == (1, False, True, 3)


def test_a_composite_needs_enough_admissible_children():
    scene = Scene()
    tree = a_mixed_tree(scene)

    assert not tree.with_minimum(3).admissible
    assert tree.with_minimum(1).satisfied
    assert tree.with_minimum(1).need == 0


def test_a_composite_with_pods_in_two_domains_places_nothing():
    tree = a_mixed_tree(Scene(), topology=ZONE, domains=("z1", "z2"))

    assert (tree.admissible, tree.open, tree.done) == (False, (), ())
    assert tree.with_minimum(1).admissible  # satisfied already
    assert tree.with_minimum(1).open == ()


def test_leaves_are_listed_with_and_without_those_that_only_take_extras():
    tree = a_mixed_tree(Scene())

    def names(found: object) -> list[str]:
        return [leaf.key.name for leaf in found]  # type: ignore[attr-defined]

    assert names(groups(tree)) == ["root", "open", "done", "impossible"]
    assert names(leaves(tree)) == ["open", "done", "impossible"]
    assert names(open_leaves(tree)) == ["open"]
    assert names(admissible_leaves(tree)) == ["open", "done"]


def test_the_shapes_of_a_tree_are_those_of_all_its_pods():
    scene = Scene()
    one, two = scene.uniform("a", 2), scene.gang("b", a_pod("b-0"), a_pod("b-1", cpu=2))
    shapes = [one.members[0].shape, two.members[1].shape]

    assert shapes_of(scene.composite("root", one, two)) == {shape.id: shape for shape in shapes}


def test_requests_that_ask_for_the_same_have_one_signature():
    scene = Scene()

    def tree(one: str, other: str, **more: object) -> CompositeRequest:
        leaf = scene.uniform(one, 2, topology=RACK)
        return scene.composite("root", leaf, scene.uniform(other, 3, cpu=2), **more)  # type: ignore[arg-type]

    first = tree("a", "b")
    swapped = scene.composite("other", *reversed(tree("c", "d").children))

    assert first.signature == swapped.signature
    assert first is not swapped
    assert first != swapped
    assert tree("a", "b", topology=ZONE).signature != first.signature
    assert tree("a", "b", min_groups=1).signature != first.signature


@pytest.mark.parametrize(
    "other",
    [
        {"count": 3, "min_count": 2},
        {"count": 2, "cpu": 3},
        {"count": 2, "min_count": 1},
        {"count": 2, "topology": RACK},
        {"count": 2, "topology": RACK, "domains": ("r1",)},
    ],
)
def test_a_pod_group_that_asks_for_something_else_has_another_signature(other: dict[str, object]):
    scene = Scene()
    signatures = {
        scene.uniform("g", 2).signature,
        scene.uniform("h", **other).signature,  # type: ignore[arg-type]
        scene.uniform("g", 2, topology=RACK, domains=("r2",)).signature,
    }
    assert len(signatures) == 3


def test_a_satisfied_group_can_be_asked_for_one_more_pod():
    scene = Scene()
    gang = scene.gang("g", a_pod("a", cpu=2), a_pod("b"), bound=3, min_count=2, topology=RACK, domains=("r1",))

    more = gang.with_need(1)

    assert (gang.satisfied, more.satisfied, more.need, more.bound) == (True, False, 1, 3)
    assert [pods.preferred for pods in more.identical] == [1, 0]
    assert (more.pin, more.variant_of) == ("r1", gang)
    plain = scene.gang("g", a_pod("a", cpu=2), a_pod("b"), min_count=1, topology=RACK, domains=("r1",))
    assert (plain.need, plain.pending) == (more.need, more.pending)
    assert more.signature != plain.signature
    assert more.signature == gang.with_need(1).signature
    assert more.signature != gang.with_need(2).signature


def test_a_composite_can_be_asked_for_some_of_its_children():
    tree = a_mixed_tree(Scene())

    narrowed = tree.with_need(1, tree.open)

    assert (narrowed.need, narrowed.open, narrowed.done) == (1, tree.open, ())
    assert (narrowed.bound, narrowed.variant_of) == (3, tree)
    assert narrowed.signature not in (tree.signature, tree.with_need(1, (tree.children[0].with_need(1),)).signature)


def test_another_minimum_or_topology_leaves_the_request_as_it_was():
    gang = Scene().uniform("g", 4, bound=1, min_count=5)
    assert (gang.need, gang.pin) == (4, None)

    lower = gang.with_minimum(2)
    racked = gang.with_topology(RACK, ("r1",))

    assert (gang.need, lower.need, lower.identical[0].preferred) == (4, 1, 1)
    assert (gang.pin, racked.pin, racked.topology) == (None, "r1", RACK)
    tree = Scene().composite("root", gang)
    assert tree.with_topology(ZONE, ("z1",)).pin == "z1"
    assert (tree.pin, lower.variant_of, racked.variant_of) == (None, None, None)


def test_a_tree_is_rebuilt_from_the_leaves_up():
    scene = Scene()
    tree = scene.composite("root", scene.composite("mid", scene.uniform("a", 2)), scene.uniform("b", 1))
    order: list[str] = []

    def change(group: GroupRequest) -> GroupRequest:
        order.append(group.key.name)
        return group.with_minimum(7) if isinstance(group, PodGroupRequest) else group

    found = rebuilt(tree, change)

    assert order == ["a", "mid", "b", "root"]
    assert [leaf.minimum for leaf in leaves(found)] == [7, 7]
    assert [leaf.minimum for leaf in leaves(tree)] == [2, 1]
