"""Every kind of workload through the whole scheduler: what a pod costs in it, as a ratio to a pod on its own.

Basic groups, gangs, trees, gangs and trees inside topology domains of each level, gangs mixed with single pods, and
preemption by and within trees; the shapes that the design documents want measured. 1,000 nodes in 2 zones, 10 blocks
and 50 racks. A ratio compares two processor times of the same minute, so its bar holds on any machine.
`python -m bench.workloads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.figures import Figure
from bench.gangs import BLOCK, RACK, ZONE
from bench.guard import GuardedWork, seconds
from bench.objects import a_basic_group, a_composite, a_gang, a_node, a_pod
from bench.preemption import HIGH, LOW, Site, ranked_pod
from muster.scheduler.interface.decisions import Bind, Evict, Nominate
from muster.scheduler.interface.events import CacheSynced, ObjectDeleted

NODES, PER_ZONE, PER_BLOCK, PER_RACK = 1000, 500, 100, 20
PODS = 960
ROUNDS = 3

Prepare = Callable[[], Callable[[], int]]  # the work, which returns the pods that were bound


def nodes() -> Site:
    site = Site()
    for index in range(NODES):
        at = {ZONE: f"z{index // PER_ZONE}", BLOCK: f"b{index // PER_BLOCK}", RACK: f"r{index // PER_RACK}"}
        site.tell(a_node(f"n{index:04d}", "4", labels=at))
    return site


def run(site: Site) -> int:
    """Everything that waits is decided; how many pods were bound."""
    bound = 0
    while decisions := site.scheduler.next(1.0):
        bound += sum(isinstance(decision, Bind) for decision in decisions)
    return bound


def placing(fill: Callable[[Site], None]) -> Prepare:
    def prepare() -> Callable[[], int]:
        site = nodes()
        fill(site)
        site.scheduler.handle(CacheSynced(), 0.0)
        return lambda: run(site)

    return prepare


# --- what waits ------------------------------------------------------------------------------------


def single_pods(site: Site, count: int = PODS) -> None:
    site.tell(*(a_pod(f"single-{number}", "500m", "256Mi") for number in range(count)))


def _members(site: Site, group: str, count: int) -> None:
    site.tell(*(a_pod(f"{group}-{number}", "500m", "256Mi", group=group) for number in range(count)))


def basic_groups(site: Site) -> None:
    for number in range(PODS // 4):
        site.tell(a_basic_group(f"basic-{number}"))
        _members(site, f"basic-{number}", 4)


def gangs(site: Site, count: int = PODS // 4, size: int = 4, topology: str | None = None) -> None:
    for number in range(count):
        site.tell(a_gang(f"gang-{number}", size, topology=topology))
        _members(site, f"gang-{number}", size)


def mixed(site: Site) -> None:
    """A gang, four single pods, a gang and so on."""
    for number in range(PODS // 8):
        site.tell(a_gang(f"gang-{number}", 4))
        _members(site, f"gang-{number}", 4)
        site.tell(*(a_pod(f"single-{number}-{each}", "500m", "256Mi") for each in range(4)))


def trees(site: Site, top: str | None = None, middle: str | None = None, leaf: str | None = None) -> None:
    """Trees of three levels: two composites of two gangs of eight."""
    for number in range(PODS // 32):
        root = f"tree-{number}"
        site.tell(a_composite(root, 2, topology=top))
        for part in range(2):
            inner = f"{root}-{part}"
            site.tell(a_composite(inner, 2, topology=middle, parentCompositePodGroupName=root))
            for child in range(2):
                name = f"{inner}-{child}"
                site.tell(a_gang(name, 8, topology=leaf, parentCompositePodGroupName=inner))
                _members(site, name, 8)


# --- preemption ------------------------------------------------------------------------------------


def preempting(victims_in_trees: bool) -> Prepare:
    """A full cluster and a tree of two gangs of 60 that needs some of it; from its arrival to its binds."""

    def prepare() -> Callable[[], int]:
        site = nodes()
        for number in range(NODES // 4):
            parent: dict[str, str] = {}
            if victims_in_trees and number % 2 == 0:
                site.tell(a_composite(f"low-{number}", 2, priority=LOW))
            if victims_in_trees:
                parent = {"parentCompositePodGroupName": f"low-{number - number % 2}"}
            name = f"low-gang-{number}"
            site.tell(a_gang(name, 8, priority=LOW, disruptionMode={"single": {}}, **parent))
            site.tell(*(ranked_pod(f"{name}-{i}", "2", LOW, name, f"n{number * 4 + i // 2:04d}") for i in range(8)))
        site.ready()
        site.tell(a_composite("high", 2, priority=HIGH))
        for child in range(2):
            site.tell(a_gang(f"high-{child}", 60, priority=HIGH, parentCompositePodGroupName="high"))
            site.tell(*(ranked_pod(f"high-{child}-{i}", "4", HIGH, f"high-{child}") for i in range(60)))
        return lambda: _evict_and_bind(site)

    return prepare


def _evict_and_bind(site: Site) -> int:
    """Carry out the evictions until the preemptor is bound."""
    bound, nominated = 0, 0
    while decisions := site.scheduler.next(1.0):
        nominated += sum(isinstance(decision, Nominate) for decision in decisions)
        for decision in decisions:
            if isinstance(decision, Evict):
                pod = decision.pod
                site.scheduler.handle(ObjectDeleted("Pod", pod.namespace, pod.name, pod.uid), 1.0)
        bound += sum(isinstance(decision, Bind) for decision in decisions)
    assert nominated, "nobody was evicted"
    return bound


# --- the page --------------------------------------------------------------------------------------


SINGLE = "single pods"
WORKLOADS: dict[str, tuple[Prepare, int, float]] = {  # the pods that are bound, and the most that one may cost
    "basic groups of 4": (placing(basic_groups), PODS, 8),
    "gangs of 4": (placing(gangs), PODS, 11),
    "gangs of 4 mixed with single pods": (placing(mixed), PODS, 7),
    "gangs of 16 in one zone": (placing(lambda site: gangs(site, 60, 16, ZONE)), PODS, 6),
    "gangs of 16 in one block": (placing(lambda site: gangs(site, 60, 16, BLOCK)), PODS, 6),
    "gangs of 16 in one rack": (placing(lambda site: gangs(site, 60, 16, RACK)), PODS, 6),
    "trees of 32": (placing(trees), PODS, 6),
    "trees of 32 in a zone, a block, a rack": (placing(lambda site: trees(site, ZONE, BLOCK, RACK)), PODS, 10),
    "preemption by a tree of 120, victims in gangs": (preempting(False), 120, 55),
    "preemption by a tree of 120, victims in trees": (preempting(True), 120, 55),
}


def cost_of_a_pod(prepare: Prepare, pods: int) -> float:
    """Seconds of the processor for each pod, the least of several runs."""

    def once() -> float:
        work, bound = prepare(), []
        spent = seconds(lambda: bound.append(work()))
        assert bound == [pods], f"{bound} of {pods} pods were bound"
        return spent / pods

    return min(once() for _ in range(ROUNDS))


def figures() -> Iterator[Figure]:
    alone = cost_of_a_pod(placing(single_pods), PODS)
    yield Figure(f"{SINGLE}: processor time of one", alone * 1e6, "µs")
    for name, (prepare, pods, most) in WORKLOADS.items():
        yield Figure(
            f"{name}: one pod against a single pod", cost_of_a_pod(prepare, pods) / alone, "times", ceiling=most
        )


def guarded() -> Iterator[GuardedWork]:
    yield GuardedWork(SINGLE, placing(single_pods))
    for name, (prepare, _, _) in WORKLOADS.items():
        yield GuardedWork(name, prepare)


def main() -> None:
    for figure in figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
