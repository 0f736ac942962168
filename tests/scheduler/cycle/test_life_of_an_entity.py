"""The life of a queued entity: one test, or a few, for each numbered transition in the docstring of `queue.entity`.

The API server is slow here: what is decided stays in flight until a test says otherwise.
"""

from __future__ import annotations

import pytest

from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.queue.entity import EntityState
from tests.build.delayed_api import DelayedApi, a_delayed_api
from tests.build.objects import a_claim, a_class, a_composite, a_gang, a_node, a_pod, pods, using

INCOMPLETE, ACTIVE, BACKOFF = EntityState.INCOMPLETE, EntityState.ACTIVE, EntityState.BACKOFF
UNSCHEDULABLE, BINDING, PREEMPTING = EntityState.UNSCHEDULABLE, EntityState.BINDING, EntityState.PREEMPTING
REMOVED = None


def state_of(api: DelayedApi, name: str) -> EntityState | None:
    """The state of the entity of this name, or None without one."""
    found = [entity.state for key, entity in api.brain.state.queue.entities.items() if key.name == name]
    assert len(found) <= 1
    return found[0] if found else REMOVED


def show(api: DelayedApi, *objects: object) -> DelayedApi:
    """Objects are created or changed, and the watches show it."""
    api.add(*objects)
    api.deliver()
    return api


def take_away(api: DelayedApi, kind: str, name: str) -> None:
    api.remove(kind, name)
    api.deliver()


def a_gang_that_is(state: EntityState, cpu: int = 2) -> DelayedApi:
    """The gang `g` of two pods in a state; while it is preempting, one of two pods of less priority is in its way."""
    room = {UNSCHEDULABLE: 1, BACKOFF: 1}.get(state, cpu)
    api = a_delayed_api([a_node("n0", cpu=room)])
    if state is PREEMPTING:
        show(api, *pods(2, name="low", node="n0"))
    members = pods(2, "g", priority=5)
    show(api, a_gang("g", 2, priority=5), *(members[:1] if state is INCOMPLETE else members))
    if state not in (INCOMPLETE, ACTIVE):
        api.cycles()
    if state is BACKOFF:
        fail_again(api, times=2)
    assert state_of(api, "g") is state
    return api


def fail_again(api: DelayedApi, times: int) -> None:
    """The gang is tried and fails so many times more, in no time; then it is requeued once more."""
    entity = next(iter(api.brain.state.queue.entities.values()))
    for _ in range(times):
        api.brain.state.queue.requeue(entity, api.now)
        api.cycles()
    api.brain.state.queue.requeue(entity, api.now)


# --- 1, 2, 3: into the line ------------------------------------------------------------------------


def test_1_the_first_pod_of_an_incomplete_gang_is_queued_as_incomplete():
    api = show(a_delayed_api(), a_gang("g", 2))
    assert state_of(api, "g") is REMOVED
    show(api, a_pod("g-0", "g"))
    assert state_of(api, "g") is INCOMPLETE


def test_1_a_gated_pod_is_queued_as_incomplete():
    assert state_of(show(a_delayed_api(), a_pod("x", gates=["hold"])), "x") is INCOMPLETE


def test_2_a_pod_without_a_group_is_in_line_at_once():
    assert state_of(show(a_delayed_api(), a_pod("x")), "x") is ACTIVE


def test_2_a_gang_of_one_is_in_line_with_its_first_pod():
    assert state_of(show(a_delayed_api(), a_gang("g", 1), a_pod("g-0", "g")), "g") is ACTIVE


def test_3_a_gang_is_in_line_when_its_minimum_exists():
    api = a_gang_that_is(INCOMPLETE)
    show(api, a_pod("g-1", "g", priority=5))
    assert state_of(api, "g") is ACTIVE


def test_3_a_pod_is_in_line_when_its_last_gate_is_removed():
    api = show(a_delayed_api(), a_pod("x", gates=["hold"]))
    show(api, a_pod("x"))
    assert state_of(api, "x") is ACTIVE


def test_3_an_invalid_tree_is_in_line_when_it_becomes_valid():
    api = show(a_delayed_api(), a_composite("top", 1), a_gang("g", 1, parent="top", priority=5), a_pod("g-0", "g"))
    api.cycles()
    assert state_of(api, "top") is INCOMPLETE
    show(api, a_gang("g", 1, parent="top"))
    api.brain.next(api.now)
    assert state_of(api, "top") in (ACTIVE, UNSCHEDULABLE)  # tried in the same cycle; there is no node


# --- 4, 5: out of a wait, and back into one --------------------------------------------------------


