"""`make bench-search`: how often, and how fast, the search finds a placement that is known to exist.

Each row is a kind of planted instance: pods of a few random shapes are put on random nodes (for trees: each child's on
nodes of one rack), and what is free on a node is what its pods take, divided by a random fill of 85 to 98 %. Nodes
without planted pods have scraps. A flat gang asks for all pods anywhere; a tree asks for each child in one rack. The
infeasible form of an instance asks for one pod too many: the largest gang (of a tree, the largest child) that is found,
grown one pod at a time of one shape, plus one pod more. It counts as proven only if the search says infeasible with a
proof that the checker accepts.

A search is run as the scheduler runs it: in slices, `DEFAULT_STEPS` steps each, ten times that at most. Time is that of
the processor. `python -m bench.search --instances 20 --rows flat` runs fewer; `make bench` runs the first few of
each row.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench.figures import Figure
from bench.guard import GuardedWork
from bench.objects import a_node, a_pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.checking.validate import validate
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PendingPod, PodGroupRequest
from muster.scheduler.placement.verdict import Infeasible, Placed, Verdict
from muster.scheduler.planning.paused_search import PausedSearch
from muster.scheduler.planning.plan import DEFAULT_STEPS, plan_first_slice, resumed_verdict
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import default_profile

RACK = "example.com/rack"
MOST_SLICES = 10
PROFILE = default_profile()


@dataclass(frozen=True)
class Row:
    """One kind of instance."""

    nodes: int
    pods: int
    shapes: int
    children: int = 0  # 0: one flat gang
    racks: int = 0

    @property
    def name(self) -> str:
        tree = f", {self.children} children in {self.racks} racks" if self.children else ""
        return f"{self.nodes:,} nodes, {self.pods:,} pods, {self.shapes} shapes{tree}"


FLAT = (
    Row(200, 100, 2),
    Row(200, 1000, 6),
    Row(500, 500, 4),
    Row(1000, 500, 6),
    Row(2000, 1000, 2),
    Row(2000, 1000, 6),
)
TREES = (
    Row(200, 100, 2, 8, 8),
    Row(500, 500, 4, 30, 15),
    Row(1000, 500, 4, 34, 34),
    Row(1000, 1000, 6, 34, 20),
    Row(2000, 1000, 4, 68, 68),
    Row(2000, 1000, 6, 60, 40),
)
BARS = {"flat": 0.99, "trees": 0.95, "infeasible": 0.90, "infeasible trees": 0.90}
WANTED: dict[str, type] = {"flat": Placed, "trees": Placed, "infeasible": Infeasible, "infeasible trees": Infeasible}
MOST_MEDIAN_MS, MOST_P99_MS = 200.0, 2000.0  # of searches for what exists
MOST_SLICE_MS = 100.0  # of processor time, of any search
FEWER = {"flat": 20, "trees": 20, "infeasible": 5, "infeasible trees": 3}  # instances a row in `make bench`


@dataclass(frozen=True)
class Instance:
    """Amounts in millicores and MiB."""

    free: tuple[tuple[int, int], ...]
    racks: tuple[int, ...]
    shapes: tuple[tuple[int, int], ...]
    gangs: tuple[tuple[int, ...], ...]  # of each: how many pods of each shape
    tree: bool


def planted(row: Row, seed: int) -> Instance:
    """An instance that has a placement."""
    rng = random.Random(f"{row.name}/{seed}")
    shapes = tuple((rng.randint(200, 8000), rng.randint(256, 16384)) for _ in range(row.shapes))
    racks = max(1, row.racks)
    rack_of = tuple(node * racks // row.nodes for node in range(row.nodes))
    inside = [[node for node in range(row.nodes) if rack_of[node] == rack] for rack in range(racks)]
    gangs = max(1, row.children)
    homes = [gang if gang < racks else rng.randrange(racks) for gang in range(gangs)]
    used = [[0, 0] for _ in range(row.nodes)]
    counts = [[0] * row.shapes for _ in range(gangs)]
    for pod in range(row.pods):
        gang = pod % gangs if pod < gangs else rng.randrange(gangs)
        shape, node = rng.randrange(row.shapes), rng.choice(inside[homes[gang]])
        counts[gang][shape] += 1
        used[node][0] += shapes[shape][0]
        used[node][1] += shapes[shape][1]
    free = tuple(_room(rng, cpu, memory) for cpu, memory in used)
    rng.shuffle(counts)
    return Instance(free, rack_of, shapes, tuple(map(tuple, counts)), bool(row.children))


def _room(rng: random.Random, cpu: int, memory: int) -> tuple[int, int]:
    if not cpu:
        return rng.randint(0, 400), rng.randint(0, 800)
    return int(cpu / rng.uniform(0.85, 0.98)), int(memory / rng.uniform(0.85, 0.98))


@dataclass
class World:
    """An instance as a cluster and a request."""

    instance: Instance
    evaluator: Evaluator = field(init=False)
    shapes: list[Shape] = field(init=False)

    def __post_init__(self) -> None:
        cluster = Cluster()
        for number, ((cpu, memory), rack) in enumerate(zip(self.instance.free, self.instance.racks, strict=True)):
            cluster.change("Node", a_node(f"n{number}", f"{cpu}m", f"{memory}Mi", {RACK: f"r{rack}"}))
        self.evaluator = Evaluator(cluster)
        pods = [a_pod(f"s{at}", f"{cpu}m", f"{memory}Mi") for at, (cpu, memory) in enumerate(self.instance.shapes)]
        self.shapes = [self.evaluator.shape(pod, PROFILE) for pod in pods]

    def request(self, gangs: tuple[tuple[int, ...], ...] | None = None) -> GroupRequest:
        topology = RACK if self.instance.tree else ""
        found = [self._gang(f"g{at}", counts, topology) for at, counts in enumerate(gangs or self.instance.gangs)]
        if not self.instance.tree:
            return found[0]
        return CompositeRequest(EntityKey("CompositePodGroup", "ns", "root"), len(found), tuple(found))

    def _gang(self, name: str, counts: tuple[int, ...], topology: str) -> PodGroupRequest:
        members = tuple(
            PendingPod(f"{name}-{at}-{index}", "ns", f"{name}-{at}-{index}", self.shapes[at], 0)
            for at, count in enumerate(counts)
            for index in range(count)
        )
        return PodGroupRequest(EntityKey("PodGroup", "ns", name), len(members), 0, members, topology)


@dataclass
class Outcome:
    """A verdict and what it took."""

    verdict: Verdict
    seconds: float
    steps: int
    slices: list[float]


def search(world: World, request: GroupRequest, slices: int = MOST_SLICES) -> Outcome:
    """Plan a request in slices, on a cluster that does not change."""
    budget = Budget(DEFAULT_STEPS * slices, slice_steps=DEFAULT_STEPS)
    began, times = time.process_time(), list[float]()
    with world.evaluator.trial() as trial:
        verdict = plan_first_slice(request, trial, budget)
        times.append(time.process_time() - began)
        while isinstance(verdict, PausedSearch):
            start = time.process_time()
            answer = verdict.advance()
            if answer is not None:
                verdict = resumed_verdict(verdict, answer, trial)
            times.append(time.process_time() - start)
    assert verdict is not None, "what was found on a cluster that does not change is there"
    spent = time.process_time() - began
    if isinstance(verdict, Placed):
        fault = validate(verdict, request, world.evaluator.cluster)
        assert fault is None, fault
    return Outcome(verdict, spent, budget.spent, times)


def one_too_many(world: World, seed: int) -> Outcome:
    """The largest gang, or child of a tree, that is found, with one pod more of one shape."""
    rng, gangs = random.Random(seed), world.instance.gangs
    at, child = rng.randrange(len(gangs[0])), rng.randrange(len(gangs))

    def grown(more: int) -> GroupRequest:
        counts = gangs[child]
        return world.request(
            (*gangs[:child], (*counts[:at], counts[at] + more, *counts[at + 1 :]), *gangs[child + 1 :])
        )

    low, high = 0, 1
    while isinstance(search(world, grown(high)).verdict, Placed):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if isinstance(search(world, grown(middle)).verdict, Placed):
            low = middle
        else:
            high = middle
    request = grown(high)
    outcome = search(world, request)
    if isinstance(outcome.verdict, Infeasible):
        fault = check_proof(outcome.verdict, request, world.evaluator.cluster)
        assert fault is None, fault
    return outcome


def _share(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def solved(kind: str, row: Row, seeds: range) -> list[Outcome]:
    """Some instances of a row, searched."""
    worlds = (World(planted(row, seed)) for seed in seeds)
    if WANTED[kind] is Infeasible:
        return [one_too_many(world, seed) for seed, world in zip(seeds, worlds, strict=True)]
    outcomes = [search(world, world.request()) for world in worlds]
    assert not any(isinstance(each.verdict, Infeasible) for each in outcomes), "a placement exists"
    return outcomes


def _report(kind: str, row: Row, outcomes: list[Outcome], verbose: bool) -> bool:
    good = [isinstance(outcome.verdict, WANTED[kind]) for outcome in outcomes]
    rate, bar = sum(good) / len(good), BARS[kind]
    seconds = [outcome.seconds for outcome in outcomes]
    slices = [each for outcome in outcomes for each in outcome.slices]
    print(
        f"{kind:<16} {row.name:<56} {rate:>7.1%} of {len(good)} (bar {bar:.0%})"
        f"  median {_share(seconds, 0.5) * 1000:>5.0f} ms  p99 {_share(seconds, 0.99) * 1000:>5.0f} ms"
        f"  longest slice {max(slices) * 1000:>4.0f} ms  steps {_share([float(o.steps) for o in outcomes], 0.5):,.0f}",
        flush=True,
    )
    if verbose:
        print("   missed:", [seed for seed, found in enumerate(good) if not found], flush=True)
    return rate >= bar


def rows(kinds: list[str]) -> Iterator[tuple[str, Row]]:
    for kind in kinds:
        yield from ((kind, row) for row in (TREES if kind.endswith("trees") else FLAT))


def figures() -> Iterator[Figure]:
    """The first few instances of every row; of so few the 99th percentile is the longest."""
    for kind, row in rows(list(BARS)):
        outcomes = solved(kind, row, range(FEWER[kind]))
        good = sum(isinstance(outcome.verdict, WANTED[kind]) for outcome in outcomes)
        name, said = f"{kind}: {row.name}", f"{good} of {len(outcomes)}"
        what = "proven" if WANTED[kind] is Infeasible else "found"
        yield Figure(f"{name}: {what}", 100 * good / len(outcomes), "%", floor=round(100 * BARS[kind]), note=said)
        if WANTED[kind] is Placed:
            times = [outcome.seconds * 1000 for outcome in outcomes]
            yield Figure(f"{name}: median", _share(times, 0.5), "ms", ceiling=MOST_MEDIAN_MS)
            yield Figure(
                f"{name}: 99th percentile",
                _share(times, 0.99),
                "ms",
                ceiling=MOST_P99_MS,
                note=f"the longest of {len(times)}",
            )
        longest = max(slice_ for outcome in outcomes for slice_ in outcome.slices)
        yield Figure(f"{name}: longest slice", longest * 1000, "ms", ceiling=MOST_SLICE_MS)


# --- the quick form --------------------------------------------------------------------------------


def _small(row: Row, seeds: range, one: Callable[[World, int], Outcome]) -> Callable[[], Callable[[], Counter[str]]]:
    """A few instances of a row; counts what was found and what was proven impossible."""

    def prepare() -> Callable[[], Counter[str]]:
        worlds = [(seed, World(planted(row, seed))) for seed in seeds]

        def work() -> Counter[str]:
            verdicts = [one(world, seed).verdict for seed, world in worlds]
            found = sum(isinstance(verdict, Placed) for verdict in verdicts)
            return Counter({"found": found, "proven": sum(isinstance(verdict, Infeasible) for verdict in verdicts)})

        return work

    return prepare


def guarded() -> Iterator[GuardedWork]:
    flat, tree, full = Row(100, 200, 4), Row(100, 100, 4, 8, 8), Row(50, 60, 3)
    for row in (flat, tree):
        plan = _small(row, range(4), lambda world, _: search(world, world.request()))
        yield GuardedWork(f"search: 4 times {row.name}", plan)
    yield GuardedWork(f"search: 2 times {full.name}, one pod too many", _small(full, range(2), one_too_many))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", default=",".join(BARS))
    parser.add_argument("--only", type=int, default=None, help="the number of one row of each kind")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    reached = True
    numbers: dict[str, int] = {}
    for kind, row in rows(options.rows.split(",")):
        number = numbers[kind] = numbers.get(kind, -1) + 1
        if options.only is not None and number != options.only:
            continue
        seeds = range(options.first, options.first + options.instances)
        reached &= _report(kind, row, solved(kind, row, seeds), options.verbose)
    return int(not reached)


if __name__ == "__main__":
    sys.exit(main())
