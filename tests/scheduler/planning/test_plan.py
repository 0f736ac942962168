"""From a request to a verdict: minimums at every level, extras, what runs already counts."""

from __future__ import annotations

from muster.scheduler.placement.verdict import Infeasible, Placed
from tests.build.objects import RACK, a_node, a_pod
from tests.build.planning import Scene, racks, slots


def test_a_gang_with_room_for_every_member_is_placed():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)))

    assert scene.plan(scene.uniform("trainers", 4)).seats_of("trainers") == 4


def test_members_beyond_the_minimum_take_what_is_left():
    scene = slots(5)

    result = scene.plan(scene.uniform("six", 6, min_count=4))

    assert result.seats_of("six") == 5


def test_the_minimum_comes_first_in_the_list_of_seats():
    scene = slots(5)
    gang = scene.gang("mix", a_pod("late", cpu=1), *(a_pod(f"m{i}", cpu=1) for i in range(3)), min_count=2)

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Placed)
    assert [seat.uid for seat in verdict.assignments[:2]] == ["uid-late", "uid-m0"]


def test_without_extras_only_the_minimum_is_seated():
    scene = slots(5)

    assert scene.plan(scene.uniform("six", 6, min_count=4), extras=False).seats_of("six") == 4


def test_late_members_of_a_running_gang_need_no_companions():
    scene = slots(5)
    gang = scene.uniform("crew", 2, bound=4, min_count=4)

    assert scene.plan(gang).seats_of("crew") == 2


def test_a_running_gang_for_whose_late_members_there_is_no_room_is_infeasible():
    scene = slots(5)
    gang = scene.uniform("crew", 2, cpu=2, bound=4, min_count=4)

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Infeasible)
    assert verdict.proof.shortages[0].needed == 1


def test_a_gang_with_too_few_members_is_refused_before_anything_is_tried():
    scene = slots(5)

    verdict = scene.plan(scene.uniform("few", 2, min_count=4)).verdict

    assert isinstance(verdict, Infeasible)
    assert verdict.steps == 0
    assert verdict.proof.shortages[0].lacking == (("members", 2),)


def test_the_same_demand_gets_the_same_seats_whatever_the_order_of_nodes():
    nodes = [a_node(f"n{i}", cpu=4) for i in range(7)]
    seats = []
    for order in (nodes, nodes[::-1]):
        scene = Scene(seed=7).nodes(*order)
        gang = scene.gang("mix", *(a_pod(f"s{i}") for i in range(9)), *(a_pod(f"l{i}", cpu=3) for i in range(5)))
        seats.append(scene.plan(gang).nodes_of("mix"))
    assert seats[0] == seats[1]


def test_both_children_or_none():
    for room, placed in ((5, False), (6, True)):
        scene = slots(room)
        assert scene.plan(scene.composite("pair", scene.uniform("l", 3), scene.uniform("r", 3))).placed is placed


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


def test_members_in_two_domains_are_a_clear_fault_of_that_group_only():
    scene = racks(r1=3, r2=3)
    torn = scene.uniform("torn", 2, bound=2, min_count=4, topology=RACK, domains=("r1", "r2"))

    alone = scene.plan(torn).verdict
    beside = scene.plan(scene.composite("root", torn, scene.uniform("fine", 2), min_groups=1))

    assert isinstance(alone, Infeasible)
    assert "r1, r2" in alone.proof.shortages[0].lacking[0][0]
    assert beside.seats_of("fine") == 2
