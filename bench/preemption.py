"""Preemption, decision only: seats and victims together, through the scheduler, in one process.

`python -m bench.preemption` prints the time from the attempt to the marks for a large gang on a full cluster
(anywhere, and inside one rack), the shapes that upstream benchmarks on 100 nodes, and a comparison with
upstream's rule on random clusters: never dearer, and the totals of pods and gangs that leave. Times are processor
time: a decision runs on one core and waits for nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bench.figures import Figure
from bench.gangs import RACK
from bench.guard import GuardedWork
from bench.objects import a_gang, a_node, a_pod
from muster.api import groups as api
from muster.api import types
from muster.engine.settings import GC_THRESHOLDS
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.decisions import Decision, Nominate
from muster.scheduler.interface.events import CacheSynced, ObjectUpdated
from muster.scheduler.runtime.config import default_config

HIGH, LOW = 1_000_000, 10


class Site:
    """A scheduler and the facts it is told."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(default_config())

    def tell(self, *objects: Any) -> None:
        for obj in objects:
            self.scheduler.handle(ObjectUpdated(type(obj).__name__, obj), 0.0)

    def ready(self) -> None:
        """Say everything that there is to say before the clock starts."""
        self.scheduler.handle(CacheSynced(), 0.0)
        while self.scheduler.next(0.0):
            pass

    def time_to_marks(self) -> tuple[float, list[Decision]]:
        """Seconds of the turn that chooses victims, and what it decided."""
        gc.collect()
        gc.freeze()  # as the engine does after its first lists
        gc.set_threshold(*GC_THRESHOLDS)
        try:
            while True:
                started = time.process_time()
                decisions = self.scheduler.next(0.0)
                seconds = time.process_time() - started
                if not decisions or any(isinstance(decision, Nominate) for decision in decisions):
                    return seconds, decisions
        finally:
            gc.unfreeze()


def ranked_pod(
    name: str, cpu: str, priority: int, group: str | None = None, node: str | None = None, **spec: Any
) -> types.Pod:
    """A pod with a priority and a start time; `port` is a port of its node."""
    container: dict[str, Any] = {"name": "c"}
    if port := spec.pop("port", None):
        container["ports"] = [{"hostPort": port, "containerPort": port, "protocol": "TCP"}]
    fields = {"priority": priority, "labels": {}, "container": container, "started": True, **spec}
    return a_pod(name, cpu, "100Mi", group=group, node=node, **fields)


def ranked_gang(
    name: str, minimum: int, priority: int, mode: str = "single", topology: str | None = None
) -> api.PodGroup:
    fields = {"priority": priority, "disruptionMode": {mode: {}}}
    return a_gang(name, minimum, uid=f"g-{name}", created=None, topology=topology, **fields)


# --- a full cluster --------------------------------------------------------------------------------


def full_cluster(nodes: int, gangs: int, size: int, mode: str) -> Site:
    site = Site()
    site.tell(*(a_node(f"n{i:05d}", "10", labels={RACK: f"r{i // 100}"}) for i in range(nodes)))
    seat = 0
    for number in range(gangs):
        site.tell(ranked_gang(f"low{number}", size, LOW, mode))
        for member in range(size):
            node = f"n{seat * 7919 % nodes:05d}"
            site.tell(ranked_pod(f"low{number}-{member}", "1", LOW, f"low{number}", node))
            seat += 1
    site.ready()
    return site


def large_gang(mode: str, topology: str | None) -> Figure:
    site = _waiting_gang(5000, 1000, mode, topology)
    seconds, decisions = site.time_to_marks()
    assert sum(isinstance(decision, Nominate) for decision in decisions) == 1000
    where = "in one rack" if topology else "anywhere"
    return Figure(f"1,000 pods {where}, 50,000 victims of mode {mode}", seconds * 1000, "ms", ceiling=150)


def hopeless(mode: str) -> Figure:
    """A gang that no eviction can help, considered again and again."""
    site = full_cluster(5000, 5000, 10, mode)
    site.tell(ranked_gang("huge", 1000, HIGH))
    site.tell(*(ranked_pod(f"huge-{i}", "11", HIGH, "huge") for i in range(1000)))
    site.scheduler.next(0.0)
    started = time.process_time()
    for again in range(3):
        site.tell(a_node(f"extra-{again}", "10"))
        site.scheduler.next(100.0 * (again + 1))
    return Figure(f"a hopeless gang again, victims of mode {mode}", (time.process_time() - started) / 3 * 1000, "ms")


# --- the shapes of upstream's benchmarks -----------------------------------------------------------


def basic(groups: int, size: int) -> Site:
    site = Site()
    site.tell(*(a_node(f"n{i}") for i in range(100)))
    site.tell(*(ranked_pod(f"low-{i}", "40m", LOW, None, f"n{i % 100}") for i in range(1000)))
    site.ready()
    _preemptors(site, groups, size, "3970m")
    return site


def pod_groups(low_groups: int, low_size: int, groups: int, size: int) -> Site:
    site = Site()
    site.tell(*(a_node(f"n{i}") for i in range(100)))
    seat = 0
    for number in range(low_groups):
        site.tell(ranked_gang(f"low{number}", low_size, LOW))
        for member in range(low_size):
            pod = ranked_pod(f"low{number}-{member}", "600m", LOW, f"low{number}", f"n{seat % 100}", port=9000 + number)
            site.tell(pod)
            seat += 1
    site.ready()
    _preemptors(site, groups, size, "3500m", port=True)
    return site