def test_4_room_for_an_unschedulable_gang_puts_it_in_line():
    api = a_gang_that_is(UNSCHEDULABLE)
    show(api, a_node("n1", cpu=2))
    decisions = api.brain.next(api.now)
    assert [each.pod.name for each in decisions if isinstance(each, d.Bind)] == ["g-0", "g-1"]


def test_4_an_event_that_a_plugin_names_puts_an_unschedulable_pod_in_line():
    api = show(a_delayed_api([a_node("n0", taints=["dedicated=x:NoSchedule"])]), a_pod("x"))
    api.cycles()
    assert state_of(api, "x") is UNSCHEDULABLE
    show(api, a_node("n0"))
    assert any(isinstance(each, d.Bind) for each in api.brain.next(api.now))


def test_4_a_change_of_its_own_objects_puts_an_unschedulable_gang_in_line():
    api = a_gang_that_is(UNSCHEDULABLE)
    show(api, a_gang("g", 1, priority=5))
    assert state_of(api, "g") is ACTIVE


def test_4_the_fallback_timer_puts_an_unschedulable_gang_in_line():
    api = a_gang_that_is(UNSCHEDULABLE)
    entity = next(iter(api.brain.state.queue.entities.values()))
    attempts = entity.attempts
    api.now = entity.due
    api.cycles()
    assert (entity.attempts, entity.state) == (attempts + 1, UNSCHEDULABLE)


@pytest.mark.parametrize("state", [ACTIVE, BACKOFF, UNSCHEDULABLE, PREEMPTING])
@pytest.mark.parametrize("change", ["member deleted", "group deleted", "member gated"])
def test_5_an_entity_that_lacks_something_is_incomplete(state: EntityState, change: str):
    api = a_gang_that_is(state)
    match change:
        case "member deleted":
            take_away(api, "Pod", "g-0")
        case "group deleted":
            take_away(api, "PodGroup", "g")
        case _:
            show(api, a_pod("g-2", "g", priority=5, gates=["hold"]))
    assert state_of(api, "g") is INCOMPLETE
    assert not api.brain.state.preemptions.entities()


def test_5_a_tree_that_becomes_invalid_is_incomplete():
    api = show(a_delayed_api(), a_composite("top", 1), a_gang("g", 1, parent="top"), a_pod("g-0", "g"))
    api.cycles()
    assert state_of(api, "top") is UNSCHEDULABLE
    show(api, a_gang("g", 1, parent="top", priority=5))
    api.cycles()
    assert state_of(api, "top") is INCOMPLETE


def test_5_a_binding_entity_whose_group_was_deleted_is_incomplete_after_the_last_answer():
    api = a_gang_that_is(BINDING)
    take_away(api, "PodGroup", "g")
    assert state_of(api, "g") is BINDING
    api.execute(succeed=False)
    api.answer()
    assert state_of(api, "g") is INCOMPLETE


# --- 6, 7, 8: what comes of a cycle ----------------------------------------------------------------


def test_6_a_gang_that_does_not_fit_is_unschedulable_and_has_hints_and_a_timer():
    api = a_gang_that_is(UNSCHEDULABLE)
    (entity,) = api.brain.state.queue.entities.values()
    assert [hint.seats for hint in entity.hints.capacity] == [2]
    assert entity.due > api.now


def test_7_a_gang_that_fits_is_binding():
    api = a_gang_that_is(BINDING)
    assert [type(call) for call in api.calls] == [d.Bind, d.Bind]


def test_8_a_gang_that_fits_without_others_is_preempting():
    api = a_gang_that_is(PREEMPTING)
    assert [type(call) for call in api.calls] == [d.Evict, d.Evict]
    assert api.brain.state.nominations


# --- 9, 10: answers, and the end -------------------------------------------------------------------


def test_9_a_refused_bind_puts_the_gang_in_line_again_after_the_last_answer():
    api = a_gang_that_is(BINDING)
    api.execute(succeed=False)
    api.answer(most=1)
    assert state_of(api, "g") is BINDING
    api.answer()
    assert state_of(api, "g") is ACTIVE


def test_9_a_gang_whose_other_members_still_wait_is_in_line_after_the_last_answer():
    api = a_gang_that_is(BINDING, cpu=2)
    show(api, a_pod("g-2", "g", priority=5))
    assert state_of(api, "g") is BINDING
    api.execute()
    api.answer()
    assert state_of(api, "g") is ACTIVE


def test_9_a_refused_bind_is_followed_by_a_backoff_while_a_claim_is_unbound():
    api = show(a_delayed_api([a_node("n0")]), a_class("fast"), a_claim("data"), using("data", name="x"))
    api.cycles()
    assert state_of(api, "x") is BINDING
    api.execute(succeed=False)
    api.answer()
    assert state_of(api, "x") is BACKOFF


