"""Who of those that wait is tried after a change: whom it could help, in the order of the line, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from muster.scheduler.cycle import wake_up
from muster.scheduler.interface import decisions as d
from muster.scheduler.queue.entity import EntityState, QueuedEntity
from muster.scheduler.queue.scheduling_queue import FALLBACK_SECONDS, UNDECIDED_SECONDS
from muster.scheduler.state.preemptions import REFUSED_SECONDS
from tests.build.objects import (
    HOSTNAME,
    ZONE,
    a_claim,
    a_class,
    a_gang,
    a_node,
    a_pod,
    a_volume,
    apart,
    near,
    pods,
    using,
)
from tests.build.scheduler import TestWorld, a_world


def entity_of(world: TestWorld, name: str) -> QueuedEntity:
    return next(one for one in world.scheduler.state.queue.entities.values() if one.key.name == name)


def attempts(world: TestWorld) -> dict[str, int]:
    """How often each of those that wait was tried."""
    return {entity.key.name: entity.attempts for entity in world.scheduler.state.queue.entities.values()}


def look(world: TestWorld) -> bool:
    return wake_up.wake_waiting(world.scheduler.state, world.now)


def woken(world: TestWorld) -> set[str]:
    return {entity.key.name for entity in world.scheduler.state.queue.entities.values() if entity.woken}


def waits_with(world: TestWorld, name: str, **changes: Any) -> None:
    """As if the last attempt of an entity that waits had left other hints."""
    queue, entity = world.scheduler.state.queue, entity_of(world, name)
    queue.activate(entity)
    queue.add_unschedulable(entity, replace(entity.hints, key="other", **changes), world.now)


# --- room ------------------------------------------------------------------------------------------


def test_nobody_is_woken_while_nothing_has_changed():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("p", cpu=2)).run()
    assert look(world)
    assert woken(world) == set()


def test_the_highest_in_line_that_could_fit_has_its_turn_and_nobody_else_yet():
    world = a_world().add(a_pod("low", cpu=1), a_pod("high", cpu=2, priority=5), a_pod("huge", cpu=99, priority=9))
    world.run().add(a_node("n0", cpu=3))
    assert look(world)
    assert woken(world) == {"high"}


def test_who_was_woken_has_its_turn_before_anybody_else_is_woken():
    world = a_world().add(a_pod("low", cpu=1), a_pod("high", cpu=2, priority=5)).run().add(a_node("n0", cpu=3))
    look(world)
    assert look(world)
    assert woken(world) == {"high"}


def test_what_is_left_after_one_turn_decides_about_the_next():
    world = a_world().add(a_pod("high", cpu=2, priority=5), a_pod("mid", cpu=2, priority=3), a_pod("low", cpu=1))
    world.run().add(a_node("n0", cpu=3)).run()
    assert set(world.bound()) == {"high", "low"}
    assert attempts(world) == {"mid": 1}, "after the first turn there was no room for it"


def test_of_one_class_as_many_are_woken_as_there_are_seats():
    world = a_world().add(*[a_pod(f"p{i}", created=i) for i in range(5)]).run().add(a_node("n0", cpu=2))
    look(world)
    assert woken(world) == {"p0", "p1"}


def test_no_more_of_a_class_are_woken_than_are_in_line_before_another_class():
    world = a_world().add(a_pod("a0", created=0), a_pod("b", cpu=2, created=1), a_pod("a1", created=2)).run()
    world.add(a_node("n0", cpu=3))
    look(world)
    assert woken(world) == {"a0"}
    world.run()
    assert set(world.bound()) == {"a0", "b"}
    assert attempts(world) == {"a1": 1}


def test_room_that_is_too_small_in_sum_causes_no_attempt():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 3), *pods(3, "g")).run().add(a_node("n1", cpu=1)).run()
    assert attempts(world) == {"g": 1}
    world.add(a_node("n2", cpu=1)).run()
    assert len(world.bound("g")) == 3


def test_what_did_not_help_anybody_is_looked_at_once():
    world = a_world().add(a_pod("p", nodeSelector={"disk": "ssd"})).run().add(a_node("n0"))
    assert look(world)
    state = world.scheduler.state
    (waiting,) = state.queue.waiting
    assert woken(world) == set()
    assert waiting.stamp == state.signals.stamp
    assert not state.signals.pending


@pytest.mark.parametrize(("known", "wakes"), [(True, set()), (False, {"p"})])
def test_a_change_that_the_last_attempt_knew_of_wakes_nobody(known: bool, wakes: set[str]):
    world = a_world().add(a_pod("p")).run().add(a_node("n0"))
    stamp = world.scheduler.state.signals.stamp if known else 0
    waits_with(world, "p", stamp=stamp)
    look(world)
    assert woken(world) == wakes


def test_a_pod_that_leaves_wakes_those_who_do_not_preempt_but_not_those_who_could_have_evicted_it():
    world = a_world([a_node("n0", cpu=3)]).add(a_pod("low", cpu=1, node="n0"), a_pod("stays", node="n0", priority=9))
    world.add(a_gang("g", 3, priority=5), *pods(3, "g", priority=5), a_pod("meek", cpu=2, policy="Never")).run()
    assert world.evicted() == []
    world.remove("Pod", "low")
    look(world)
    assert woken(world) == {"meek"}


def test_who_waits_for_its_own_objects_is_woken_neither_by_nodes_nor_by_pods():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("p", cpu=2, affinity=near(HOSTNAME, app="p"))).run()
    waits_with(world, "p", request=None, requests=None)
    world.add(a_node("n1", cpu=4), a_pod("q", node="n1", labels={"app": "p"}))
    assert look(world)
    assert woken(world) == set()


# --- rules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("app", "tried"), [("db", 2), ("cache", 1)])
def test_a_pod_that_comes_wakes_those_whose_terms_select_it_and_nobody_else(app: str, tried: int):
    world = a_world([a_node("n0", cpu=8)]).add(a_gang("web", 2), *pods(2, "web", affinity=near(HOSTNAME, app="db")))
    web = entity_of(world.run(), "web")
    world.add(a_pod("new", node="n0", labels={"app": app})).run()
    assert web.attempts == tried
    assert bool(world.bound("web")) is (tried == 2)


@pytest.mark.parametrize(("leaver", "wakes"), [("guard", {"web"}), ("other", set())])
def test_the_end_of_a_pod_that_kept_others_away_wakes_them_though_they_have_no_terms(leaver: str, wakes: set[str]):
    world = a_world([a_node("n0", zone="z"), a_node("n1", zone="z", unschedulable=True)])
    world.add(a_pod("guard", node="n1", affinity=apart(ZONE, app="web")))
    world.add(a_pod("other", node="n1", affinity=apart(ZONE, app="db")))
    world.add(a_pod("web", labels={"app": "web"})).run()
    assert world.pending() == ["web"]
    world.remove("Pod", leaver)
    world.scheduler.state.signals.slots.clear()  # the rule alone, not the room
    look(world)
    assert woken(world) == wakes


def test_a_pod_that_can_be_evicted_again_wakes_the_preemptor_whose_term_it_is_in_the_way_of():
    world = a_world([a_node("n0"), a_node("n1", unschedulable=True, cpu=1)])
    world.add(a_pod("there", node="n1", labels={"app": "a"}))
    world.scheduler.state.preemptions.refused("pod-there", world.now)
    world.add(a_pod("p", cpu=2, priority=5, labels={"app": "a"}, affinity=near(HOSTNAME, app="a"))).run()
    assert world.bound() == {"there": "n1"}, "it may be the first of its kind only without the other"

    world.wait(REFUSED_SECONDS)

    assert world.bound() == {"p": "n0"}


def test_a_volume_wakes_who_waits_for_storage_and_nobody_else():
    world = a_world([a_node("n0", cpu=4)]).add(a_class(waits=False), a_claim("data"))
    world.add(using("data", name="p"), a_pod("big", cpu=9)).run()
    assert world.pending() == ["big", "p"]
    world.add(a_volume("pv", claim="data"), a_claim("data", volume="pv")).run()
    assert set(world.bound()) == {"p"}
    assert attempts(world) == {"big": 1}


# --- many classes ----------------------------------------------------------------------------------


def test_too_many_classes_for_one_cycle_are_checked_in_the_next_ones(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wake_up, "MOST_CHECKS", 1)
    world = a_world().add(*[a_pod(f"no-{i}", priority=1, nodeSelector={"disk": f"d{i}"}) for i in range(3)])
    world.add(a_pod("p")).run().add(a_node("n0"))
    assert not look(world)
    assert woken(world) == set()
    world.run()
    assert set(world.bound()) == {"p"}


# --- victims that are only marked ------------------------------------------------------------------


def marking() -> TestWorld:
    """A pod has a victim marked that is not deleted yet."""
    world = a_world([a_node("n0", cpu=2)]).add(a_pod("low", cpu=2, node="n0"), a_pod("high", cpu=2, priority=5))
    world.step()
    assert entity_of(world, "high").state is EntityState.PREEMPTING
    assert world.evicted() == []
    return world


def test_room_that_appears_before_the_deletions_is_taken_instead():
    world = marking().add(a_node("n1", cpu=2))
    wake_up.wake_marking(world.scheduler.state, world.now)
    assert entity_of(world, "high").state is EntityState.ACTIVE
    world.run()
    assert world.bound("high") == {"high": "n1"}
    assert world.evicted() == []


def test_room_that_is_too_small_does_not_delay_the_deletions():
    world = marking().add(a_node("n1", cpu=1))
    wake_up.wake_marking(world.scheduler.state, world.now)
    assert entity_of(world, "high").state is EntityState.PREEMPTING
    assert any(isinstance(one, d.Evict) for one in world.step())


def test_who_waits_for_victims_that_are_deleted_already_is_not_woken_as_one_that_marks():
    world = marking()
    world.slow_victims = True
    world.run()
    assert world.evicted() == ["low"]
    world.add(a_node("n1", cpu=2))
    wake_up.wake_marking(world.scheduler.state, world.now)
    assert entity_of(world, "high").state is EntityState.PREEMPTING


# --- undecided -------------------------------------------------------------------------------------


def undecided(*names: str) -> TestWorld:
    """Pods for which it is not known whether a placement exists."""
    world = a_world([a_node("n0", cpu=2)]).add(*[a_pod(name, cpu=3) for name in names]).run()
    for name in names:
        waits_with(world, name, undecided=True, proven=False)
    return world


def test_in_an_unchanged_cluster_what_is_undecided_is_not_tried_again():
    assert attempts(undecided("p").wait(3 * FALLBACK_SECONDS)) == {"p": 1}


def test_lost_room_has_what_is_undecided_tried_again():
    world = undecided("p").add(a_pod("other", node="n0")).wait(UNDECIDED_SECONDS)
    assert attempts(world) == {"p": 2}
    assert not entity_of(world, "p").hints.undecided


def test_of_what_is_undecided_alike_only_the_first_is_tried_again():
    world = undecided("p", "q").add(a_pod("other", node="n0")).wait(UNDECIDED_SECONDS)
    assert sorted(attempts(world).values()) == [1, 2]


def test_what_stays_undecided_is_tried_ever_more_rarely_while_the_cluster_changes():
    world, tried = undecided("p"), list[float]()
    for second in range(300):
        before = attempts(world)["p"]
        world.add(a_node("n0", cpu=2, labels={"second": str(second)})).wait(1)
        if attempts(world)["p"] > before:
            tried.append(world.now)
            waits_with(world, "p", undecided=True, proven=False)
    pauses = [after - before for before, after in pairwise(tried)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == UNDECIDED_SECONDS


def test_room_for_what_is_undecided_is_taken_at_once_whatever_its_pause():
    world = undecided("p")
    entity_of(world, "p").failures = 10
    assert world.add(a_node("n1", cpu=3)).run().bound() == {"p": "n1"}
    assert world.scheduler.take_missed() == 0


# --- the fallback ----------------------------------------------------------------------------------


def unsignalled(world: TestWorld, cpu: int) -> TestWorld:
    """A node comes, and by a fault nobody is told."""
    world.add(a_node("new", cpu=cpu)).scheduler.state.signals.clear()
    return world


def test_who_was_missed_is_found_by_the_timer_and_counted():
    world = unsignalled(a_world().add(a_pod("p", cpu=2)).run(), cpu=2)
    world.wait(FALLBACK_SECONDS - 1)
    assert world.pending() == ["p"]
    world.wait(2)
    assert world.bound() == {"p": "new"}
    assert world.scheduler.take_missed() == 1


def test_the_timer_tries_nobody_whom_the_check_rejects():
    world = unsignalled(a_world().add(a_pod("p", cpu=2)).run(), cpu=1)
    world.wait(3 * FALLBACK_SECONDS)
    assert attempts(world) == {"p": 1}


def test_the_timer_goes_on_in_the_next_cycle_with_what_is_too_much_for_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wake_up, "MOST_CHECKS", 1)
    world = a_world().add(*[a_pod(f"p{i}", cpu=90 + i) for i in range(3)], a_pod("last", cpu=2, created=9)).run()
    unsignalled(world, cpu=2)
    world.now = FALLBACK_SECONDS
    world.scheduler.state.queue.start_fallback(world.now)
    assert not look(world)
    world.run()
    assert world.bound() == {"last": "new"}