def affinity(groups: int, size: int) -> Site:
    site = Site()
    site.tell(*(a_node(f"n{i}") for i in range(100)))
    labels = {f"key{i}": "anchor" for i in range(5)}
    site.tell(*(ranked_pod(f"anchor-{i}", "10m", HIGH, None, f"n{i}", labels=labels) for i in range(100)))
    site.tell(*(ranked_pod(f"low-{i}", "40m", LOW, None, f"n{i % 100}") for i in range(1000)))
    site.ready()
    terms = [
        {"labelSelector": {"matchLabels": {key: value}}, "topologyKey": "kubernetes.io/hostname"}
        for key, value in labels.items()
    ]
    wish = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    _preemptors(site, groups, size, "3970m", **wish)
    return site


def _preemptors(site: Site, groups: int, size: int, cpu: str, **spec: Any) -> None:
    for number in range(groups):
        fields = dict(spec)
        if fields.pop("port", False):
            fields["port"] = 20000 + number
        site.tell(ranked_gang(f"high{number}", size, HIGH))
        site.tell(*(ranked_pod(f"high{number}-{i}", cpu, HIGH, f"high{number}", **fields) for i in range(size)))


def disruption_mode(mode: str) -> Site:
    site = Site()
    site.tell(*(a_node(f"n{i}") for i in range(1000)))
    for number in range(1000):
        if mode != "none":
            site.tell(ranked_gang(f"low{number}", 10, LOW, mode))
        group = f"low{number}" if mode != "none" else None
        site.tell(
            *(ranked_pod(f"low{number}-{i}", "300m", LOW, group, f"n{(number * 10 + i) % 1000}") for i in range(10))
        )
    site.ready()
    site.tell(ranked_pod("high", "2", HIGH))
    return site


def upstream_shapes() -> Iterable[Figure]:
    shapes: list[tuple[str, Callable[[], Site]]] = [
        ("1,000 low pods, 1 gang of 100", lambda: basic(1, 100)),
        ("1,000 low pods, 10 gangs of 10, the first", lambda: basic(10, 10)),
        ("5 low groups of 100 with ports, 1 gang of 100", lambda: pod_groups(5, 100, 1, 100)),
        ("50 low groups of 10 with ports, 10 gangs of 10, the first", lambda: pod_groups(50, 10, 10, 10)),
        ("1,000 low pods, required affinity, 1 gang of 100", lambda: affinity(1, 100)),
        ("1,000 low pods, required affinity, 10 gangs of 10, the first", lambda: affinity(10, 10)),
    ]
    for name, build in shapes:
        times: list[float] = []
        for _ in range(5):
            seconds, decisions = build().time_to_marks()
            assert any(isinstance(decision, Nominate) for decision in decisions), name
            times.append(seconds)
        yield Figure(f"100 nodes: {name}", min(times) * 1000, "ms", ceiling=20)
    for mode in ("none", "single", "all"):
        seconds, decisions = disruption_mode(mode).time_to_marks()
        assert any(isinstance(decision, Nominate) for decision in decisions)
        yield Figure(f"1,000 nodes, 10,000 victims of mode {mode}, one pod", seconds * 1000, "ms")


def guarded() -> Iterator[GuardedWork]:
    """Smaller forms of the same, from the attempt to the marks."""
    worlds: dict[str, Callable[[], Site]] = {
        "preemption: 1,000 low pods, 1 gang of 100": lambda: basic(1, 100),
        "preemption: 50 low groups with ports, gangs of 10": lambda: pod_groups(50, 10, 10, 10),
        "preemption: required affinity, 1 gang of 100": lambda: affinity(1, 100),
    }
    for mode in ("single", "all"):
        for topology in (None, RACK):
            where = "in one rack" if topology else "anywhere"
            name = f"preemption: 200 pods {where}, 10,000 victims of mode {mode}"
            worlds[name] = lambda mode=mode, topology=topology: _waiting_gang(1000, 200, mode, topology)
    for name, build in worlds.items():
        yield GuardedWork(name, lambda build=build: _to_marks(build()))


def _waiting_gang(nodes: int, size: int, mode: str, topology: str | None) -> Site:
    site = full_cluster(nodes, nodes, 10, mode)
    site.tell(ranked_gang("big", size, HIGH, topology=topology))
    site.tell(*(ranked_pod(f"big-{i}", "1", HIGH, "big") for i in range(size)))
    return site


def _to_marks(site: Site) -> Callable[[], object]:
    def work() -> None:
        while decisions := site.scheduler.next(0.0):
            if any(isinstance(decision, Nominate) for decision in decisions):
                return
        raise AssertionError("no victims were marked")

    return work


def figures() -> Iterator[Figure]:
    from bench.preemption_rule import tally

    for mode in ("single", "all"):
        for topology in (None, RACK):
            yield large_gang(mode, topology)
    yield hopeless("single")
    yield hopeless("all")
    yield from upstream_shapes()
    found = tally(200)
    yield Figure("of 200 clusters, dearer than upstream's rule", found.dearer, "clusters", ceiling=0, note=str(found))


def main() -> None:
    for figure in figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
