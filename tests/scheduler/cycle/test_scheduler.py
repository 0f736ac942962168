"""The scheduler as a whole: the order of entities, and decisions that do not depend on the order of events."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from muster.scheduler.cycle import scheduler as module
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface.events import CacheSynced, ObjectUpdated
from muster.scheduler.runtime.config import default_config
from tests.build.examples import examples
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


def test_the_queue_orders_by_priority_then_age_then_uid():
    world = a_world()
    world.add(a_pod("b", created=1), a_pod("a", created=2), a_pod("top", priority=5, created=9))
    assert [root.key.name for root in world.scheduler.view().queue()] == ["top", "b", "a"]


def test_a_thousand_delivery_orders_of_one_backlog_give_the_same_decisions():
    things: list[Any] = [a_node(f"n{i}", cpu=3, rack=f"r{i % 2}") for i in range(4)]
    things += [a_gang("a", 3, topology=RACK), a_gang("b", 2), *pods(3, "a"), *pods(4, "b"), *pods(3, name="solo")]
    things += [a_composite("top", 2), a_gang("x", 1, parent="top"), a_gang("y", 2, parent="top"), *pods(2, "y")]

    def decisions_of(seed: int) -> bytes:
        order = list(things)
        random.Random(seed).shuffle(order)
        return msgspec.json.encode(a_world().add(*order).run().log)

    first = decisions_of(0)
    assert all(decisions_of(seed) == first for seed in range(1, examples(1000)))


def test_nothing_is_decided_before_the_first_lists_are_complete():
    scheduler = Scheduler(default_config())
    scheduler.handle(ObjectUpdated("Node", a_node("n0")), 0.0)
    scheduler.handle(ObjectUpdated("Pod", a_pod("p")), 0.0)
    assert (scheduler.next(0.0), scheduler.wake_at(0.0)) == ([], None)
    scheduler.handle(CacheSynced(), 0.0)
    assert scheduler.wake_at(0.0) == 0.0
    assert [type(each) for each in scheduler.next(0.0)] == [d.Bind]


def test_the_next_cycle_is_due_now_while_something_is_in_line_and_else_when_a_timer_runs_out():
    world = a_world([a_node("n0", cpu=1)])
    assert world.scheduler.wake_at(0.0) is None
    world.add(a_pod("big", cpu=2))
    assert world.scheduler.wake_at(0.0) == 0.0
    world.run()
    assert world.scheduler.wake_at(0.0) == 60.0


def test_alike_pods_are_placed_in_one_cycle_on_the_nodes_they_would_get_one_by_one():
    nodes = [a_node(f"n{i}", cpu=i + 1) for i in range(3)]
    together = a_world(nodes).add(*pods(5))
    binds = [each for each in together.scheduler.next(0.0) if isinstance(each, d.Bind)]
    one_by_one = a_world(nodes)
    for pod in pods(5):
        one_by_one.add(pod).run()
    assert {bind.pod.name: bind.node for bind in binds} == one_by_one.bound()


def test_of_alike_pods_those_without_room_are_tried_one_by_one():
    world = a_world([a_node("n0", cpu=2)]).add(*pods(4))
    decisions = world.scheduler.next(0.0)
    assert len([each for each in decisions if isinstance(each, d.Bind)]) == 2
    assert [each.about.name for each in decisions if isinstance(each, d.SetCondition)] == ["pod-2", "pod-3"]


def test_a_pass_that_the_checker_refuses_is_done_one_by_one(monkeypatch: pytest.MonkeyPatch):
    world = a_world([a_node("n0", cpu=2)]).add(*pods(2))
    monkeypatch.setattr(module, "validate", lambda *args, **more: "wrong")
    binds = [each for each in world.scheduler.next(0.0) if isinstance(each, d.Bind)]
    assert len(binds) == 2


def test_pods_of_another_shape_or_of_a_group_end_a_pass():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_pod("a", created=1), a_pod("b", created=2), a_pod("other", cpu=2, created=3), a_pod("c", created=4))
    first = world.scheduler.next(0.0)
    assert [each.pod.name for each in first if isinstance(each, d.Bind)] == ["a", "b"]
    second = world.scheduler.next(0.0)
    assert [each.pod.name for each in second if isinstance(each, d.Bind)] == ["other"]


def test_attempts_without_a_decision_are_followed_by_others_in_the_same_cycle():
    world = a_world([a_node("n0", cpu=1)]).add(*pods(3, name="big", cpu=2)).run()
    for entity in list(world.scheduler.state.queue.entities.values()):
        world.scheduler.state.queue.activate(entity)
    assert world.scheduler.next(0.0) == []
    assert world.scheduler.state.queue.peek() is None


def test_events_are_taken_in_between_when_many_attempts_decide_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST_SILENT_ATTEMPTS", 2)
    monkeypatch.setattr(module, "MOST_IN_ONE_PASS", 1)
    world = a_world([a_node("n0", cpu=1)]).add(*pods(3, name="big", cpu=2)).run()
    for entity in list(world.scheduler.state.queue.entities.values()):
        world.scheduler.state.queue.activate(entity)
    assert world.scheduler.next(0.0) == []
    assert world.scheduler.wake_at(0.0) == 0.0


def test_pending_pods_are_counted_whatever_holds_them():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("runs", node="n0"), a_pod("waits"), a_gang("g", 2), *pods(1, "g"))
    assert world.scheduler.pending() == 2
