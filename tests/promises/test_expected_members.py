"""All or nothing with members that do not exist yet, against brute force.

A leader exists, its workers come later, one by one, or never. Pods of others come and go, some of a higher priority,
nodes too, binds are refused, the scheduler restarts, time passes. Always: when the first member of a gang is bound, a
placement for all of them exists at that moment; at rest a gang that fits as a whole, beside the seats held for others,
has started; and the seats of those to come are held, for as long as they are to be and if there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api import quantity
from muster.scheduler.interface import decisions as d
from muster.scheduler.queue.entity import EntityState
from tests.build.examples import examples
from tests.build.objects import RACK, a_gang, a_node, a_pod, expects_all
from tests.build.scheduler import TestWorld, a_world

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
GROUPS = ("red", "green")
HOLD = 300.0
SHAPES = st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(2, 4), st.booleans())  # leader, worker, size, rack
NO_RESERVATIONS = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"pluginConfig": [{"name": "Muster", "args": {"reservations": {"enabled": False}}}]}],
}


class Gang:
    """A leader and workers, of which some were created, and when the last was created or bound."""

    def __init__(self, leader: int, worker: int, size: int, rack: bool) -> None:
        self.sizes = [leader, *[worker] * (size - 1)]
        self.rack = rack
        self.created: list[int] = []  # members, by index
        self.last_created = self.last_bound = NEW_YEAR


class Life:
    """A cluster with two gangs, and what happens to it. `choice` is any number; it picks among what there is."""

    def __init__(self, nodes: int, seed: int, gangs: Sequence[tuple[int, int, int, bool]]) -> None:
        self.count = 0
        self.gangs: dict[str, Gang] = {}
        self.world: TestWorld = a_world(seed=seed, config=NO_RESERVATIONS)
        self.world.now = NEW_YEAR
        for i in range(nodes):
            self.world.add(a_node(f"n{i}", cpu=3, rack=f"r{i % 2}"))
        for name, (leader, worker, size, rack) in zip(GROUPS, gangs, strict=True):
            self.gangs[name] = Gang(leader, worker, size, rack)
            templates = expects_all((1, a_pod(cpu=leader), "created"), (size - 1, a_pod(cpu=worker), "ready"))
            self.world.add(a_gang(name, size, expects=templates, topology=RACK if rack else None))

    def _name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"

    def create_member(self, choice: int) -> None:
        name = GROUPS[choice % 2]
        gang = self.gangs[name]
        if len(gang.created) == len(gang.sizes):
            return
        index = next(i for i in range(len(gang.sizes)) if i not in gang.created)
        gang.created.append(index)
        gang.last_created = self.world.now
        seconds = int(self.world.now - NEW_YEAR)
        self.world.add(a_pod(f"{name}-{index}", name, cpu=gang.sizes[index], created=seconds))

    def remove_gang_pods(self, choice: int) -> None:
        gang = self.gangs[GROUPS[choice % 2]]
        for index in gang.created:
            self.world.remove("Pod", f"{GROUPS[choice % 2]}-{index}")
        gang.created = []

    def create_single(self, choice: int) -> None:
        priority = 5 if choice % 3 == 0 else 0
        self.world.add(a_pod(self._name("solo"), cpu=1 + choice % 2, priority=priority, policy="Never"))

    def remove_single(self, choice: int) -> None:
        names = sorted(name for (kind, _, name) in self.world.objects if kind == "Pod" and name.startswith("solo"))
        if names:
            self.world.remove("Pod", names[choice % len(names)])

    def add_node(self, choice: int) -> None:
        if len(self._nodes()) < 4:
            self.world.add(a_node(self._name("extra"), cpu=2, rack=f"r{choice % 2}"))

    def remove_empty_node(self, choice: int) -> None:
        empty = sorted(set(self._nodes()) - set(self.world.bound().values()))
        if empty:
            self.world.remove("Node", empty[choice % len(empty)])

    def refuse_a_bind(self, choice: int) -> None:
        name = GROUPS[choice % 2]
        self.world.refuse_binds.update(f"{name}-{i}" for i in range(4) if i not in self.gangs[name].created)

    def time_passes(self, choice: int) -> None:
        end = self.world.now + (1.0, 100.0, 200.0, 299.0, 301.0)[choice % 5]
        while (due := self.world.scheduler.wake_at(self.world.now)) is not None and due <= end:
            self.world.now = max(self.world.now + 0.001, due)
            self._run()
        self.world.now = end

    def restart(self, choice: int) -> None:
        self.world.restart()

    # --- what must hold ----------------------------------------------------------------------------

    def check(self) -> None:
        """Come to rest, refused binds included, and look at both gangs."""
        self._run()
        for _ in range(20):
            states = {entity.state for entity in self.world.scheduler.state.queue.entities.values()}
            if EntityState.BACKOFF not in states:
                break
            self.world.now += 1
            self._run()
        for name, gang in self.gangs.items():
            self._check_gang(name, gang)

    def _run(self) -> None:
        """Run until nothing is left to do, looking at every cycle that starts a gang."""
        for _ in range(1000):
            free = {name: self._free(name) for name in self.gangs}
            bound = {name: len(self.world.bound(name)) for name in self.gangs}
            decisions = self.world.step()
            for name, gang in self.gangs.items():
                begun = any(isinstance(one, d.Bind) and one.pod.name.startswith(name) for one in decisions)
                if begun:
                    gang.last_bound = self.world.now
                if begun and bound[name] == 0:
                    assert self._fits(gang, gang.sizes, free[name]), f"{name} starts without room for all"
            if not decisions and self.world.scheduler.is_idle(self.world.now):
                return
        raise AssertionError("the scheduler does not come to rest")

    def _check_gang(self, name: str, gang: Gang) -> None:
        bound = sorted(int(pod.rsplit("-", 1)[1]) for pod in self.world.bound(name))
        pending = [index for index in gang.created if index not in bound]
        lacking = [index for index in range(len(gang.sizes)) if index not in gang.created]
        seats = self._held(name)
        if not gang.created:
            assert seats == []
            return
        rest = [gang.sizes[index] for index in (*pending, *lacking)]
        racks = {self.world.domain(f"{name}-{index}") for index in bound} if gang.rack else set()
        assert len(racks) <= 1, f"{name} lies in {racks}"
        fits = self._fits(gang, rest, self._free(name), racks)
        if pending:
            assert not fits, f"{name} waits although there is room for all: {bound} {pending} {lacking}"
        elif lacking and self.world.now < int(gang.last_created) + HOLD:
            held = sorted(size for _, size in seats)
            assert held == sorted(rest) or (not seats and not fits), f"{name}: {seats} for {rest}"
        if self.world.now >= max(gang.last_created, gang.last_bound) + HOLD:
            assert seats == [], f"{name}: {seats} are held for too long"
        self._check_room(name, seats)

    def _check_room(self, name: str, seats: list[tuple[str, int]]) -> None:
        free = dict(self._free(name))
        for node, size in seats:
            free[node] = free.get(node, 0) - size
        assert not seats or min(free.values()) >= 0, f"{name}: the held seats {seats} do not exist"

    # --- counting ----------------------------------------------------------------------------------

    def _nodes(self) -> dict[str, str]:
        """Nodes and their racks."""
        return {
            name: obj.metadata.labels[RACK] for (kind, _, name), obj in self.world.objects.items() if kind == "Node"
        }

    def _held(self, name: str) -> list[tuple[str, int]]:
        nominations = self.world.scheduler.state.nominations
        return [
            (one.node, one.shape.amounts["cpu"] // 1000)
            for key in nominations.holding()
            if key.name == name
            for one in nominations.held(key)
        ]

    def _free(self, name: str) -> dict[str, int]:
        """What is free on each node for a gang: without what runs, and without the seats held for others."""
        free: dict[str, int] = {}
        for node in self._nodes():
            free[node] = quantity.milli(self.world.get("Node", node).status.allocatable["cpu"]) // 1000
        for (kind, _, _), obj in self.world.objects.items():
            if kind == "Pod" and obj.spec.node_name in free:
                free[obj.spec.node_name] -= int(obj.spec.containers[0].resources.requests["cpu"])
        for other in self.gangs:
            for node, size in self._held(other) if other != name else ():
                if node in free:
                    free[node] -= size
        return free

    def _fits(self, gang: Gang, sizes: Sequence[int], free: dict[str, int], racks: set[str] | None = None) -> bool:
        if not gang.rack:
            return _packs(sorted(sizes, reverse=True), list(free.values()))
        nodes = self._nodes()
        domains = racks or set(nodes.values())
        return any(
            _packs(sorted(sizes, reverse=True), [free[node] for node in nodes if nodes[node] == rack])
            for rack in domains
        )


def _packs(sizes: Sequence[int], free: list[int]) -> bool:
    if not sizes:
        return True
    for at, room in enumerate(free):
        if room >= sizes[0] and _packs(sizes[1:], [*free[:at], room - sizes[0], *free[at + 1 :]]):
            return True
    return False


MOVES = (
    *(Life.create_member,) * 8,
    *(Life.create_single,) * 3,
    *(Life.time_passes,) * 3,
    *(Life.remove_single,) * 2,
    *(Life.restart,) * 2,
    Life.add_node,
    Life.remove_empty_node,
    Life.refuse_a_bind,
    Life.remove_gang_pods,
)


@given(
    st.integers(2, 3),
    st.integers(0, 5),
    st.tuples(SHAPES, SHAPES),
    st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 59)), min_size=8, max_size=20),
)
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_gang_starts_with_room_for_all_and_their_seats_are_held(nodes: int, seed: int, gangs: Any, moves: Any):
    life = Life(nodes, seed, gangs)
    for move, choice in moves:
        move(life, choice)
        life.check()
    assert set(life.gangs) == set(GROUPS)


# A member whose bind was refused lost its seat to a single pod, and waits beside the seat held for another.
LOST_A_SEAT = (
    (Life.create_member, 0),
    (Life.create_member, 0),
    (Life.create_member, 1),
    (Life.add_node, 0),
    (Life.refuse_a_bind, 1),
    (Life.create_single, 1),
    (Life.create_member, 1),
)


def a_life_that_lost_a_seat() -> Life:
    life = Life(2, 0, ((1, 1, 2, False), (1, 2, 3, False)))
    for move, choice in LOST_A_SEAT:
        move(life, choice)
        life.check()
    assert [size for _, size in life._held("green")] == [2]
    return life


def test_the_seats_held_for_its_own_members_do_not_keep_a_gang_from_room_that_appears():
    life = a_life_that_lost_a_seat()
    life.add_node(0)
    life.check()
    assert set(life.world.bound("green")) == {"green-0", "green-1"}


def test_a_held_seat_that_a_higher_priority_took_is_given_back_although_a_member_is_pending():
    life = a_life_that_lost_a_seat()
    life.create_single(0)
    life.check()
    assert life._held("green") == []
