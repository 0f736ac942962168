"""The scheduler as a whole: the order of entities, and decisions that do not depend on the order of events."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from tests.build.examples import examples
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


def test_the_queue_orders_by_priority_then_age_then_uid():
    world = a_world()
    world.add(a_pod("b", created=1), a_pod("a", created=2), a_pod("top", priority=5, created=9))
    assert [root.key.name for root in world.brain.view().queue()] == ["top", "b", "a"]


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