def test_10_an_entity_is_removed_when_its_last_pod_is_bound():
    api = a_gang_that_is(BINDING)
    api.execute()
    api.deliver()
    assert state_of(api, "g") is BINDING
    api.answer()
    assert state_of(api, "g") is REMOVED


@pytest.mark.parametrize("state", EntityState)
def test_10_an_entity_is_removed_in_any_state_when_its_pods_are_deleted(state: EntityState):
    api = a_gang_that_is(state)
    for name in ("g-0", "g-1") if state is not INCOMPLETE else ("g-0",):
        take_away(api, "Pod", name)
    assert state_of(api, "g") is REMOVED
    assert not api.brain.state.preemptions.entities()


# --- 11, 12: backoff -------------------------------------------------------------------------------


def test_11_an_entity_that_is_requeued_after_three_failures_in_a_second_backs_off():
    assert state_of(a_gang_that_is(BACKOFF), "g") is BACKOFF


def test_12_an_entity_is_in_line_when_its_backoff_is_over():
    api = a_gang_that_is(BACKOFF)
    entity = next(iter(api.brain.state.queue.entities.values()))
    attempts, due = entity.attempts, entity.due
    assert due <= api.now + 10
    api.now = due - 0.01
    api.cycles()
    assert (entity.attempts, entity.state) == (attempts, BACKOFF)
    api.now = due
    api.cycles()
    assert (entity.attempts, entity.state) == (attempts + 1, UNSCHEDULABLE)


# --- 13: the end of a preemption -------------------------------------------------------------------


def test_13_a_preempting_gang_is_in_line_when_its_last_victim_is_gone():
    api = a_gang_that_is(PREEMPTING)
    api.execute()
    api.deliver()
    take_away(api, "Pod", "low-0")
    assert state_of(api, "g") is PREEMPTING
    take_away(api, "Pod", "low-1")
    assert state_of(api, "g") is ACTIVE


def test_13_a_preempting_gang_is_in_line_when_an_eviction_is_refused():
    api = a_gang_that_is(PREEMPTING)
    api.execute(succeed=False)
    api.answer(most=1)
    assert state_of(api, "g") is ACTIVE


def test_13_a_preempting_gang_is_in_line_when_its_nominated_node_is_lost():
    api = a_gang_that_is(PREEMPTING)
    take_away(api, "Node", "n0")
    assert state_of(api, "g") is ACTIVE


def test_13_a_preempting_gang_takes_room_that_appears_elsewhere():
    api = a_gang_that_is(PREEMPTING)
    api.calls.clear()
    show(api, a_node("n1", cpu=2))
    api.cycles()
    assert state_of(api, "g") is BINDING
    assert {call.node for call in api.calls if isinstance(call, d.Bind)} == {"n1"}


def test_13_a_plan_that_does_not_hold_when_the_victims_are_to_be_deleted_is_cancelled_and_the_gang_in_line():
    api = a_delayed_api([a_node("n0", cpu=2)])
    show(api, *pods(2, name="low", node="n0"), a_gang("g", 2, priority=5), *pods(2, "g", priority=5))
    api.step()
    assert state_of(api, "g") is PREEMPTING  # marked, not yet deleted
    show(api, a_pod("daemon", node="n0", priority=9))
    api.brain.next(api.now)
    assert not api.brain.state.preemptions.entities()
    assert state_of(api, "g") in (ACTIVE, UNSCHEDULABLE)
    assert not api.calls


# --- 14: a tree takes in a group -------------------------------------------------------------------


@pytest.mark.parametrize("state", [INCOMPLETE, ACTIVE, UNSCHEDULABLE])
def test_14_a_tree_that_takes_in_a_group_whose_binds_are_in_flight_is_binding(state: EntityState):
    api = a_gang_that_is(BINDING)
    show(api, a_composite("top", 1), a_gang("h", 2, parent="top"), *pods(2, "h")[: 1 if state is INCOMPLETE else 2])
    if state is UNSCHEDULABLE:
        api.cycles()
    assert state_of(api, "top") is state
    show(api, a_gang("g", 2, parent="top"))
    assert (state_of(api, "top"), state_of(api, "g")) == (BINDING, REMOVED)
    api.execute()
    api.answer()
    assert state_of(api, "top") in (INCOMPLETE, ACTIVE)


def test_answers_about_pods_that_are_gone_change_nothing():
    api = a_gang_that_is(BINDING)
    for name in ("g-0", "g-1"):
        take_away(api, "Pod", name)
    api.brain.handle(events.BindSucceeded("pod-g-0", "n0"), api.now)
    api.brain.handle(events.BindFailed("pod-g-1", "n0", "gone"), api.now)
    assert state_of(api, "g") is REMOVED
    assert api.brain.next(api.now) == []
