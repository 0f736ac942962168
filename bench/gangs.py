"""Groups, decision only: plan, validate and apply, on 5,000 nodes in racks of 100, in one process.

`python -m bench.gangs` prints one line per figure, with the floor that the project holds itself to,
and the rate at which heterogeneous gangs are found at 80, 90 and 95 % fill beside a plain pod-by-pod
pass. No server, no binder: what is measured is how long a decision takes.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Iterator

from bench.figures import Figure
from bench.objects import a_node, a_pod
from muster.api.types import Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.checking.validate import validate
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PendingPod, PodGroupRequest, leaves
from muster.scheduler.placement.verdict import Infeasible, Placed, Undecided, Verdict
from muster.scheduler.planning.plan import DEFAULT_STEPS, plan
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import Profile, default_profile

RACK, BLOCK, ZONE = "example.com/rack", "example.com/block", "example.com/zone"
NODES = 5000
PER_RACK = 100


class Site:
    """A cluster under construction, and demands on it."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.evaluator = Evaluator(self.cluster)
        self.profile: Profile = default_profile()
        self.pods: dict[str, Pod] = {}

    def node(self, name: str, cpu: int, memory: int, **labels: str) -> None:
        self.cluster.change("Node", a_node(name, str(cpu), f"{memory}Gi", labels))

    def pod(self, name: str, cpu: int, memory: int) -> Pod:
        return a_pod(name, str(cpu), f"{memory}Gi", namespace="default")

    def gang(self, name: str, sizes: Iterable[tuple[int, int]], topology: str = "") -> PodGroupRequest:
        members: list[PendingPod] = []
        for index, (cpu, memory) in enumerate(sizes):
            pod = self.pod(f"{name}-{index}", cpu, memory)
            self.pods[pod.metadata.uid] = pod
            shape = self.evaluator.shape(pod, self.profile)
            members.append(PendingPod(pod.metadata.uid, "default", pod.metadata.name, shape, 0))
        return PodGroupRequest(EntityKey("PodGroup", "default", name), len(members), 0, tuple(members), topology)

    def decide(self, demand: GroupRequest) -> Verdict:
        with self.evaluator.trial() as trial:
            return plan(demand, trial, Budget(DEFAULT_STEPS))

    def commit(self, demand: GroupRequest) -> int:
        """Plan, validate, apply; how many pods were seated."""
        verdict = self.decide(demand)
        assert isinstance(verdict, Placed), verdict
        fault = validate(verdict, demand, self.cluster)
        assert fault is None, fault
        footprints = {member.uid: member.shape.footprint for leaf in leaves(demand) for member in leaf.members}
        self.cluster.assume_many((self.pods[seat.uid], footprints[seat.uid], seat.node) for seat in verdict.assignments)
        return len(verdict.assignments)


def racks_of_100(nodes: int = NODES) -> Site:
    site = Site()
    for index in range(nodes):
        site.node(f"node-{index:05d}", 32, 256, **{RACK: f"r{index // PER_RACK}"})
    return site


def timed(work: Callable[[], int]) -> tuple[int, float]:
    gc.collect()
    started = time.perf_counter()
    done = work()
    return done, time.perf_counter() - started


def throughput(gangs: int, size: int, topology: str, floor: float) -> Figure:
    site = racks_of_100()
    demands = [site.gang(f"g{index}", [(1, 1)] * size, topology) for index in range(gangs)]
    site.decide(site.gang("warm", [(1, 1)]))
    pods, seconds = timed(lambda: sum(site.commit(demand) for demand in demands))
    where = "one rack each" if topology else "anywhere"
    return Figure(f"{gangs:,} x {size:,} pods, {where}", pods / seconds, "pods/s", floor=floor)


