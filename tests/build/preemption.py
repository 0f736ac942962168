"""Running pods of low priority, and the parts of preemption over them."""

from __future__ import annotations

import random
from typing import Any

from muster.api import types
from muster.scheduler.framework.shape import Shape
from muster.scheduler.preemption.cost import EvictionCost
from muster.scheduler.preemption.supply import CountableShape, NodeSupply, countable
from muster.scheduler.preemption.victim_table import Victim
from muster.scheduler.preemption.victims import possible_victims, quorums
from tests.build.objects import a_budget, a_composite, a_gang, a_node, a_pod
from tests.build.scheduler import TestWorld, a_world

HIGH, LOW = 100, 10


def with_lows(world: TestWorld, *where: tuple[str, str, int | str], **fields: Any) -> TestWorld:
    """Low priority pods: name, node, cpu."""
    return world.add(*[a_pod(name, cpu=cpu, node=node, **({"priority": LOW} | fields)) for name, node, cpu in where])


def a_tree(
    world: TestWorld, top: str, leaf: str = "single", name: str = "t", priority: int = LOW, **labels: Any
) -> None:
    """A running tree of two gangs with the disruption modes `top` and `leaf`: one pod on n0, two on n1."""
    world.add(a_composite(name, 2, mode=top, priority=priority))
    for child in ("a", "b"):
        world.add(a_gang(f"{name}-{child}", 1, parent=name, mode=leaf, priority=priority))
    world.add(a_pod(f"{name}-a-0", f"{name}-a", priority=priority, node="n0", **labels))
    world.add(*[a_pod(f"{name}-b-{i}", f"{name}-b", priority=priority, node="n1", **labels) for i in range(2)])
    world.run()


class Evictions:
    """The victims of a world below a priority, with their cost and what they free."""

    def __init__(self, world: TestWorld, below: int = HIGH, **options: Any) -> None:
        self.state = world.scheduler.state
        found = possible_victims(self.state.forest, self.state.cluster, below, **options)
        self.quorums = quorums(found)
        self.budgets = list(self.state.budgets.values())
        pods = self.state.cluster.pods
        self.cost = EvictionCost(found, self.budgets, self.quorums, lambda uid: pods[uid].pod)
        self.victims, self.costs = self.cost.cheapest_first(found)

    def victim(self, name: str) -> Victim:
        return next(victim for victim in self.victims if victim.key.name == name)

    def number(self, name: str) -> int:
        return self.victims.index(self.victim(name))

    def shape(self, pod: types.Pod) -> Shape:
        return self.state.evaluator.shape(pod, self.state.config.profiles["default-scheduler"])

    def countable(self, pod: types.Pod) -> CountableShape | None:
        pods = [self.state.cluster.pods[uid].pod for victim in self.victims for uid in victim.uids]
        return countable(self.state.evaluator, self.shape(pod), pods)

    def supply(self, *shapes: CountableShape) -> NodeSupply:
        return NodeSupply(self.state.cluster, shapes, self.victims, self.costs, self.cost)


def a_mixed_world(rng: random.Random, *, budgets: bool = False) -> TestWorld:
    """Single pods, gangs that lose members one by one and gangs that leave as a whole, on six nodes."""
    world = a_world([a_node(f"n{at}", cpu=12) for at in range(6)])
    for number in range(rng.randint(3, 8)):
        size, priority = rng.randint(1, 4), rng.choice((LOW, LOW + 1))
        if rng.random() < 0.7:
            mode = rng.choice(("single", "all"))
            world.add(a_gang(f"g{number}", rng.randint(1, size), priority=priority, mode=mode))
        else:
            number += 100
        for member in range(size):
            group = f"g{number}" if number < 100 else None
            node, cpu = f"n{rng.randrange(6)}", rng.randint(1, 3)
            labels = {"app": rng.choice(("db", "web"))}
            world.add(
                a_pod(
                    f"p{number}-{member}",
                    group,
                    cpu=cpu,
                    priority=priority,
                    node=node,
                    created=rng.randrange(90),
                    labels=labels,
                )
            )
    if budgets:
        world.add(a_budget("db", rng.randint(0, 2), app="db"))
    return world
