"""Wake-ups: one event on a full cluster of 100 nodes where thousands wait; how many are tried, and what it costs.

Each row has an event that helps nobody and one that helps exactly one of those that wait. At most 2 attempts and 20 ms
of the processor an event; and 20,000 that wait cost less than 1 % of a core while nothing happens.
`python -m bench.wakeups`.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bench.figures import Figure
from bench.guard import GuardedWork
from bench.objects import a_composite, a_gang, a_node, a_pod
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import BindSucceeded, CacheSynced, Event, ObjectDeleted, ObjectUpdated
from muster.scheduler.runtime.config import default_config

NODES, PER_RACK, CPUS = 100, 20, 8
RACK = "example.com/rack"
MOST_MS, MOST_ATTEMPTS = 20.0, 2
IDLE_SECONDS = 600.0
GUARDED_COUNT = 30  # of each crowd, in the quick form
MOST_IDLE_SHARE = 1.0  # percent of a core


class Crowd(NamedTuple):
    """What waits, and how much room on one new node lets exactly one of it in."""

    name: str
    events: Callable[[int], list[Event]]
    count: int
    room: str  # cpu


def pod(name: str, cpu: str, **fields: Any) -> Event:
    return ObjectUpdated("Pod", a_pod(name, cpu, "1Gi", **fields))


def two_shape_gangs(count: int) -> list[Event]:
    """Two pods of 1 cpu and two of 2."""
    found: list[Event] = []
    for number in range(count):
        name = f"g{number:05d}"
        found.append(ObjectUpdated("PodGroup", a_gang(name, 4)))
        found += [pod(f"{name}-{i}", str(1 + i % 2), group=name) for i in range(4)]
    return found


def different_gangs(count: int) -> list[Event]:
    """The same, but no two gangs request the same."""
    found: list[Event] = []
    for number in range(count):
        name = f"g{number:05d}"
        found.append(ObjectUpdated("PodGroup", a_gang(name, 4)))
        found += [pod(f"{name}-{i}", f"{(1 + i % 2) * 1000 - number % 900}m", group=name) for i in range(4)]
    return found


def trees(count: int) -> list[Event]:
    """Two children of two pods, each child in one rack."""
    found: list[Event] = []
    for number in range(count):
        name = f"t{number:05d}"
        found.append(ObjectUpdated("CompositePodGroup", a_composite(name, 2)))
        for child in (f"{name}-a", f"{name}-b"):
            gang = a_gang(child, 2, topology=RACK, parentCompositePodGroupName=name)
            found.append(ObjectUpdated("PodGroup", gang))
            found += [pod(f"{child}-{i}", "1", group=child) for i in range(2)]
    return found


def spread_pods(count: int) -> list[Event]:
    """Pods of one application that is spread over racks; rack 0 has one of it more than the others already."""
    rule = {"maxSkew": 1, "topologyKey": RACK, "whenUnsatisfiable": "DoNotSchedule"}
    spread = [rule | {"labelSelector": {"matchLabels": {"app": "web"}}}]
    labels = {"app": "web"}
    return [pod(f"w{i:05d}", "1", labels=labels, topologySpreadConstraints=spread) for i in range(count)]


def one_shape(count: int) -> list[Event]:
    return [pod(f"p{i:05d}", "2") for i in range(count)]


def many_shapes(count: int) -> list[Event]:
    return [pod(f"p{i:05d}", f"{1001 + i % 2000}m") for i in range(count)]


CROWDS = (
    Crowd("two-shape gangs", two_shape_gangs, 2000, "6"),
    Crowd("two-shape gangs, no two alike", different_gangs, 2000, "6"),
    Crowd("trees of two rack children", trees, 2000, "4"),
    Crowd("spread pods", spread_pods, 2000, "1"),
    Crowd("pods of one shape", one_shape, 20_000, "2"),
    Crowd("pods of 2,000 shapes", many_shapes, 20_000, "2001m"),
)


class FullCluster:
    """Nodes without a free cpu, and a crowd that waits; all of it was tried once."""

    def __init__(self, crowd: Crowd, count: int) -> None:
        self.scheduler = Scheduler(default_config())
        self.now = 1.0
        for number in range(NODES):
            rack = f"r{number // PER_RACK}"
            self.handle(ObjectUpdated("Node", a_node(f"n{number}", str(CPUS), labels={RACK: rack}, uid=f"n{number}")))
            for i in range(CPUS):
                # One pod of the spread application runs on the first node, where the first event makes room.
                labels = {"app": "web"} if number == 0 and i == 1 else None
                self.handle(pod(f"old-{number}-{i}", "1", node=f"n{number}", labels=labels))
        for event in crowd.events(count):
            self.handle(event)
        self.handle(CacheSynced())
        self.settle()
        self.waiting = list(self.scheduler.state.queue.entities.values())
        assert len(self.waiting) == count, f"{len(self.waiting)} of {count} wait"

    def handle(self, event: Event) -> None:
        self.scheduler.handle(event, self.now)

    def settle(self) -> int:
        """Cycles until nothing is left to do; how many entities were bound."""
        bound = 0
        while True:
            decisions = self.scheduler.next(self.now)
            for bind in decisions:
                if isinstance(bind, Bind):
                    bound += 1
                    self.handle(BindSucceeded(bind.pod.uid, bind.node))
            if not decisions and self.scheduler.is_idle(self.now):
                return bound

    def after(self, event: Event) -> tuple[int, int, float]:
        """Attempts, binds and milliseconds that an event causes."""
        self.now += 5.0  # no burst: a backoff is not what is measured
        before = sum(entity.attempts for entity in self.waiting)
        began = time.process_time()
        self.handle(event)
        bound = self.settle()
        took = time.process_time() - began
        return sum(entity.attempts for entity in self.waiting) - before, bound, took * 1000

    def idle_share(self) -> float:
        """Percent of a core while nothing happens."""
        end, spent = self.now + IDLE_SECONDS, 0.0
        while (due := self.scheduler.wake_at(self.now)) is not None and due <= end:
            self.now = max(due, self.now)
            began = time.process_time()
            self.settle()
            spent += time.process_time() - began
        self.now = end
        return spent / IDLE_SECONDS * 100


def helps_nobody(number: int) -> Event:
    """A pod of one cpu leaves the first node."""
    return ObjectDeleted("Pod", "ns", f"old-0-{number}", f"old-0-{number}")


def helps_one(crowd: Crowd) -> Event:
    return ObjectUpdated("Node", a_node("extra", crowd.room, labels={RACK: "r4"}, uid="extra"))


def figures() -> Iterator[Figure]:
    for crowd in CROWDS:
        gc.collect()
        cluster = FullCluster(crowd, crowd.count)
        gc.collect()
        gc.freeze()
        rows = [("one event that helps nobody", cluster.after(helps_nobody(0)))]
        rows.append(("one event that helps one", cluster.after(helps_one(crowd))))
        for what, (attempts, bound, took) in rows:
            name = f"{crowd.count:,} {crowd.name}: {what}"
            yield Figure(f"{name}, attempts", attempts, "", ceiling=MOST_ATTEMPTS, note=f"{bound} pods bound")
            yield Figure(f"{name}", took, "ms", ceiling=MOST_MS)
        if crowd.count >= 20_000:
            share = cluster.idle_share()
            yield Figure(f"{crowd.count:,} {crowd.name}: idle", share, "% of a core", ceiling=MOST_IDLE_SHARE)
        gc.unfreeze()


def _one_event(event: Callable[[Crowd], Event]) -> Callable[[], Callable[[], Counter[str]]]:
    """The same event for a small crowd of each kind, each in a cluster of its own; counts the attempts of each."""

    def prepare() -> Callable[[], Counter[str]]:
        clusters = [(crowd, FullCluster(crowd, GUARDED_COUNT)) for crowd in CROWDS]

        def work() -> Counter[str]:
            found: Counter[str] = Counter()
            for crowd, cluster in clusters:
                attempts, bound, _ = cluster.after(event(crowd))
                found[f"{crowd.name}: attempts"] = attempts
                found[f"{crowd.name}: bound"] = bound
            return found

        return work

    return prepare


def guarded() -> Iterator[GuardedWork]:
    size = f"wake-ups: {GUARDED_COUNT} of each kind"
    yield GuardedWork(f"{size}, an event that helps nobody", _one_event(lambda _: helps_nobody(0)))
    yield GuardedWork(f"{size}, an event that helps one", _one_event(helps_one))


if __name__ == "__main__":
    for each in figures():
        print(each, flush=True)
