"""Which pods leave for an entity: a plan that was checked, or none, and what is measured of it."""

from __future__ import annotations

import pytest

from muster.scheduler.cycle import choose_victims as chosen
from muster.scheduler.cycle.choose_victims import choose_victims, enough_is_leaving, is_valid, kind_word
from muster.scheduler.cycle.evaluate import request_of
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.preemption.result import NO_VICTIMS, NOMINATED, REFUSED
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.scheduler_state import SchedulerState
from tests.build.objects import RACK, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world


def a_full_node(priority: int = 1) -> TestWorld:
    """A node for two pods with `low-0` and `low-1` on it."""
    return a_world([a_node("n0", cpu=2)]).add(*pods(2, name="low", node="n0", priority=priority))


def asked_for(world: TestWorld, size: int = 1) -> tuple[SchedulerState, QueuedEntity, GroupRequest]:
    """The gang `g` of so many pods, not yet tried."""
    world.add(a_gang("g", size, priority=5), *pods(size, "g", priority=5))
    state = world.scheduler.state
    (entity,) = state.queue.entities.values()
    return state, entity, request_of(entity, state.shape_of, state.domain_of)


def results(state: SchedulerState) -> list[tuple[str, str, int]]:
    return [(attempt.preemptor, attempt.result, attempt.pods) for attempt in state.measurements.take_preemptions()]


def test_the_plan_names_its_victims_and_is_counted():
    state, entity, request = asked_for(a_full_node(), size=2)
    plan = choose_victims(state, entity, request, 0.0)
    assert plan is not None
    assert sorted(uid for victim in plan.victims for uid in victim.uids) == ["pod-low-0", "pod-low-1"]
    assert results(state) == [("podgroup", NOMINATED, 2)]


def test_nothing_is_changed_by_choosing():
    state, entity, request = asked_for(a_full_node())
    choose_victims(state, entity, request, 0.0)
    assert not state.preemptions.entities()
    assert not state.nominations
    assert set(state.cluster.pods) == {"pod-low-0", "pod-low-1"}


def test_pods_of_equal_priority_are_no_victims():
    state, entity, request = asked_for(a_full_node(priority=5))
    assert choose_victims(state, entity, request, 0.0) is None
    assert results(state) == [("podgroup", NO_VICTIMS, 0)]


def test_nobody_is_looked_for_when_not_even_an_empty_cluster_would_do():
    state, entity, request = asked_for(a_full_node(), size=3)
    assert choose_victims(state, entity, request, 0.0) is None
    assert results(state) == [("podgroup", NO_VICTIMS, 0)]


def test_pods_that_could_not_be_deleted_are_spared_until_their_time_is_over():
    state, entity, request = asked_for(a_full_node())
    for uid in ("pod-low-0", "pod-low-1"):
        state.preemptions.refused(uid, 0.0)
    assert choose_victims(state, entity, request, 10.0) is None
    assert choose_victims(state, entity, request, 100.0) is not None


def test_a_plan_that_the_checker_refuses_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch):
    state, entity, request = asked_for(a_full_node())
    monkeypatch.setattr(chosen, "validate", lambda *args, **fields: "wrong")
    assert choose_victims(state, entity, request, 0.0) is None
    assert results(state) == [("podgroup", REFUSED, 0)]


def test_pods_that_are_just_being_bound_are_victims_once_their_binds_are_answered():
    world = a_world([a_node("n0", cpu=2)]).add(*pods(2, name="low", priority=1))
    binds = world.scheduler.next(world.now)
    world.add(a_gang("g", 1, priority=5), a_pod("g-0", "g", priority=5))
    state = world.scheduler.state
    entity = next(entity for key, entity in state.queue.entities.items() if key.name == "g")
    request = request_of(entity, state.shape_of, state.domain_of)
    assert choose_victims(state, entity, request, 0.0) is None

    for bind in binds:
        world._carry_out(bind)

    assert choose_victims(state, entity, request, 0.0) is not None


def test_pods_that_leave_anyway_make_victims_unnecessary():
    world = a_full_node()
    world.terminate("low-0")
    state, entity, request = asked_for(world)
    plan = enough_is_leaving(state, entity, request)
    assert plan is not None
    assert (plan.victims, [each.uid for each in plan.placed.assignments]) == ((), ["pod-g-0"])


def test_too_few_pods_that_leave_are_not_enough():
    world = a_full_node()
    world.terminate("low-0")
    state, entity, request = asked_for(world, size=2)
    assert enough_is_leaving(state, entity, request) is None


def test_without_pods_that_leave_there_is_nothing_to_wait_for():
    state, entity, request = asked_for(a_full_node())
    assert enough_is_leaving(state, entity, request) is None


def test_a_placement_is_valid_only_without_the_pods_it_needs_gone():
    state, entity, request = asked_for(a_full_node())
    plan = choose_victims(state, entity, request, 0.0)
    assert plan is not None
    gone = [uid for victim in plan.victims for uid in victim.uids]
    assert is_valid(state, entity, request, plan.placed, gone)
    assert not is_valid(state, entity, request, plan.placed, ())


@pytest.mark.parametrize(
    ("kind", "word"),
    [("PodGroup", "podgroup"), ("CompositePodGroup", "compositepodgroup"), ("Pod", "pod")],
)
def test_preemptors_are_named_by_their_kind(kind: str, word: str):
    assert kind_word(ObjectRef(kind, "ns", "x")) == word


@pytest.mark.parametrize("seats", [("n0", "n1"), ("n1", "n0")])
def test_nominated_seats_are_kept_if_there_is_an_order_in_which_each_pod_may_have_its_own(seats: tuple[str, str]):
    nodes = [a_node("n0", cpu=1, rack="r0"), a_node("n1", cpu=1, rack="r0"), a_node("n2", cpu=0, rack="r1")]
    world = a_world(nodes).add(*[a_pod(f"low-{node}", node=node, deleting=True) for node in ("n0", "n1")])
    spread = {"maxSkew": 1, "topologyKey": RACK, "labelSelector": {"matchLabels": {"app": "a"}}}
    spread["whenUnsatisfiable"] = "DoNotSchedule"
    world.add(a_gang("g", 2, priority=5), a_pod("g-0", "g", priority=5, labels={"app": "a"}))
    world.add(a_pod("g-1", "g", priority=5, labels={"app": "a"}, topologySpreadConstraints=[spread]))
    state = world.scheduler.state
    (entity,) = state.queue.entities.values()
    request = request_of(entity, state.shape_of, state.domain_of)

    plan = enough_is_leaving(state, entity, request, {"pod-g-0": seats[0], "pod-g-1": seats[1]})

    assert plan is not None
    assert {one.uid: one.node for one in plan.placed.assignments} == {"pod-g-0": seats[0], "pod-g-1": seats[1]}
