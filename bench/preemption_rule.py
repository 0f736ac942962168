"""The choice of victims compared with upstream's rule, on random clusters.

Upstream's rule: take away everything of lower priority, place the preemptor once, then put units back in order of
importance (those whose budget would be violated first) wherever the fixed seats leave room; whoever has no room is
a victim. Written here from that description alone; both choices are priced by the same order of cost.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import msgspec

from bench.objects import a_node
from bench.preemption import HIGH, LOW, Site, ranked_gang, ranked_pod
from muster.api import types
from muster.scheduler.cycle.evaluate import request_of
from muster.scheduler.interface.decisions import Nominate, SetCondition
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.verdict import Placed
from muster.scheduler.planning.plan import plan
from muster.scheduler.preemption.cost import Cost, EvictionCost
from muster.scheduler.preemption.victim_table import Victim
from muster.scheduler.preemption.victims import possible_victims, quorums

RACK = "example.com/rack"


@dataclass
class Tally:
    """Sums over all clusters on which somebody had to leave."""

    clusters: int = 0
    cheaper: int = 0
    dearer: int = 0
    pods: list[int] = field(default_factory=lambda: [0, 0])  # ours, theirs
    gangs: list[int] = field(default_factory=lambda: [0, 0])

    def __str__(self) -> str:
        return (
            f"{self.clusters} clusters: cheaper on {self.cheaper}, dearer on {self.dearer}; "
            f"pods evicted {self.pods[0]} against {self.pods[1]}, gangs broken {self.gangs[0]} against {self.gangs[1]}"
        )


def a_random_site(rng: random.Random) -> Site:
    """A nearly full cluster of plain pods and gangs at three priorities, some under budgets, and a preemptor."""
    site = Site()
    nodes = rng.randint(4, 12)
    free = {f"n{i}": rng.choice([4, 8]) for i in range(nodes)}
    site.tell(*(a_node(name, str(cpu), labels={RACK: f"r{i % 3}"}) for i, (name, cpu) in enumerate(free.items())))
    number = 0
    while sum(free.values()) > nodes:
        size, mode = rng.choice([(1, ""), (2, "single"), (3, "all"), (4, "all"), (3, "single")])
        priority, group = rng.choice([LOW, LOW, 50, HIGH + 1]), f"low{number}" if mode else None
        if group:
            site.tell(ranked_gang(group, rng.randint(1, size), priority, mode))
        for member in range(size):
            cpu = rng.choice([1, 1, 2])
            room = [name for name, left in free.items() if left >= cpu]
            if room:
                node = rng.choice(room)
                free[node] -= cpu
                labels = {"app": f"a{rng.randint(0, 4)}"}
                site.tell(ranked_pod(f"low{number}-{member}", str(cpu), priority, group, node, labels=labels))
        number += 1
    for app in range(2):
        site.tell(_a_budget(f"a{app}", rng.randint(0, 2)))
    site.ready()
    size = rng.randint(1, 6)
    site.tell(ranked_gang("vip", size, HIGH, topology=rng.choice([None, None, RACK])))
    site.tell(*(ranked_pod(f"vip-{i}", rng.choice(["1", "2"]) if size < 4 else "1", HIGH, "vip") for i in range(size)))
    return site


def _a_budget(app: str, allowed: int) -> types.PodDisruptionBudget:
    raw = {
        "metadata": {"name": app, "namespace": "ns", "uid": app},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(raw, types.PodDisruptionBudget)


def compare(seed: int) -> tuple[Cost, Cost] | None:
    """The price of our choice and of upstream's for one cluster; None where nobody has to leave."""
    site = a_random_site(random.Random(seed))
    world = site.scheduler.state
    root = next(root for root in world.queue.entities.values() if root.key.name == "vip")
    demand = request_of(root, world.shape_of, world.domain_of)
    table = possible_victims(world.forest, world.cluster, root.priority)
    units = sorted(table, key=lambda unit: unit.key)
    toll = EvictionCost(units, world.budgets.values(), quorums(table), lambda uid: world.cluster.pods[uid].pod)
    theirs = _upstream(site, demand, units)
    ours = _ours(site, units)
    if not ours:
        assert theirs is None or not theirs, "upstream finds room where we find none"
        return None
    assert theirs is not None, "we find room where upstream finds none on an empty cluster"
    return toll.cost(ours), toll.cost(theirs)


