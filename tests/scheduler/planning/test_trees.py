"""Trees of groups: minimums at every level, extras that starve nobody, children that choose."""

import msgspec

from muster.scheduler.placement.verdict import Infeasible, Placed
from tests.build.objects import a_node, a_pod
from tests.build.planning import Scene


def slots(count: int) -> Scene:
    return Scene().nodes(*(a_node(f"n{i}", cpu=1) for i in range(count)))


def test_both_children_or_none():
    for room, placed in ((5, False), (6, True)):
        scene = slots(room)
        assert scene.plan(scene.composite("pair", scene.uniform("l", 3), scene.uniform("r", 3))).placed is placed


def test_extras_of_one_child_never_starve_a_sibling():
    scene = slots(5)

    result = scene.plan(scene.composite("root", scene.uniform("greedy", 4, min_count=2), scene.uniform("exact", 3)))

    assert (result.seats_of("greedy"), result.seats_of("exact")) == (2, 3)


def test_children_beyond_the_minimum_come_before_extra_members():
    scene = slots(5)
    first, second = scene.uniform("first", 4, min_count=2), scene.uniform("second", 3)

    result = scene.plan(scene.composite("root", first, second, min_groups=1))

    assert (result.seats_of("first"), result.seats_of("second")) == (2, 3)


def test_enough_children_are_enough():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2) for i in range(4)))
    giant, mid, small = scene.uniform("giant", 2, 5), scene.uniform("mid", 2, 2), scene.uniform("small", 3)

    result = scene.plan(scene.composite("root", giant, mid, small, min_groups=2))

    assert (result.seats_of("giant"), result.seats_of("mid"), result.seats_of("small")) == (0, 2, 3)
    assert isinstance(result.verdict, Placed)
    assert giant.key not in result.verdict.placed_groups


def test_children_of_a_basic_composite_stand_for_themselves():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=3) for i in range(2)))

    result = scene.plan(scene.composite("bag", scene.uniform("fits", 4), scene.uniform("big", 2, 4), min_groups=1))

    assert (result.seats_of("fits"), result.seats_of("big")) == (4, 0)


def test_quorums_hold_on_every_level():
    def tree(scene: Scene):
        odd = a_pod("odd", cpu=3, nodeSelector={"kind": "wide"})
        return scene.composite(
            "root",
            scene.composite("a", scene.uniform("a1", 2), scene.uniform("a2", 1)),
            scene.composite("b", scene.uniform("b1", 2), scene.gang("b2", odd)),
        )

    nodes = [*(a_node(f"n{i}", cpu=2) for i in range(3)), a_node("wide", cpu=1, labels={"kind": "wide"})]
    scene = Scene().nodes(*nodes)
    assert isinstance(scene.plan(tree(scene)).verdict, Infeasible)
    scene = Scene().nodes(*nodes, a_node("wide2", cpu=3, labels={"kind": "wide"}))
    assert len(scene.plan(tree(scene)).verdict.assignments) == 6


def test_small_pods_leave_the_large_node_to_the_sibling_that_needs_it():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)), a_node("wide", cpu=3, labels={"kind": "wide"}))
    picky = scene.gang("b", a_pod("b0", cpu=3, nodeSelector={"kind": "wide"}))

    result = scene.plan(scene.composite("root", scene.uniform("a", 5), picky))

    assert result.nodes_of("b") == {"b0": "wide"}
    assert "wide" not in result.nodes_of("a").values()


def test_a_basic_child_counts_with_one_pod():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2) for i in range(2)), a_node("big", cpu=3, labels={"size": "big"}))
    heavy = [a_pod(f"heavy{i}", cpu=3, nodeSelector={"size": "big"}) for i in range(2)]
    tree = scene.composite("root", scene.uniform("light", 2, min_count=1), scene.gang("heavy", *heavy, min_count=1))

    result = scene.plan(tree)

    assert (result.seats_of("light"), result.seats_of("heavy")) == (2, 1)


def test_a_child_that_already_runs_counts_and_takes_extras():
    scene = slots(4)
    lead = scene.uniform("lead", 0, bound=1, min_count=1)
    crew = scene.uniform("crew", 2, bound=2, min_count=2)

    assert scene.plan(scene.composite("root", lead, crew)).seats_of("crew") == 2


def test_a_child_added_to_a_running_tree_is_placed_as_a_whole():
    scene = slots(2)
    first = scene.uniform("first", 0, bound=2, min_count=2)

    assert isinstance(
        scene.plan(scene.composite("root", first, scene.uniform("new", 3), min_groups=1)).verdict, Infeasible
    )
    assert scene.plan(scene.composite("root", first, scene.uniform("new", 2), min_groups=1)).seats_of("new") == 2


def test_extra_members_of_a_child_whose_parent_fails_are_not_seated():
    scene = slots(4)
    half = scene.composite("half", scene.uniform("runs", 2, bound=1, min_count=1), scene.uniform("fails", 9))
    other = scene.uniform("other", 1)

    result = scene.plan(scene.composite("root", half, other, min_groups=1))

    assert (result.seats_of("runs"), result.seats_of("other")) == (0, 1)


def test_a_branch_without_enough_members_is_skipped_before_placement():
    scene = slots(3)
    hopeless = scene.composite("hopeless", scene.uniform("a", 1), scene.uniform("b", 1, min_count=2))

    result = scene.plan(scene.composite("root", hopeless, scene.uniform("c", 3), min_groups=1))

    assert (result.seats_of("a"), result.seats_of("c")) == (0, 3)


def test_what_is_short_is_told_for_the_group_that_lacks_it():
    scene = slots(5)

    verdict = scene.plan(scene.composite("pair", scene.uniform("l", 3), scene.uniform("r", 3))).verdict

    assert isinstance(verdict, Infeasible)
    short = {shortage.group.name: (shortage.seats, shortage.needed) for shortage in verdict.proof.shortages}
    assert (2, 3) in short.values()
    assert short["pair"] == (1, 2)


def test_of_children_that_compete_the_one_with_the_higher_priority_runs():
    scene = slots(3)
    low, high = scene.uniform("low", 2), scene.uniform("high", 3)
    high = high.with_members(tuple(msgspec.structs.replace(member, priority=10) for member in high.members))

    result = scene.plan(scene.composite("bag", low, high, min_groups=1))

    assert (result.seats_of("low"), result.seats_of("high")) == (0, 3)
