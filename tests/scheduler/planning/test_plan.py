"""From a request to a verdict: minimums at every level, extras, what runs already counts."""

from __future__ import annotations

import pytest

from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import DomainsEvaluated, Infeasible, Placed, Undecided
from muster.scheduler.planning.node_matrix import NodeSet
from muster.scheduler.planning.plan import plan
from muster.scheduler.planning.tree_search import TreeSearch
from tests.build.cluster import evaluator_of
from tests.build.objects import RACK, ZONE, a_node, a_pod, near
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


def test_a_single_pod_gets_the_best_node_without_any_step():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=2))
    budget = Budget(0)
    with evaluator_of(scene.cluster).trial() as trial:
        verdict = plan(scene.uniform("one", 1), trial, budget)

    assert isinstance(verdict, Placed)
    assert [(one.uid, one.node, one.index) for one in verdict.assignments] == [("uid-one-0", "n0", 0)]
    assert [key.name for key in verdict.placed_groups] == ["one"]
    assert budget.spent == 0


def test_a_single_pod_without_a_node_is_refused_with_a_proof():
    scene = slots(2)

    verdict = scene.plan(scene.uniform("one", 1, cpu=2)).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(scene.plan(scene.uniform("few", 1, min_count=2)).verdict, Infeasible)


def test_a_placement_names_satisfied_groups_and_chosen_domains():
    scene = racks(r1=1, r2=3)
    new = scene.uniform("new", 2, topology=RACK)
    before = scene.uniform("before", 0, bound=1, min_count=1)
    failed = scene.uniform("failed", 9)

    verdict = scene.plan(scene.composite("root", new, before, failed, min_groups=2)).verdict

    assert isinstance(verdict, Placed)
    assert {key.name for key in verdict.placed_groups} == {"root", "new", "before"}
    assert [(key.name, value) for key, value in verdict.domains] == [("new", "r2")]


def test_a_satisfied_request_is_placed_if_anything_can_be_added():
    scene = slots(2)
    full, room = (scene.uniform(name, 1, cpu=cpu, bound=1, min_count=1) for name, cpu in (("full", 2), ("room", 1)))
    tree = scene.composite("root", full, room, min_groups=1)

    assert scene.plan(tree).seats_of("room") == 1
    without_extras = scene.plan(tree, extras=False)
    assert without_extras.seats_of("room") == 1
    assert isinstance(scene.plan(full).verdict, Infeasible)


def test_the_domains_that_were_evaluated_are_counted_once():
    scene = racks(r1=1, r2=1)
    evaluated = DomainsEvaluated("profile")

    verdict = scene.plan(scene.uniform("g", 2, topology=RACK), evaluated=evaluated).verdict

    assert isinstance(verdict, Infeasible)
    assert (evaluated.profile, evaluated.domains, evaluated.feasible) == ("profile", 2, 0)


def test_without_steps_nothing_is_claimed():
    scene = Scene().nodes(a_node("n0", cpu=10), a_node("n1", cpu=10), a_node("n2", cpu=10))
    sizes = {"a": 6, "b": 5, "c": 5, "d": 4, "e": 4, "f": 3, "g": 3}
    gang = scene.gang("mix", *(a_pod(name, cpu=cpu) for name, cpu in sizes.items()))

    assert scene.plan(gang).placed
    verdict = scene.plan(gang.with_members(gang.members), steps=1).verdict

    assert isinstance(verdict, Undecided | Placed)
    tight = scene.gang("tight", *(a_pod(f"t{i}", cpu=cpu) for i, cpu in enumerate((7, 7, 7, 4, 3, 2))))
    assert isinstance(scene.plan(tight, steps=1).verdict, Undecided)


def test_dependent_pods_are_placed_where_counts_put_them_if_their_rules_allow_it():
    # Greedy placement puts the pods with the port on the nodes that the large ones need.
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=3), a_node("n2", cpu=1))
    port = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    gang = scene.gang(
        "g", a_pod("p0", cpu=1, **port), a_pod("p1", cpu=1, **port), a_pod("l0", cpu=3), a_pod("l1", cpu=3)
    )

    assert scene.plan(gang).seats_of("g") == 4


def test_a_child_that_was_searched_for_in_vain_is_not_searched_for_again(monkeypatch: pytest.MonkeyPatch):
    searched: list[str] = []
    solve = TreeSearch.solve

    def recorded(self: TreeSearch, request: GroupRequest, nodes: NodeSet) -> object:
        searched.append(request.key.name)
        return solve(self, request, nodes)

    monkeypatch.setattr(TreeSearch, "solve", recorded)
    scene = slots(3)
    equal = [scene.uniform(f"g{i}", 3) for i in range(3)]

    assert scene.plan(scene.composite("root", scene.uniform("one", 1), *equal, min_groups=1)).placed
    assert len(searched) == 1


def test_a_key_that_affinity_implies_is_searched_by_domain():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2, zone=f"z{i // 2}") for i in range(4)))
    rule = near(ZONE, role="lead")
    pods = [a_pod(f"w{i}", affinity=rule) for i in range(3)]
    gang = scene.gang("g", *pods, a_pod("l", cpu=1, labels={"role": "lead"}))

    assert len(scene.plan(gang).values_of("g", ZONE)) == 1
    more = scene.gang("h", *pods, a_pod("w3", affinity=rule), a_pod("l", cpu=1, labels={"role": "lead"}))
    assert isinstance(scene.plan(more).verdict, Infeasible)