def tree_of_racks() -> Figure:
    site = Site()
    for index in range(6400):
        at = {ZONE: "z0", BLOCK: f"b{index // 800}", RACK: f"r{index // 100}"}
        site.node(f"node-{index:05d}", 4, 64, **at)
    blocks: list[GroupRequest] = []
    for block in range(8):
        leaves = tuple(site.gang(f"g{block}-{rack}", [(1, 1)] * 128, RACK) for rack in range(8))
        blocks.append(CompositeRequest(EntityKey("CompositePodGroup", "default", f"block{block}"), 8, leaves, BLOCK))
    root = CompositeRequest(EntityKey("CompositePodGroup", "default", "root"), 8, tuple(blocks), ZONE)
    pods, seconds = timed(lambda: site.commit(root))
    return Figure(f"zone, 8 blocks, 64 racks: one tree of {pods:,} pods", seconds * 1000, "ms", ceiling=300)


def infeasible(topology: str) -> Figure:
    """One pod more than there is room for, in all or in the best rack."""
    site = racks_of_100()
    nodes = PER_RACK if topology else NODES
    size = 3 if topology else 31
    site.decide(site.gang("warm", [(1, 1)]))
    gang = site.gang("big", [(size, 1)] * (nodes * (32 // size) + 1), topology)
    found: list[Verdict] = []
    _, seconds = timed(lambda: found.append(site.decide(gang)) or 0)
    (verdict,) = found
    assert isinstance(verdict, Infeasible)
    assert check_proof(verdict, gang, site.cluster) is None
    where = "in racks" if topology else "flat"
    return Figure(f"infeasible gang of {len(gang.members):,}, with proof, {where}", seconds * 1000, "ms", ceiling=100)


def mixed(rng: random.Random, nodes: int, fill: float) -> tuple[Site, PodGroupRequest]:
    """A gang of a few shapes in random order whose members fill so much of the nodes."""
    site, cpus, memories = Site(), 0, 0
    for index in range(nodes):
        cpu = rng.choice((8, 16, 32))
        memory = cpu * rng.choice((2, 4, 8))
        site.node(f"n{index}", cpu, memory)
        cpus, memories = cpus + cpu, memories + memory
    kinds = [(rng.choice((1, 2, 3, 4, 6, 8, 12)), rng.choice((1, 2, 4, 8, 12, 16, 24, 32))) for _ in range(4)]
    sizes: list[tuple[int, int]] = []
    while True:
        sizes.append(rng.choice(kinds))
        if sum(c for c, _ in sizes) > fill * cpus or sum(m for _, m in sizes) > fill * memories:
            return site, site.gang("mix", sizes[:-1])


def pod_by_pod(site: Site, gang: PodGroupRequest) -> bool:
    with site.evaluator.trial() as trial:
        for member in gang.members:
            slot = trial.best(member.shape)
            if slot < 0:
                return False
            trial.place(member.shape, slot)
    return True


def found_rates(worlds: int = 40, nodes: int = 40) -> Iterator[Figure]:
    for fill in (0.80, 0.90, 0.95):
        rng = random.Random(6012)
        plain = placed = refuted = undecided = 0
        for _ in range(worlds):
            site, gang = mixed(rng, nodes, fill)
            verdict = site.decide(gang)
            plain += pod_by_pod(site, gang)
            placed += isinstance(verdict, Placed)
            refuted += isinstance(verdict, Infeasible)
            undecided += isinstance(verdict, Undecided)
        yield Figure(
            f"mixed gangs at {fill:.0%} fill of {nodes} nodes, found of {worlds}",
            placed,
            "gangs",
            note=f"proven infeasible {refuted}, undecided {undecided}; pod by pod finds {plain}",
        )


def figures() -> Iterator[Figure]:
    yield throughput(1000, 3, "", 6000)
    yield throughput(3, 1000, "", 50_000)
    yield throughput(1, 20_000, "", 100_000)
    yield throughput(1000, 3, RACK, 3000)
    yield throughput(3, 1000, RACK, 25_000)
    yield throughput(750, 4, RACK, 3000)
    yield throughput(1, 3000, RACK, 50_000)
    yield tree_of_racks()
    yield infeasible("")
    yield infeasible(RACK)
    yield from found_rates()


def main() -> None:
    for figure in figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
