"""Large gangs against a stream of small pods, in simulated time: how long they wait, and what that costs the others.

8 nodes of 8 cpu; pods of one cpu that run for 20 s come at random times, at 80, 90 and 95 % load; gangs that need 2, 4
or 8 whole nodes and run for 20 s, one or three at once, come after ten minutes. All have the same priority. Each row is
one hour with reservations (patience 5 minutes) beside the same hour without. Small pods have to wait while whole nodes
are emptied and used by a gang; how long at least is computed beside it. The harness plays the API server: decisions are
carried out at once.

`python -m bench.starvation --seed 1`
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any

import msgspec

from bench.figures import Figure
from bench.guard import GuardedWork
from bench.objects import a_gang, a_node, a_pod
from muster.api import types
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.runtime import config

NODES, CPU = 8, 8
RUN = 20.0  # seconds that a pod runs, also one of a gang
HOUR, ARRIVAL = 3600.0, 600.0
PATIENCE = 300.0
SHORT = 100.0  # seconds of the quick form
LOADS, SIZES, COUNTS = (0.8, 0.9, 0.95), (2, 4, 8), (1, 3)
BEGIN = 1_767_225_600.0  # the start of 2026


@dataclass
class Outcome:
    """What one hour was like."""

    gang_waits: dict[str, float] = field(default_factory=dict[str, float])  # from creation to the last bind
    pod_waits: list[float] = field(default_factory=list[float])
    busy: float = 0.0  # cpu seconds

    @property
    def utilisation(self) -> float:
        return self.busy / (HOUR * NODES * CPU)

    @property
    def late(self) -> float:
        """The 99th percentile of the waiting of small pods."""
        waits = sorted(self.pod_waits)
        return waits[math.ceil(0.99 * len(waits)) - 1]


class Hour:
    """A scheduler, the objects around it, and what is due when."""

    def __init__(
        self, *, reservations: bool, durations: bool = False, gang_run: float = RUN, patience: float = PATIENCE
    ) -> None:
        settings = {"enabled": reservations, "patienceSeconds": patience}
        entry = {"name": "Muster", "args": {"reservations": settings}}
        self.scheduler = Scheduler(
            config.load(
                {"apiVersion": config.API_VERSION, "kind": config.KIND, "profiles": [{"pluginConfig": [entry]}]}
            )
        )
        self.durations = durations
        self.gang_run = gang_run
        self.now = BEGIN
        self.objects: dict[tuple[str, str], Any] = {}
        self.due: list[tuple[float, int, Callable[[], None]]] = []
        self.order = 0
        self.created: dict[str, float] = {}
        self.decisions: list[d.Decision] = []
        self.outcome = Outcome()
        for number in range(NODES):
            self.put("Node", a_node(f"n{number}", str(CPU), uid=f"n{number}"))
        self.scheduler.handle(events.CacheSynced(), self.now)

    # --- objects -----------------------------------------------------------------------------------

    def put(self, kind: str, obj: Any) -> None:
        self.objects[kind, obj.metadata.name] = obj
        self.scheduler.handle(events.ObjectUpdated(kind, obj), self.now)

    def remove(self, kind: str, name: str) -> None:
        obj = self.objects.pop((kind, name))
        self.scheduler.handle(events.ObjectDeleted(kind, obj.metadata.namespace, name, obj.metadata.uid), self.now)

    def stamp(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def at(self, when: float, action: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.due, (when, self.order, action))

    def small_pod(self, name: str) -> None:
        more = {"activeDeadlineSeconds": int(RUN)} if self.durations else {}
        self._pod(name, a_pod(name, "1", "1Gi", started=True, **more))

    def gang(self, name: str, size: int) -> None:
        self.put("PodGroup", a_gang(name, size, created=self.stamp()))
        for member in range(size):
            self._pod(f"{name}-{member}", a_pod(f"{name}-{member}", str(CPU), "1Gi", group=name, started=True))

    def _pod(self, name: str, pod: types.Pod) -> None:
        self.created[name] = self.now
        meta = msgspec.structs.replace(pod.metadata, creation_timestamp=self.stamp())
        self.put("Pod", msgspec.structs.replace(pod, metadata=meta))

    # --- the API server ----------------------------------------------------------------------------

    def _carry_out(self, decision: d.Decision) -> None:
        self.decisions.append(decision)
        match decision:
            case d.Bind(pod, node):
                self._bind(pod.name, pod.uid, node)
            case d.SetCondition(about) if about.kind != "Pod":
                self._set_condition(decision)
            case _:
                pass

    def _bind(self, name: str, uid: str, node: str) -> None:
        pod: types.Pod = self.objects["Pod", name]
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        status = msgspec.structs.replace(pod.status, phase="Running", start_time=self.stamp())
        self.scheduler.handle(events.BindSucceeded(uid, node), self.now)
        self.put("Pod", msgspec.structs.replace(pod, spec=spec, status=status))
        group = pod.spec.scheduling_group
        run = RUN if group is None else self.gang_run
        self.at(self.now + run, lambda: self.remove("Pod", name))
        busy = max(0.0, min(self.now + run, BEGIN + HOUR) - self.now) * (1 if group is None else CPU)
        self.outcome.busy += busy
        if group is None:
            self.outcome.pod_waits.append(self.now - self.created[name])
        else:
            self.outcome.gang_waits[group.pod_group_name or ""] = self.now - self.created[name]

    def _set_condition(self, decision: d.SetCondition) -> None:
        obj = self.objects.get((decision.about.kind, decision.about.name))
        if obj is None:
            return
        old = {each.type: each for each in obj.status.conditions or ()}
        before = old.get(decision.type)
        same = before is not None and before.status == decision.status
        time = before.last_transition_time if same and before else self.stamp()
        old[decision.type] = types.Condition(
            decision.type, decision.status, decision.reason, decision.message, last_transition_time=time
        )
        status = msgspec.structs.replace(obj.status, conditions=tuple(old.values()))
        self.put(decision.about.kind, msgspec.structs.replace(obj, status=status))

    # --- time --------------------------------------------------------------------------------------

    def _cycles(self) -> None:
        while True:
            decisions = self.scheduler.next(self.now)
            for decision in decisions:
                self._carry_out(decision)
            if not decisions and self.scheduler.is_idle(self.now):
                return

    def run(self, until: float = BEGIN + HOUR) -> Outcome:
        """Let time pass."""
        while True:
            self._cycles()
            timer = self.scheduler.wake_at(self.now)
            following = min(time for time in (timer, self.due[0][0] if self.due else None, until) if time is not None)
            if following >= until:
                break
            self.now = max(self.now, following)
            while self.due and self.due[0][0] <= self.now:
                heapq.heappop(self.due)[2]()
        waits = [until - self.created[name] for (kind, name), pod in self.objects.items() if _is_small(kind, pod)]
        self.outcome.pod_waits += waits
        return self.outcome


def _is_small(kind: str, pod: Any) -> bool:
    return kind == "Pod" and not pod.spec.node_name and pod.spec.scheduling_group is None


def an_hour(
    load: float, size: int, gangs: int, *, reservations: bool, seed: int, durations: bool = False
) -> tuple[Outcome, list[d.Decision]]:
    """One hour of the stream, with some gangs after ten minutes."""
    hour = Hour(reservations=reservations, durations=durations)
    for number, when in enumerate(arrivals(load, seed)):
        hour.at(when, lambda name=f"p{number}": hour.small_pod(name))
    for each in range(gangs):
        hour.at(BEGIN + ARRIVAL, lambda name=f"g{each}": hour.gang(name, size))
    return hour.run(), hour.decisions


def least_late(arrivals: list[float], size: int, begins: list[float]) -> float:
    """The 99th percentile of waiting in a queue without losses, if the gangs start at these times and nobody is killed.

    Pods are served in order by single cpus; those of the gangs' nodes take no pod that would still run when the first
    gang starts, and none until the last one has ended.
    """
    heaps = [[0.0] * ((NODES - size) * CPU), [0.0] * (size * CPU)]
    closed, opened = (min(begins) - RUN, max(begins) + RUN) if begins else (math.inf, math.inf)
    waits: list[float] = []
    for arrived in arrivals:
        starts = [max(arrived, heap[0]) if heap else math.inf for heap in heaps]
        if closed < starts[1] < opened:
            starts[1] = opened
        which = int(starts[1] < starts[0])
        heapq.heapreplace(heaps[which], starts[which] + RUN)
        waits.append(starts[which] - arrived)
    return sorted(waits)[math.ceil(0.99 * len(waits)) - 1]


def arrivals(load: float, seed: int, length: float = HOUR) -> list[float]:
    """When the pods of the stream come."""
    chance, when, found = random.Random(seed), BEGIN, list[float]()
    while (when := when + chance.expovariate(load * NODES * CPU / RUN)) < BEGIN + length:
        found.append(when)
    return found


def figures(seed: int = 1) -> Iterator[Figure]:
    """For each load, size and number of gangs: how long gangs wait, use of the nodes, and how long small pods wait."""
    for load, size, gangs in product(LOADS, SIZES, COUNTS):
        off = an_hour(load, size, gangs, reservations=False, seed=seed)[0]
        on = an_hour(load, size, gangs, reservations=True, seed=seed)[0]
        what = f"{load:.0%} load, {gangs} x {size} nodes"
        waits = sorted(on.gang_waits.values()) + [math.inf] * (gangs - len(on.gang_waits))
        bars = [PATIENCE + 2 * k * RUN + (k - 1) * RUN for k in range(1, gangs + 1)]
        said = ", ".join(f"{wait:.0f} of {bar:.0f}" for wait, bar in zip(waits, bars, strict=True))
        share = max((wait - PATIENCE) / (bar - PATIENCE) for wait, bar in zip(waits, bars, strict=True))
        note = f"bound after {said} s; without: {len(off.gang_waits)} of {gangs}"
        yield Figure(f"{what}: wait beyond patience, of its bar", share, "", ceiling=1, note=note)
        points = 100 * abs(off.utilisation - on.utilisation)
        yield Figure(f"{what}: use of nodes, difference", points, "points", ceiling=5)
        begins = [BEGIN + ARRIVAL + wait for wait in on.gang_waits.values()]
        least = least_late(arrivals(load, seed), size, begins)
        ratio = on.late / off.late if off.late else math.inf
        note = f"{on.late:.1f} s against {off.late:.1f}; in a queue without losses {least:.1f}"
        yield Figure(f"{what}: small pods, 99th percentile of waiting", ratio, "times", ceiling=3, note=note)


def _one_gang(load: float, size: int) -> Callable[[], Callable[[], Counter[str]]]:
    """A short stream and one gang of little patience; counts the seconds, rounded, until it is bound."""

    def prepare() -> Callable[[], Counter[str]]:
        hour = Hour(reservations=True, patience=30.0)
        for number, when in enumerate(arrivals(load, 1, SHORT)):
            hour.at(when, lambda name=f"p{number}": hour.small_pod(name))
        hour.at(BEGIN + RUN, lambda: hour.gang("g", size))

        def work() -> Counter[str]:
            waits = hour.run(BEGIN + SHORT).gang_waits
            return Counter({"gangs bound": len(waits), "seconds until bound": round(sum(waits.values()))})

        return work

    return prepare


def guarded() -> Iterator[GuardedWork]:
    for load, size in ((0.8, 2), (0.95, 4)):
        yield GuardedWork(
            f"starvation: {SHORT:.0f} s at {load:.0%} load, a gang of {size} nodes", _one_gang(load, size)
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    met = True
    for figure in figures(options.seed):
        print(figure, flush=True)
        met &= figure.met
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
