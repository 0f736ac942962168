"""Small random clusters for preemption.

A case is plain data: nodes with cpu and a rack, groups of running pods (alone, gangs, trees, evicted one by one or
as a whole), budgets, and a preemptor all of whose pods must be placed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.build.objects import RACK, a_budget, a_composite, a_gang, a_node, a_pod
from tests.build.scheduler import TestWorld, a_world

HIGH = 100


@dataclass
class Running:
    """One pod that runs."""

    name: str
    node: int
    cpu: int
    priority: int
    start: int
    leaf: str | None = None
    budget: int | None = None


@dataclass
class Group:
    """A running group: its own name, its parent's, how it is disrupted."""

    name: str
    minimum: int
    mode: str
    priority: int
    parent: str | None = None
    composite: bool = False


@dataclass
class Case:
    nodes: list[tuple[int, str]] = field(default_factory=list)  # cpu, rack
    pods: list[Running] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    budgets: list[int] = field(default_factory=list)  # disruptions allowed
    leaves: list[tuple[int, int, bool]] = field(default_factory=list)  # the preemptor: pods, cpu, inside one rack
    tree_rack: bool = False
    tree: bool = False

    def world(self) -> TestWorld:
        world = a_world([a_node(f"n{i}", cpu=cpu, rack=rack) for i, (cpu, rack) in enumerate(self.nodes)])
        for group in self.groups:
            fields: dict[str, Any] = {"mode": group.mode, "priority": group.priority, "parent": group.parent}
            make = a_composite if group.composite else a_gang
            world.add(make(group.name, group.minimum, **fields))
        for number, allowed in enumerate(self.budgets):
            world.add(a_budget(f"budget-{number}", allowed, budget=str(number)))
        for pod in self.pods:
            labels = {"budget": str(pod.budget)} if pod.budget is not None else {}
            fields = {"priority": pod.priority, "created": pod.start, "node": f"n{pod.node}", "labels": labels}
            world.add(a_pod(pod.name, pod.leaf, pod.cpu, **fields))
        return world.run()

    def submit(self, world: TestWorld) -> None:
        topology = {"topology": RACK} if self.tree_rack else {}
        if self.tree:
            world.add(a_composite("vip", len(self.leaves), priority=HIGH, created=9000, **topology))
        for number, (count, cpu, rack) in enumerate(self.leaves):
            fields: dict[str, Any] = {"priority": HIGH, "created": 9000}
            fields |= {"topology": RACK} if rack else {}
            fields |= {"parent": "vip"} if self.tree else {}
            world.add(a_gang(f"vip-{number}", count, **fields))
            world.add(*[a_pod(f"vip-{number}-{i}", f"vip-{number}", cpu, priority=HIGH) for i in range(count)])

    def units(self) -> list[frozenset[str]]:
        """The sets of pods that can only be evicted together."""
        by_name = {group.name: group for group in self.groups}
        found: dict[str, set[str]] = {}
        for pod in self.pods:
            if pod.priority >= HIGH:
                continue
            key, at = f"pod/{pod.name}", by_name.get(pod.leaf or "")
            while at is not None:
                if at.mode == "all":
                    key = f"group/{at.name}"
                at = by_name.get(at.parent or "")
            found.setdefault(key, set()).add(pod.name)
        return [frozenset(names) for names in found.values()]


# --- random cases ----------------------------------------------------------------------------------


@st.composite
def cases(draw: Any, most_units: int = 9) -> Case:
    case = Case()
    count = draw(st.integers(2, 5))
    case.nodes = [(draw(st.integers(1, 4)), f"r{draw(st.integers(0, 1))}") for _ in range(count)]
    case.budgets = draw(st.lists(st.integers(0, 2), max_size=2))
    free = [cpu for cpu, _ in case.nodes]
    for number in range(draw(st.integers(1, 5))):
        _a_tenant(draw, case, number, free)
        if len(case.units()) >= most_units:
            break
    case.tree = draw(st.booleans())
    case.tree_rack = case.tree and draw(st.booleans())
    for _ in range(2 if case.tree else 1):
        case.leaves.append((draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.booleans())))
    return case


def _a_tenant(draw: Any, case: Case, number: int, free: list[int]) -> None:
    """One plain pod, one gang, or one tree of two gangs, as far as there is room."""
    kind = draw(st.sampled_from(["pod", "pod", "gang", "tree"]))
    priority = draw(st.sampled_from([10, 10, 20, 200]))
    mode = draw(st.sampled_from(["single", "all"]))
    leaves: list[str | None] = [None]
    if kind != "pod":
        parent = f"t{number}" if kind == "tree" else None
        leaves = [f"g{number}-{i}" for i in range(2 if kind == "tree" else 1)]
        if parent is not None:
            case.groups.append(Group(parent, draw(st.integers(1, 2)), mode, priority, composite=True))
        for leaf in leaves:
            own = "all" if parent is not None and mode == "all" else draw(st.sampled_from(["single", "all"]))
            case.groups.append(Group(str(leaf), draw(st.integers(1, 2)), own, priority, parent))
    for leaf in leaves:
        for _ in range(1 if leaf is None else draw(st.integers(1, 2))):
            cpu = draw(st.integers(1, 2))
            room = [i for i, left in enumerate(free) if left >= cpu]
            if not room:
                continue
            node = draw(st.sampled_from(room))
            free[node] -= cpu
            budget = draw(st.sampled_from([None, *range(len(case.budgets))]))
            name = f"p{len(case.pods)}"
            case.pods.append(Running(name, node, cpu, priority, draw(st.integers(0, 5)), leaf, budget))
