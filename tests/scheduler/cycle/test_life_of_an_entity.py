"""The life of a queued entity, driven through the scheduler: one test for each numbered move of `queue/entity.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import EntityState
from muster.scheduler.queue.scheduling_queue import FALLBACK_SECONDS
from tests.build.objects import a_claim, a_class, a_composite, a_gang, a_node, a_pod, using
from tests.build.scheduler import TestWorld, a_world

S = EntityState


def state_of(world: TestWorld, name: str) -> EntityState | None:
    """The state of the entity of this name, None if it is not queued; what must hold between two cycles holds."""
    world.scheduler.state.check()
    queued = world.scheduler.state.queue.entities.values()
    return next((entity.state for entity in queued if entity.key.name == name), None)


def cycle(world: TestWorld) -> list[d.Bind]:
    """Run cycles until one decides binds, or nothing; what it decided is not carried out."""
    while decisions := world.scheduler.next(world.now):
        if binds := [decision for decision in decisions if isinstance(decision, d.Bind)]:
            return binds
    return []


def carry_out(world: TestWorld, binds: list[d.Bind]) -> None:
    for bind in binds:
        world._carry_out(bind)


# --- worlds with the gang g of two pods in a given state -------------------------------------------


def incomplete() -> TestWorld:
    return a_world([a_node("n0", cpu=2)]).add(a_gang("g", 2, priority=5), a_pod("g-0", "g", priority=5))


def active() -> TestWorld:
    return incomplete().add(a_pod("g-1", "g", priority=5))


def unschedulable() -> TestWorld:
    world = active().add(a_pod("old", node="n0", priority=9))
    return world.run()


def backoff() -> TestWorld:
    """Three failures at one time, each after a change of a member, and one more change."""
    world = unschedulable()
    for number in range(2):
        world.add(a_pod("g-1", "g", priority=5, labels={"try": str(number)})).run()
    return world.add(a_pod("g-1", "g", priority=5, labels={"try": "last"}))


def preempting() -> TestWorld:
    world = active().add(a_pod("old", node="n0", priority=1))
    world.slow_victims = True
    return world.run()


def binding() -> TestWorld:
    world = active()
    assert len(cycle(world)) == 2
    return world


IN_STATE: dict[EntityState, Callable[[], TestWorld]] = {
    S.INCOMPLETE: incomplete,
    S.ACTIVE: active,
    S.UNSCHEDULABLE: unschedulable,
    S.BACKOFF: backoff,
    S.PREEMPTING: preempting,
    S.BINDING: binding,
}


def in_state(state: EntityState) -> TestWorld:
    world = IN_STATE[state]()
    assert state_of(world, "g") is state
    return world


# --- the moves -------------------------------------------------------------------------------------


def test_01_new_to_incomplete_while_members_are_missing():
    world = a_world([a_node("n0", cpu=2)])

    world.add(a_gang("g", 2), a_pod("g-0", "g"))

    assert state_of(world, "g") is S.INCOMPLETE
    assert cycle(world) == []


def test_01_new_to_incomplete_while_a_gate_holds_the_pod():
    world = a_world([a_node("n0")])

    world.add(a_pod("p", gates=["example.com/hold"]))

    assert state_of(world, "p") is S.INCOMPLETE
    assert cycle(world) == []


def test_02_new_to_active_when_nothing_is_missing():
    world = a_world([a_node("n0")])

    world.add(a_pod("p"))

    assert state_of(world, "p") is S.ACTIVE


def test_03_incomplete_to_active_when_the_last_member_arrives():
    world = in_state(S.INCOMPLETE)

    world.add(a_pod("g-1", "g", priority=5))

    assert state_of(world, "g") is S.ACTIVE


def test_03_incomplete_to_active_when_the_gate_is_gone():
    world = a_world([a_node("n0")]).add(a_pod("p", gates=["example.com/hold"]))

    world.add(a_pod("p"))

    assert state_of(world, "p") is S.ACTIVE


def test_04_unschedulable_to_active_when_a_node_gained_room():
    world = in_state(S.UNSCHEDULABLE)

    world.add(a_node("n1", cpu=4), a_pod("first", priority=9))

    assert state_of(world, "g") is S.UNSCHEDULABLE, "changes are collected until the next cycle"
    assert [bind.pod.name for bind in cycle(world)] == ["first"]
    assert state_of(world, "g") is S.ACTIVE


def test_04_unschedulable_to_active_when_its_own_group_changes():
    world = in_state(S.UNSCHEDULABLE)

    world.add(a_gang("g", 1, priority=5))

    assert state_of(world, "g") is S.ACTIVE


def test_04_the_fallback_timer_tries_nothing_if_nothing_has_changed():
    world = in_state(S.UNSCHEDULABLE)
    due = world.scheduler.state.queue.next_due()
    assert due is not None

    world.now = due
    world.run()

    assert world.scheduler.state.queue.entities[EntityKey("PodGroup", "ns", "g")].attempts == 1
    assert world.scheduler.state.queue.next_due() == due + FALLBACK_SECONDS


def test_04_unschedulable_to_active_when_the_fallback_timer_finds_room_that_was_not_signalled():
    world = in_state(S.UNSCHEDULABLE)
    due = world.scheduler.state.queue.next_due()
    assert due is not None
    world.add(a_node("unnoticed", cpu=64))
    world.scheduler.state.signals.clear()
    world.run()
    assert world.bound("g") == {}

    world.now = due
    world.run()

    assert world.bound("g")
    assert (world.scheduler.take_missed(), world.scheduler.take_missed()) == (1, 0)


@pytest.mark.parametrize("state", [S.ACTIVE, S.UNSCHEDULABLE, S.BACKOFF, S.PREEMPTING])
def test_05_any_without_binds_to_incomplete_when_a_gated_member_arrives(state: EntityState):
    world = in_state(state)

    world.add(a_pod("held", "g", priority=5, gates=["example.com/hold"]))

    assert state_of(world, "g") is S.INCOMPLETE
    assert world.scheduler.state.preemptions.entities() == []


@pytest.mark.parametrize("state", [S.ACTIVE, S.UNSCHEDULABLE, S.BACKOFF, S.PREEMPTING])
@pytest.mark.parametrize("gone", [("PodGroup", "g"), ("Pod", "g-1")], ids=["group", "member"])
def test_05_any_without_binds_to_incomplete_when_a_part_is_deleted(state: EntityState, gone: tuple[str, str]):
    world = in_state(state)

    world.remove(*gone)

    assert state_of(world, "g") is S.INCOMPLETE
    assert world.scheduler.state.preemptions.entities() == []


def test_05_binding_to_incomplete_only_when_the_last_bind_is_answered():
    world = active()
    first, second = cycle(world)
    world.add(a_pod("held", "g", priority=5, gates=["example.com/hold"]))

    carry_out(world, [first])
    assert state_of(world, "g") is S.BINDING
    carry_out(world, [second])

    assert state_of(world, "g") is S.INCOMPLETE


def test_06_active_to_unschedulable_when_nothing_fits():
    world = active().add(a_pod("old", node="n0", priority=9))
    assert state_of(world, "g") is S.ACTIVE

    assert cycle(world) == []

    assert state_of(world, "g") is S.UNSCHEDULABLE


def test_07_active_to_binding_when_binds_are_decided():
    world = in_state(S.ACTIVE)

    assert len(cycle(world)) == 2

    assert state_of(world, "g") is S.BINDING


def test_08_active_to_preempting_when_victims_must_leave():
    world = active().add(a_pod("old", node="n0", priority=1))
    world.slow_victims = True
    assert state_of(world, "g") is S.ACTIVE

    world.run()

    assert (state_of(world, "g"), world.evicted(), world.bound()) == (S.PREEMPTING, ["old"], {"old": "n0"})


def test_09_binding_to_backoff_when_a_bind_is_refused():
    world = active()
    first, second = cycle(world)
    world.refuse_binds.add(second.pod.name)

    carry_out(world, [first])
    assert state_of(world, "g") is S.BINDING, "one is not answered"
    carry_out(world, [second])

    assert state_of(world, "g") is S.BACKOFF
    world.now += 1.0
    assert [bind.pod.name for bind in cycle(world) if isinstance(bind, d.Bind)] == [second.pod.name]


def test_09_binding_to_active_when_a_race_was_lost():
    world = active()
    first, second = cycle(world)
    for bind in (first, second):
        world.scheduler.handle(events.BindFailed(bind.pod.uid, bind.node, "taken", events.LOST_RACE), world.now)

    assert state_of(world, "g") is S.ACTIVE


def test_09_binding_to_active_when_members_arrived_in_the_meantime():
    world = active().add(a_node("n1"))
    binds = cycle(world)
    world.add(a_pod("late", "g", priority=5))
    assert state_of(world, "g") is S.BINDING

    carry_out(world, binds)

    assert state_of(world, "g") is S.ACTIVE


def test_09_binding_to_backoff_when_a_bind_is_refused_while_a_claim_is_unbound():
    world = a_world([a_node("n0")]).add(a_class(), a_claim("data"), using("data", name="p"))
    binds = cycle(world)
    assert (len(binds), state_of(world, "p")) == (1, S.BINDING)
    world.refuse_binds.add("p")

    carry_out(world, binds)

    assert state_of(world, "p") is S.BACKOFF


def test_10_binding_to_removed_when_every_bind_succeeded():
    world = active()
    first, second = cycle(world)

    carry_out(world, [first])
    assert state_of(world, "g") is S.BINDING
    carry_out(world, [second])

    assert state_of(world, "g") is None
    assert len(world.bound()) == 2


@pytest.mark.parametrize("state", list(S))
def test_10_any_to_removed_when_its_pods_are_gone(state: EntityState):
    world = in_state(state)

    for name in world.pending("g-"):
        world.remove("Pod", name)

    assert state_of(world, "g") is None
    assert world.scheduler.state.preemptions.entities() == []
    assert cycle(world) == []


def test_11_unschedulable_to_backoff_when_it_failed_three_times_within_a_second():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("p", cpu=2)).run()
    for number in range(2):
        assert state_of(world, "p") is S.UNSCHEDULABLE
        world.add(a_pod("p", cpu=2, labels={"try": str(number)}))
        assert state_of(world, "p") is S.ACTIVE, "after fewer failures a change brings it back at once"
        world.run()
    assert state_of(world, "p") is S.UNSCHEDULABLE

    world.add(a_pod("p", cpu=2, labels={"try": "last"}))

    assert state_of(world, "p") is S.BACKOFF


def test_12_backoff_to_active_when_its_timer_runs_out():
    world = in_state(S.BACKOFF)
    due = world.scheduler.state.queue.entities[EntityKey("PodGroup", "ns", "g")].due
    assert due > world.now
    world.add(a_node("n1", cpu=8))

    world.now = due - 0.001
    assert cycle(world) == []
    assert state_of(world, "g") is S.BACKOFF
    world.now = due
    world.add(a_pod("first", priority=9))

    assert [bind.pod.name for bind in cycle(world)] == ["first"]
    assert state_of(world, "g") is S.ACTIVE


def test_13_preempting_to_active_when_the_last_victim_is_gone():
    world = in_state(S.PREEMPTING)

    world.reap()

    assert state_of(world, "g") is S.ACTIVE
    assert len(cycle(world)) == 2


def test_13_preempting_to_active_when_room_is_found_elsewhere():
    world = in_state(S.PREEMPTING)

    world.add(a_node("n1", cpu=8), a_pod("first", priority=9))

    assert [bind.pod.name for bind in cycle(world)] == ["first"]
    assert state_of(world, "g") is S.ACTIVE


def test_13_preempting_to_active_when_an_eviction_is_refused_or_the_nominated_node_is_lost():
    for event in (events.EvictionFailed("pod-old", "forbidden"), events.ObjectDeleted("Node", "", "n0", "node-n0")):
        world = in_state(S.PREEMPTING)

        world.scheduler.handle(event, world.now)

        assert state_of(world, "g") is S.ACTIVE


# --- 14: a tree takes in a group whose binds are in flight -----------------------------------------


def tree_in(state: EntityState) -> TestWorld:
    """A world where the composite c is in this state and the binds of the gang b are in flight.

    The binds of b are decided first, on a node of its own; the child a of c is the gang whose pods decide its state.
    """
    world = a_world([a_node("for-b", cpu=1, only="b"), a_node("n0", cpu=2, only="a")])
    world.add(a_gang("b", 1, priority=5), a_pod("b-0", "b", priority=5, nodeSelector={"only": "b"}))
    assert len(cycle(world)) == 1
    fields: dict[str, Any] = {"priority": 5, "nodeSelector": {"only": "a"}}
    world.add(a_composite("c", 1, priority=5), a_gang("a", 2, priority=5, parent="c"), a_pod("a-0", "a", **fields))
    if state is S.INCOMPLETE:
        return world
    if state is not S.ACTIVE:
        world.add(a_pod("old", node="n0", priority=1 if state is S.PREEMPTING else 9))
    world.add(a_pod("a-1", "a", **fields))
    world.slow_victims = True
    if state is not S.ACTIVE:
        world.run()
    if state is S.BACKOFF:
        for number in range(3):
            world.add(a_pod("a-1", "a", labels={"try": str(number)}, **fields))
            if number < 2:
                world.run()
    return world


@pytest.mark.parametrize("state", [S.INCOMPLETE, S.ACTIVE, S.UNSCHEDULABLE, S.BACKOFF, S.PREEMPTING])
def test_14_any_to_binding_when_the_tree_takes_in_a_group_whose_binds_are_in_flight(state: EntityState):
    world = tree_in(state)
    assert (state_of(world, "c"), state_of(world, "b")) == (state, S.BINDING)

    world.add(a_gang("b", 1, priority=5, parent="c"))

    assert (state_of(world, "c"), state_of(world, "b")) == (S.BINDING, None)
    assert world.scheduler.state.preemptions.entities() == []


def test_14_the_tree_leaves_binding_when_the_bind_it_took_in_is_answered():
    world = tree_in(S.ACTIVE)
    world.add(a_gang("b", 1, priority=5, parent="c"))
    assert cycle(world) == [], "no cycle while binds are in flight"

    carry_out(world, [d.Bind(world.scheduler.state.forest.members["pod-b-0"].ref, "for-b")])

    assert state_of(world, "c") is S.ACTIVE
    assert sorted(bind.pod.name for bind in cycle(world)) == ["a-0", "a-1"]
