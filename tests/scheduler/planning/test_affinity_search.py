"""The search for pods that depend on each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import Infeasible
from muster.scheduler.planning import affinity_search
from muster.scheduler.planning.affinity_search import AffinitySearch
from muster.scheduler.planning.greedy import Greedy
from muster.scheduler.planning.partial_placement import PartialPlacement
from tests.build.cluster import evaluator_of
from tests.build.objects import HOSTNAME, RACK, ZONE, a_node, a_pod, apart, near
from tests.build.planning import Scene


def test_workers_may_need_the_zone_of_a_launcher_that_comes_later():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2, zone=f"z{i // 2}") for i in range(4)))
    rule = near("example.com/zone", role="launcher")
    workers = [a_pod(f"w{i}", affinity=rule) for i in range(2)]

    result = scene.plan(scene.gang("mpi", *workers, a_pod("launcher", labels={"role": "launcher"})))

    assert result.seats_of("mpi") == 3
    assert len(result.values_of("mpi", "example.com/zone")) == 1


def test_the_launcher_goes_where_its_workers_have_room_too():
    scene = Scene().nodes(
        a_node("big", cpu=64, zone="z0"), a_node("a", cpu=2, zone="z1"), a_node("b", cpu=2, zone="z1")
    )
    scene.running(a_pod("busy", cpu=62, node="big"))
    rule = near("example.com/zone", role="launcher")
    gang = scene.gang(
        "mpi", *(a_pod(f"w{i}", affinity=rule) for i in range(3)), a_pod("launcher", labels={"role": "launcher"})
    )

    assert scene.plan(gang).values_of("mpi", "example.com/zone") == {"z1"}


def test_a_chain_of_dependencies_is_followed():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2, zone=f"z{i // 2}") for i in range(4)))
    gang = scene.gang(
        "chain",
        a_pod("c", labels={"tier": "c"}, affinity=near("example.com/zone", tier="b")),
        a_pod("b", labels={"tier": "b"}, affinity=near("example.com/zone", tier="a")),
        a_pod("a", labels={"tier": "a"}),
    )

    assert scene.plan(gang).seats_of("chain") == 3


def test_dependent_members_without_any_way_are_proven_infeasible():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=1, zone=f"z{i}") for i in range(3)))
    rule = near("example.com/zone", role="launcher")
    gang = scene.gang("mpi", a_pod("worker", affinity=rule), a_pod("launcher", labels={"role": "launcher"}))

    assert isinstance(scene.plan(gang).verdict, Infeasible)


@contextmanager
def a_search(scene: Scene, request: GroupRequest, steps: int = 5000) -> Iterator[tuple[AffinitySearch, Any]]:
    """The search, and the request with the shapes of this moment."""
    request = scene.fresh(scene.fresh(request))
    with evaluator_of(scene.cluster).trial() as trial:
        yield AffinitySearch(Greedy(PartialPlacement(trial), Budget(steps)), Budget(steps)), request


def zones(*cpus: int) -> Scene:
    """One node of so many cpus in each zone."""
    return Scene().nodes(*(a_node(f"n{i}", cpu=cpu, zone=f"z{i}", rack=f"r{i}") for i, cpu in enumerate(cpus)))


def test_domains_and_satisfied_groups_are_recorded():
    scene = zones(1, 3)
    leaf = scene.gang(
        "g", a_pod("w", affinity=near(RACK, role="lead")), a_pod("l", labels={"role": "lead"}), topology=ZONE
    )
    with a_search(scene, scene.composite("root", leaf)) as (search, root):
        assert search.place_minimum(root, None)

        ((group, value),) = search.placement.domains
        assert (group.key.name, scene.cluster.label_value(ZONE, value)) == ("g", "z1")
        assert [each.key.name for each in search.placement.satisfied] == ["g", "root"]
        assert (search.complete, search.counted) == (True, False)


def test_an_alternative_that_counting_rules_out_is_not_tried():
    scene = zones(1, 1)
    with a_search(scene, scene.uniform("g", 3, affinity=near(ZONE, role="lead"))) as (search, request):
        assert not search.place_minimum(request, None)

        assert (search.complete, search.counted, search.orders) == (True, True, 0)


def test_pods_that_repel_each_other_are_placed_by_search_where_score_goes_wrong():
    # `a` scores best where only `b` can be.
    scene = Scene().nodes(a_node("small", cpu=2), a_node("large", cpu=4))
    rule = apart(HOSTNAME, app="x")
    a = a_pod("a", cpu=2, labels={"app": "x"}, affinity=rule)
    b = a_pod("b", cpu=3, labels={"app": "x"}, affinity=rule)

    with a_search(scene, scene.gang("g", a, b)) as (search, request):
        assert search.place_minimum(request, None)
        found = {one.uid: one.node for one in search.placement.assignments()}

    assert found == {"uid-a": "small", "uid-b": "large"}


def test_every_order_is_searched_where_no_anchor_works(monkeypatch: Any):
    monkeypatch.setattr(affinity_search, "MOST_ANCHORS", 0)
    scene = zones(1, 2, 2)
    gang = scene.gang(
        "chain",
        a_pod("c", labels={"tier": "c"}, affinity=near(ZONE, tier="b")),
        a_pod("b", labels={"tier": "b"}, nodeSelector={HOSTNAME: "n1"}),
    )
    with a_search(scene, gang) as (search, request):
        assert search.place_minimum(request, None)
        assert {one.node for one in search.placement.assignments()} == {"n1"}
    full = scene.gang(
        "full", *(a_pod(f"f{i}", affinity=near(ZONE, tier="b")) for i in range(2)), *map(scene.pods.get, ["uid-b"])
    )
    with a_search(scene, full) as (search, request):
        assert not search.place_minimum(request, None)
        assert search.complete
        assert search.placement.count == 0


def test_a_search_that_is_cut_short_claims_nothing(monkeypatch: Any):
    scene = zones(1, 1)
    gang = scene.gang("g", a_pod("w", affinity=near(ZONE, role="lead")), a_pod("l", labels={"role": "lead"}))
    with a_search(scene, gang) as (search, request):
        assert not search.place_minimum(request, None)
        assert search.complete
    with a_search(scene, gang, steps=8) as (search, request):
        assert not search.place_minimum(request, None)
        assert not search.complete
    monkeypatch.setattr(affinity_search, "MOST_LEAVES", 0)
    with a_search(scene, gang) as (search, request):
        assert not search.place_minimum(request, None)
        assert not search.complete
    monkeypatch.undo()
    monkeypatch.setattr(affinity_search, "DEEPEST", 1)
    with a_search(scene, gang) as (search, request):
        assert not search.place_minimum(request, None)
        assert not search.complete


def test_children_are_chosen_in_every_combination():
    scene = zones(1, 2)
    lead = scene.gang("lead", a_pod("l", labels={"role": "lead"}))
    with_lead = scene.gang("with-lead", a_pod("w", affinity=near(ZONE, role="lead")))
    impossible = scene.gang("impossible", a_pod("i", cpu=1, affinity=near(ZONE, role="none")))
    with a_search(scene, scene.composite("root", impossible, with_lead, lead, min_groups=2)) as (search, root):
        assert search.place_minimum(root, None)
        assert {one.uid for one in search.placement.assignments()} == {"uid-l", "uid-w"}


def test_an_anchor_is_tried_in_one_node_of_each_domain():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=1, zone=f"z{i // 4}") for i in range(12)))
    workers = [a_pod(f"w{i}", affinity=near(ZONE, role="lead")) for i in range(4)]
    with a_search(scene, scene.gang("g", *workers, a_pod("l", labels={"role": "lead"}))) as (search, request):
        search._every_order = lambda alternative: False  # type: ignore[method-assign]
        assert not search.place_minimum(request, None)

        assert search.orders == 3  # workers have no feasible node of their own


def only_anchors(search: AffinitySearch) -> AffinitySearch:
    search._every_order = lambda alternative: False  # type: ignore[method-assign]
    return search


def test_the_rest_is_placed_around_the_anchor_in_rounds():
    scene = zones(2, 4)
    chain = [
        a_pod("d", labels={"tier": "d"}, affinity=near(ZONE, tier="c")),
        a_pod("c", labels={"tier": "c"}, affinity=near(ZONE, tier="b")),
        a_pod("b", labels={"tier": "b"}, affinity=near(ZONE, tier="a")),
        a_pod("a", labels={"tier": "a"}),
    ]
    with a_search(scene, scene.gang("chain", *chain)) as (search, request):
        assert only_anchors(search).place_minimum(request, None)
        found = {one.node for one in search.placement.assignments()}

    assert found == {"n1"}  # the other zone is too small for all of them


def test_a_failed_anchor_is_undone_and_costs_steps():
    scene = zones(2, 2)
    workers = [a_pod(f"w{i}", affinity=near(ZONE, role="lead")) for i in range(2)]
    with a_search(scene, scene.gang("g", *workers, a_pod("l", labels={"role": "lead"}))) as (search, request):
        assert not only_anchors(search).place_minimum(request, None)

        assert search.placement.count == 0
        assert search.budget.spent == affinity_search.STEP_COST * (1 + 2 + 2 * 2)  # each anchor, and what it placed


def test_the_number_of_anchors_is_limited(monkeypatch: Any):
    monkeypatch.setattr(affinity_search, "MOST_ANCHORS", 2)
    scene = zones(1, 1, 1, 1)
    gang = scene.gang("g", a_pod("w", affinity=near(ZONE, role="lead")), a_pod("l", labels={"role": "lead"}))
    with a_search(scene, gang) as (search, request):
        assert not only_anchors(search).place_minimum(request, None)
        assert search.orders == 2


def test_several_equal_pods_on_one_node_are_found_without_anchors(monkeypatch: Any):
    monkeypatch.setattr(affinity_search, "MOST_ANCHORS", 0)
    scene = zones(1, 4)
    workers = [a_pod(f"w{i}", affinity=near(ZONE, role="lead")) for i in range(3)]
    with a_search(scene, scene.gang("g", *workers, a_pod("l", labels={"role": "lead"}))) as (search, request):
        assert search.place_minimum(request, None)
        assert {one.node for one in search.placement.assignments()} == {"n1"}
        assert search.placement.count == 4


def test_pods_that_must_be_placed_anyway_are_placed_first_where_room_only_shrinks(monkeypatch: Any):
    monkeypatch.setattr(affinity_search, "MOST_ANCHORS", 0)
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2) for i in range(5)))
    rule = apart(HOSTNAME, app="x")
    pods = [a_pod(f"p{i}", labels={"app": "x"}, affinity=rule, cpu=1 + i % 2) for i in range(6)]
    with a_search(scene, scene.gang("six", *pods), steps=100_000) as (search, request):
        search._ruled_out = lambda alternative: False  # type: ignore[method-assign]
        assert not search.place_minimum(request, None)
        assert search.complete
        assert search.budget.spent < 400  # every order of six pods on five nodes would be thousands


def test_limits_are_inclusive(monkeypatch: Any):
    monkeypatch.setattr(affinity_search, "MOST_LEAVES", 1)
    monkeypatch.setattr(affinity_search, "DEEPEST", 2)
    monkeypatch.setattr(affinity_search, "MOST_ANCHORS", 0)
    scene = zones(2)
    gang = scene.gang("g", a_pod("w", affinity=near(ZONE, role="lead")), a_pod("l", labels={"role": "lead"}))
    with a_search(scene, gang) as (search, request):
        assert search.place_minimum(request, None)