def _ours(site: Site, units: list[Victim]) -> list[Victim]:
    marked: set[str] = set()
    while decisions := site.scheduler.next(0.0):
        marked |= {d.about.uid for d in decisions if isinstance(d, SetCondition) and d.type == "DisruptionTarget"}
        if any(isinstance(d, Nominate) for d in decisions):
            break
    return [unit for unit in units if not marked.isdisjoint(unit.uids)]


def _upstream(site: Site, demand: object, units: list[Victim]) -> list[Victim] | None:
    cluster = site.scheduler.state.cluster
    with site.scheduler.state.evaluator.trial() as trial:
        verdict = plan(demand, trial, Budget(20_000))  # type: ignore[arg-type]
        if isinstance(verdict, Placed):
            return []
        for unit in units:
            for uid in unit.uids:
                trial.evict(uid)
        verdict = plan(demand, trial, Budget(20_000))  # type: ignore[arg-type]
        if not isinstance(verdict, Placed):
            return None
        free = {name: int(cluster.alloc[0, slot] - cluster.used[0, slot]) for name, slot in cluster.index.items()}
    world = site.scheduler.state
    for seat in verdict.assignments:
        free[seat.node] -= _cpu(world.forest.members[seat.uid].pod)
    return [unit for unit in _order(site, units) if not _put_back(site, unit, free)]


def _put_back(site: Site, unit: Victim, free: dict[str, int]) -> bool:
    pods = [site.scheduler.state.forest.members[uid].pod for uid in unit.uids]
    left = dict(free)
    for pod in pods:
        left[pod.spec.node_name or ""] -= _cpu(pod)
    if min(left.values()) < 0:
        return False
    free.update(left)
    return True


def _cpu(pod: types.Pod) -> int:
    return int((pod.spec.containers or ())[0].resources.requests["cpu"]) * 1000  # type: ignore[union-attr,index]


def _order(site: Site, units: list[Victim]) -> list[Victim]:
    """Violating units first, then the others, each in order of importance."""
    rank = {"CompositePodGroup": 0, "PodGroup": 1}

    def importance(unit: Victim) -> tuple[int, int, int, str]:
        return (-unit.priority, rank.get(unit.key.kind, 1 if unit.losses else 2), -len(unit.uids), min(unit.starts))

    world = site.scheduler.state
    left = {budget.metadata.name: budget.status.disruptions_allowed for budget in world.budgets.values()}
    violating: list[Victim] = []
    for unit in sorted(units, key=importance):
        for uid in unit.uids:
            app = (world.forest.members[uid].pod.metadata.labels or {}).get("app", "")
            if app in left:
                left[app] -= 1
                if left[app] < 0 and unit not in violating:
                    violating.append(unit)
    return violating + [unit for unit in sorted(units, key=importance) if unit not in violating]


def tally(clusters: int, first_seed: int = 0) -> Tally:
    """Random clusters until so many of them needed victims."""
    total, seed = Tally(), first_seed
    while total.clusters < clusters:
        costs = compare(seed)
        seed += 1
        if costs is None:
            continue
        ours, theirs = costs
        total.clusters += 1
        total.cheaper += ours < theirs
        total.dearer += ours > theirs
        for sums, column in ((total.pods, 4), (total.gangs, 2)):
            sums[0] += int(ours[column])
            sums[1] += int(theirs[column])
    return total


def main() -> None:
    print(tally(200))


if __name__ == "__main__":
    main()
