"""Whole turns of the scheduler: groups from the queue to their binds, on 5,000 nodes in racks of 100.

Unlike `gangs`, which plans requests that are ready made, this goes through `Scheduler.handle` and `Scheduler.next`: the
forest, the queue, the plan, its check, the assumed pods and the decisions. Time is that of the processor, so that
neighbours on the machine do not count. `python -m bench.cycle`.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.figures import Figure
from bench.gangs import NODES, PER_RACK, RACK
from bench.guard import GuardedWork
from bench.objects import a_composite, a_gang, a_node, a_pod
from muster.engine.settings import GC_THRESHOLDS
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.groups.group import Group
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import BindSucceeded, CacheSynced, Event, ObjectUpdated
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.runtime.config import default_config


def node_added(number: int) -> ObjectUpdated:
    return ObjectUpdated("Node", a_node(f"n{number}", labels={RACK: f"r{number // PER_RACK}"}, uid=f"n{number}"))


def pod_changed(name: str, group: str | None, node: str = "") -> ObjectUpdated:
    return ObjectUpdated("Pod", a_pod(name, "100m", "128Mi", group=group, node=node))


def gangs(count: int, size: int, topology: str | None) -> list[Event]:
    """Groups with their members, in the order in which they would be created."""
    found: list[Event] = []
    for number in range(count):
        found.append(ObjectUpdated("PodGroup", a_gang(f"g{number}", size, topology=topology)))
        found += [pod_changed(f"g{number}-{index}", f"g{number}") for index in range(size)]
    return found


def tree(leaves: int) -> list[Event]:
    """A tree of complete gangs of two pods, all of which must run."""
    found: list[Event] = [ObjectUpdated("CompositePodGroup", a_composite("top", leaves))]
    for number in range(leaves):
        group = a_gang(f"g{number}", 2, parentCompositePodGroupName="top")
        found.append(ObjectUpdated("PodGroup", group))
        found += [pod_changed(f"g{number}-{index}", f"g{number}") for index in range(2)]
    return found


def tree_events(leaves: int, count: int) -> list[Event]:
    """More members of the leaves, and their first members on nodes."""
    names = [f"g{number % leaves}" for number in range(count)]
    more: list[Event] = [pod_changed(f"{name}-more-{number}", name) for number, name in enumerate(names)]
    bound: list[Event] = [pod_changed(f"{name}-0", name, f"n{number}") for number, name in enumerate(names[:leaves])]
    return more + bound


def a_scheduler() -> Scheduler:
    scheduler = Scheduler(default_config())
    for number in range(NODES):
        scheduler.handle(node_added(number), 0.0)
    return scheduler


def handle(scheduler: Scheduler, events: list[Event]) -> float:
    """Seconds to take in so many events."""
    gc.collect()
    gc.freeze()  # as the shell does once its lists are complete
    began = time.process_time()
    for event in events:
        scheduler.handle(event, 0.0)
    return time.process_time() - began


def decide(count: int, size: int, topology: str | None = None) -> tuple[float, list[Bind]]:
    """Pods decided per second, and their binds."""
    scheduler = a_scheduler()
    handle(scheduler, [*gangs(count, size, topology), CacheSynced()])
    gc.collect()
    gc.freeze()
    binds: list[Bind] = []
    began = time.process_time()
    while decisions := scheduler.next(1.0):
        binds += [decision for decision in decisions if isinstance(decision, Bind)]
    assert len(binds) == count * size
    return len(binds) / (time.process_time() - began), binds


def throughput(count: int, size: int, topology: str | None, floor: float) -> Figure:
    best = max(decide(count, size, topology)[0] for _ in range(3))
    where = "one rack each" if topology else "anywhere"
    return Figure(f"{count:,} x {size:,} pods, {where}, queue to binds", best, "pods/s", floor=floor)


def enqueue(size: int) -> float:
    """Seconds until ten groups of this size stand in the queue."""
    scheduler = a_scheduler()
    return handle(scheduler, gangs(10, size, None))


def tree_event(leaves: int, count: int = 2_000) -> float:
    """Seconds for one event of a pod in a tree of so many leaves."""
    scheduler = a_scheduler()
    handle(scheduler, tree(leaves))
    events = tree_events(leaves, count)
    return handle(scheduler, events) / len(events)


def intake(count: int = 20_000) -> Iterator[Figure]:
    """Pod events a second into the scheduler, by what they say."""
    scheduler = a_scheduler()
    pending: list[Event] = [pod_changed(f"p{number}", None) for number in range(count)]
    yield Figure("events of new pending pods", count / handle(scheduler, pending), "events/s", floor=50_000)
    again: list[Event] = [pod_changed(f"p{number}", None) for number in range(count)]
    yield Figure("events that change nothing", count / handle(scheduler, again), "events/s", floor=50_000)
    scheduler.handle(CacheSynced(), 0.0)
    binds: list[Bind] = []
    while decisions := scheduler.next(1.0):
        binds += [decision for decision in decisions if isinstance(decision, Bind)]
    answers: list[Event] = [BindSucceeded(bind.pod.uid, bind.node) for bind in binds]
    yield Figure("answers to binds", count / handle(scheduler, answers), "events/s", floor=50_000)
    bound: list[Event] = [pod_changed(bind.pod.name, None, bind.node) for bind in binds]
    yield Figure("events of pods just bound", count / handle(scheduler, bound), "events/s", floor=50_000)
    others: list[Event] = [pod_changed(f"q{number}", None, f"n{number % NODES}") for number in range(count)]
    yield Figure("events of pods that others bound", count / handle(scheduler, others), "events/s", floor=50_000)


def figures() -> Iterator[Figure]:
    yield throughput(1000, 3, None, 6000)
    yield throughput(3, 1000, None, 50_000)
    yield throughput(1, 20_000, None, 100_000)
    yield throughput(1000, 3, RACK, 3000)
    yield throughput(3, 1000, RACK, 25_000)
    yield throughput(1, 4000, RACK, 50_000)
    few, many = enqueue(500), enqueue(5000)
    yield Figure("enqueue of 10 x 5,000 members", many * 1000, "ms", ceiling=2000)
    yield Figure("cost of a member, 5,000 against 500 to a group", many / few / 10, "times", ceiling=2)
    few, many = tree_event(10), tree_event(1000)
    yield Figure("event of a pod in a tree of 1,000 leaves", many * 1e6, "µs", ceiling=50)
    yield Figure("the same, 1,000 leaves against 10", many / few, "times", ceiling=2)
    yield from intake()


def guarded() -> Iterator[GuardedWork]:
    yield GuardedWork("events of pods in a tree of 1,000 leaves: groups walked", _walked_by_tree_events)


def _walked_by_tree_events() -> Callable[[], Counter[str]]:
    scheduler = Scheduler(default_config())
    handle(scheduler, [*(node_added(number) for number in range(100)), *tree(1000)])
    events = tree_events(1000, 500)

    def work() -> Counter[str]:
        with walking() as walked:
            handle(scheduler, events)
        return Counter({"groups walked": len(walked)})

    return work


@contextmanager
def walking() -> Iterator[list[EntityKey]]:
    """The groups whose children are read inside the block."""
    original, walked = Group.ordered_children, list[EntityKey]()

    def read(group: Group) -> list[Group]:
        walked.append(group.key)
        return original(group)

    Group.ordered_children = read
    try:
        yield walked
    finally:
        Group.ordered_children = original


def main() -> None:
    gc.set_threshold(*GC_THRESHOLDS)  # as the engine does
    for figure in figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
