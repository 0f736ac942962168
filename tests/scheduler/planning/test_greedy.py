"""Greedy placement: nodes and domains by score, the hardest child first, extras last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.verdict import DomainsEvaluated
from muster.scheduler.planning.greedy import STEPS_PER_BATCH, WORTH_COUNTING, Greedy, highest_priority, pending_below
from muster.scheduler.planning.partial_placement import PartialPlacement
from tests.build.cluster import evaluator_of
from tests.build.objects import BLOCK, RACK, a_node, a_pod, apart, near
from tests.build.planning import Scene, racks, slots


def test_a_large_member_that_comes_last_finds_its_node():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    gang = scene.gang("mix", *(a_pod(f"small{i}") for i in range(4)), a_pod("large", cpu=4))

    assert scene.plan(gang).seats_of("mix") == 5


def test_a_minimum_may_be_reached_with_other_members_than_the_first():
    scene = Scene().nodes(a_node("n0", cpu=2))
    gang = scene.gang("mix", a_pod("huge", cpu=8), a_pod("a", cpu=1), a_pod("b", cpu=1), min_count=2)

    assert set(scene.plan(gang).nodes_of("mix")) == {"a", "b"}


def test_members_that_repel_each_other_get_a_node_each():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=8) for i in range(3)))
    rule = apart("kubernetes.io/hostname", job="apart")
    gang = scene.gang("apart", *(a_pod(f"z{i}", labels={"job": "apart"}, affinity=rule) for i in range(3)))

    assert len(set(scene.plan(gang).nodes_of("apart").values())) == 3


def test_extras_of_one_child_never_starve_a_sibling():
    scene = slots(5)

    result = scene.plan(scene.composite("root", scene.uniform("greedy", 4, min_count=2), scene.uniform("exact", 3)))

    assert (result.seats_of("greedy"), result.seats_of("exact")) == (2, 3)


def test_children_beyond_the_minimum_come_before_extra_members():
    scene = slots(5)
    first, second = scene.uniform("first", 4, min_count=2), scene.uniform("second", 3)

    result = scene.plan(scene.composite("root", first, second, min_groups=1))

    assert (result.seats_of("first"), result.seats_of("second")) == (2, 3)


def test_small_pods_leave_the_large_node_to_the_sibling_that_needs_it():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)), a_node("wide", cpu=3, labels={"kind": "wide"}))
    picky = scene.gang("b", a_pod("b0", cpu=3, nodeSelector={"kind": "wide"}))

    result = scene.plan(scene.composite("root", scene.uniform("a", 5), picky))

    assert result.nodes_of("b") == {"b0": "wide"}
    assert "wide" not in result.nodes_of("a").values()


def test_of_children_that_compete_the_one_with_the_higher_priority_runs():
    scene = slots(3)
    low, high = scene.uniform("low", 2), scene.uniform("high", 3)
    high = high.with_members(tuple(msgspec.structs.replace(member, priority=10) for member in high.members))

    result = scene.plan(scene.composite("bag", low, high, min_groups=1))

    assert (result.seats_of("low"), result.seats_of("high")) == (0, 3)


def test_a_domain_with_room_for_the_extras_beats_one_without():
    scene = racks(r1=3, r2=5)

    result = scene.plan(scene.uniform("g", 5, min_count=3, topology=RACK))

    assert result.values_of("g", RACK) == {"r2"}
    assert result.seats_of("g") == 5


def test_running_members_fix_the_rack_of_later_ones():
    scene = racks(small=3, large=6).running(a_pod("founder", cpu=1, node="small-0"))

    result = scene.plan(scene.uniform("club", 3, bound=1, min_count=1, topology=RACK, domains=("small",)))

    assert result.values_of("club", RACK) == {"small"}
    assert result.seats_of("club") == 2


def test_a_basic_group_keeps_to_one_rack():
    scene = racks(r1=3, r2=3)

    result = scene.plan(scene.uniform("pool", 5, min_count=1, topology=RACK))

    assert result.seats_of("pool") == 3
    assert len(result.values_of("pool", RACK)) == 1


def test_the_constraint_of_a_parent_binds_its_children_to_one_domain():
    scene = racks(r1=3, r2=4, r3=2)

    result = scene.plan(scene.composite("root", scene.uniform("p", 2), scene.uniform("q", 2), topology=RACK))

    assert result.values_of("p", RACK) == result.values_of("q", RACK) == {"r2"}


@contextmanager
def a_planner(scene: Scene, steps: int = 100, evaluated: DomainsEvaluated | None = None) -> Iterator[Greedy]:
    with evaluator_of(scene.cluster).trial() as trial:
        yield Greedy(PartialPlacement(trial), Budget(steps), evaluated)


def placed_names(greedy: Greedy) -> set[str]:
    return {assignment.uid.removeprefix("uid-") for assignment in greedy.placement.assignments()}


def test_a_minimum_that_does_not_fit_is_undone_as_a_whole():
    scene = slots(3)
    tree = scene.composite("root", scene.uniform("fits", 2), scene.uniform("not", 2))
    before = scene.cluster.used.copy()
    with a_planner(scene) as greedy:
        assert not greedy.place_minimum(tree, None)

        assert (greedy.placement.count, greedy.placement.satisfied) == (0, [])
        assert (scene.cluster.used == before).all()


def test_once_too_few_children_are_left_no_further_one_is_tried(monkeypatch: pytest.MonkeyPatch):
    scene = slots(3)
    too_large, small = scene.uniform("large", 4), [scene.uniform(f"small{i}", 1) for i in range(3)]
    placed: list[int] = []
    place = PartialPlacement.place_best
    monkeypatch.setattr(PartialPlacement, "place_best", lambda *args: placed.append(1) or place(*args))
    with a_planner(scene) as greedy:
        assert not greedy.place_minimum(scene.composite("all", too_large, *small), None)
        assert len(placed) == 1, "the hardest child comes first, and all are needed"
        assert greedy.place_minimum(scene.composite("most", too_large, *small, min_groups=3), None)


def test_a_large_gang_without_room_is_refused_by_counting_before_any_pod_is_placed(monkeypatch: pytest.MonkeyPatch):
    scene = slots(20)
    with a_planner(scene) as greedy:
        monkeypatch.setattr(greedy.placement, "place_best", lambda *_: pytest.fail("a pod was placed"))
        assert not greedy.place_minimum(scene.uniform("g", 21), None)


def test_placing_the_minimum_marks_every_group_that_it_satisfies():
    scene = slots(4)
    leaf = scene.uniform("a", 3, min_count=2)
    tree = scene.composite("root", leaf, scene.uniform("b", 1))
    with a_planner(scene) as greedy:
        assert greedy.place_minimum(tree, None)

        assert greedy.placement.count == 3
        assert greedy.placement.is_satisfied(leaf)
        assert greedy.placement.satisfied[-1] is tree


def test_a_child_that_requires_the_pods_of_a_later_one_is_tried_again():
    scene = slots(3)
    rule = near("kubernetes.io/hostname", role="lead")
    scene.nodes(a_node("roomy", cpu=9))
    follower = scene.gang("follower", a_pod("f", cpu=2, affinity=rule))
    leader = scene.gang(
        "leader", a_pod("l", cpu=1, labels={"role": "lead"}, nodeSelector={"kubernetes.io/hostname": "roomy"})
    )

    assert scene.plan(scene.composite("root", follower, leader)).seats_of("follower") == 1


def test_needed_children_are_tried_hardest_first_and_others_easiest_first():
    scene = slots(9)
    small, large = scene.uniform("small", 2), scene.uniform("large", 2, cpu=4)
    with a_planner(scene) as greedy:
        both = greedy.ordered_children(scene.composite("both", small, large))
        either = greedy.ordered_children(scene.composite("either", large, small, min_groups=1))

    assert [child.key.name for child in both] == ["large", "small"]
    assert [child.key.name for child in either] == ["small", "large"]


def test_a_group_is_as_large_as_the_pods_its_minimum_needs():
    scene = slots(10)
    small, large = scene.uniform("small", 9, min_count=2), scene.uniform("large", 1, cpu=3)
    with a_planner(scene) as greedy:
        assert greedy.dominant_share(small.members[0].shape) == pytest.approx(0.1)
        assert greedy.minimum_share(small) == pytest.approx(0.2)
        assert greedy.minimum_share(scene.composite("any", small, large, min_groups=1)) == pytest.approx(0.2)
        assert greedy.minimum_share(scene.composite("both", small, large)) == pytest.approx(0.5)


def test_the_domains_of_pod_groups_are_counted_when_they_are_evaluated():
    scene = racks(r1=1, r2=3, r3=3)
    evaluated = DomainsEvaluated()
    with a_planner(scene, evaluated=evaluated) as greedy:
        greedy.place_minimum(scene.composite("root", scene.uniform("g", 2, topology=RACK), topology=BLOCK), None)

    assert (evaluated.domains, evaluated.feasible) == (3, 2)


def test_a_pinned_pod_group_has_one_domain_evaluated():
    scene = racks(r1=1, r2=3)
    evaluated = DomainsEvaluated()
    with a_planner(scene, evaluated=evaluated) as greedy:
        gang = scene.uniform("g", 1, bound=1, min_count=2, topology=RACK, domains=("r2",))
        assert greedy.place_minimum(gang, None)

    assert (evaluated.domains, evaluated.feasible) == (1, 1)


def test_a_domain_that_works_at_once_costs_no_step_and_every_further_one_does():
    scene = racks(r1=2, r2=2)
    with a_planner(scene) as greedy:
        assert greedy.place_minimum(scene.uniform("g", 2, topology=RACK), None)
        assert greedy.budget.spent == 0
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=3, rack=f"r{i}") for i in range(3)))
    mixed = scene.gang("mix", a_pod("l", cpu=2), a_pod("m", cpu="1500m"), topology=RACK)
    with a_planner(scene) as greedy:
        assert not greedy.place_minimum(mixed, None)
        assert greedy.budget.spent == 2 + 3 * STEPS_PER_BATCH, "two further domains, and pods placed in vain in all"


def test_extras_are_placed_in_order_of_preference():
    scene = Scene().nodes(a_node("n0", cpu=4))
    gang = scene.gang("g", a_pod("a", cpu=1), a_pod("b", cpu=2), a_pod("c", cpu=1), min_count=1)
    with a_planner(scene) as greedy:
        assert greedy.place_minimum(gang, None)
        assert placed_names(greedy) == {"a"}
        greedy.add_extras(gang, None)

        assert placed_names(greedy) == {"a", "b", "c"}
    scene = Scene().nodes(a_node("n0", cpu=3))
    gang = scene.gang("g", a_pod("a", cpu=1), a_pod("b", cpu=2), a_pod("c", cpu=1), min_count=1)
    with a_planner(scene) as greedy:
        greedy.place_minimum(gang, None)
        greedy.add_extras(gang, None)

        assert placed_names(greedy) == {"a", "b"}


def test_extras_stay_in_the_domain_of_the_minimum():
    scene = racks(r1=3, r2=2)
    gang = scene.uniform("g", 5, min_count=2, topology=RACK)
    with a_planner(scene) as greedy:
        assert greedy.place_minimum(gang, None)
        greedy.add_extras(gang, None)

        domains = {scene.cluster.label_value(RACK, value) for _, value in greedy.placement.domains}
        used = {assignment.node.split("-")[0] for assignment in greedy.placement.assignments()}

    assert (used, greedy.placement.count) == (domains, 3)


def test_a_satisfied_group_without_running_members_gets_the_best_domain_for_its_extras():
    scene = racks(r1=1, r2=3)
    done = scene.uniform("done", 3, bound=2, min_count=2, topology=RACK)
    with a_planner(scene) as greedy:
        greedy.add_extras(done, None)
        assert greedy.placement.count == 3
    nowhere = scene.uniform("nowhere", 3, cpu=9, bound=2, min_count=2, topology=RACK)
    with a_planner(scene) as greedy:
        greedy.add_extras(nowhere, None)
        assert greedy.placement.count == 0


def test_further_children_that_greedy_placement_cannot_place_are_searched_for():
    scene = slots(3)
    root = scene.composite("root", scene.uniform("a", 2), scene.uniform("b", 2), min_groups=1)
    asked: list[str] = []
    with a_planner(scene) as greedy:
        assert greedy.place_minimum(root, None)
        greedy.add_children(root, None, lambda request, _: bool(asked.append(request.key.name)))

    assert len(asked) == 1


def test_pods_and_priority_of_a_tree_are_those_that_may_be_placed():
    scene = slots(1)
    low, high = scene.uniform("low", 2), scene.uniform("high", 3)
    high = high.with_members(tuple(msgspec.structs.replace(member, priority=7) for member in high.members))
    left_out = scene.uniform("left-out", 1, min_count=4)
    tree = scene.composite("root", low, high, left_out, min_groups=1)

    assert (pending_below(tree), highest_priority(tree)) == (5, 7)
    assert highest_priority(scene.uniform("empty", 0, bound=1, min_count=1)) == 0


def test_children_that_depend_on_each_other_are_tried_in_rounds():
    scene = Scene().nodes(a_node("n0", cpu=9))
    rule = near("kubernetes.io/hostname", role="lead")
    follower = scene.gang("follower", a_pod("f", cpu=3, affinity=rule), a_pod("f2", cpu=2))
    leader = scene.gang("leader", a_pod("l", cpu=1, labels={"role": "lead"}))
    tree = scene.fresh(scene.fresh(scene.composite("root", follower, leader)))
    with a_planner(scene) as greedy:
        assert [child.key.name for child in greedy.ordered_children(tree)] == ["follower", "leader"]  # type: ignore[arg-type]
        assert greedy.place_minimum(tree, None)
        assert greedy.placement.count == 3


def test_a_large_gang_that_fits_exactly_is_placed():
    for count in (WORTH_COUNTING, WORTH_COUNTING + 4):
        scene = slots(count)
        with a_planner(scene) as greedy:
            assert greedy.place_minimum(scene.uniform("g", count), None)


def test_extras_help_to_compare_domains_and_are_not_placed_with_the_minimum():
    scene = racks(r1=3, r2=4, r3=9)
    gang = scene.gang("g", *(a_pod(f"p{i}", cpu=f"{990 + i}m") for i in range(4)), min_count=2, topology=RACK)
    with a_planner(scene) as greedy:
        assert greedy.place_minimum(gang, None)
        assert greedy.placement.count == 2
        ((_, value),) = greedy.placement.domains
        assert scene.cluster.label_value(RACK, value) == "r2"  # all four fit, and it gets fuller than r3


def test_a_domain_chosen_for_extras_is_recorded():
    scene = racks(r1=1, r2=3)
    done = scene.uniform("done", 3, bound=2, min_count=2, topology=RACK)
    with a_planner(scene) as greedy:
        greedy.add_extras(done, None)
        assert [(group, scene.cluster.label_value(RACK, value)) for group, value in greedy.placement.domains] == [
            (done, "r2")
        ]


def test_children_and_extras_are_added_at_every_level():
    scene = slots(9)
    first, second = scene.uniform("first", 3, min_count=1), scene.uniform("second", 2)
    mid = scene.composite("mid", first, second, min_groups=1)
    running = scene.composite(
        "running", scene.uniform("r", 0, bound=1, min_count=1), scene.uniform("late", 1), min_groups=1
    )
    root = scene.composite("root", mid, running, min_groups=2)
    with a_planner(scene) as greedy:
        assert greedy.place_minimum(root, None)
        assert greedy.placement.count == 1
        greedy.add_children(root, None, lambda *_: False)
        assert greedy.placement.count == 1 + 2 + 1
        greedy.add_extras(root, None)
        assert greedy.placement.count == 3 + 2 + 1
