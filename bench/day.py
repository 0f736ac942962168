"""`make day`: a day of a busy cluster in simulated time, and how long the longest scheduling cycle takes.

5,000 nodes in racks of 100; 20 pods a second come (single pods, gangs of four, some of them in one rack) and go after
five to fifteen minutes, at about 95 % load; 2,000 large groups wait (of one shape, of two shapes, trees of two rack
children), and when one of them has run another one takes its place; nodes fail and come back. The harness plays the
API server: what is decided happens at once. Time is that of the processor, so that neighbours on the machine do not
count; a cycle is what happens between two looks at the loop: some events, then `Scheduler.next`.

`python -m bench.day --hours 24 --seed 1`
"""

from __future__ import annotations

import argparse
import gc
import heapq
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from bench.figures import Figure
from bench.objects import a_gang, a_node, a_pod
from muster.api import groups as api
from muster.api import types
from muster.engine.settings import GC_THRESHOLDS
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.runtime.config import default_config

NODES, PER_RACK, CPU = 5000, 100, 8
RACK = "example.com/rack"
WAITING = 2000
PODS_PER_SECOND = 20
LONGEST_CYCLE = 0.25  # seconds
EVENTS_AT_ONCE = 256


class Day:
    """A scheduler, the objects around it, and what is due when."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scheduler = Scheduler(default_config())
        self.now = 1_767_225_600.0  # the start of 2026
        self.objects: dict[tuple[str, str], Any] = {}
        self.ends: list[tuple[float, str]] = []  # when the pods of a name's prefix are gone
        self.number = 0
        self.inbox: list[events.Event] = []
        self.cycles: list[float] = []
        self.longest = (0.0, "")  # seconds of a cycle, and what it was about
        self.seen = Counter[str]()
        self._fill()

    # --- objects -----------------------------------------------------------------------------------

    def _put(self, kind: str, obj: Any) -> None:
        self.objects[kind, obj.metadata.name] = obj
        self.inbox.append(events.ObjectUpdated(kind, obj))

    def _gone(self, kind: str, name: str) -> None:
        obj = self.objects.pop((kind, name), None)
        if obj is not None:
            self.inbox.append(events.ObjectDeleted(kind, obj.metadata.namespace or "", name, obj.metadata.uid))

    def _fill(self) -> None:
        for number in range(NODES):
            labels = {RACK: f"r{number // PER_RACK}"}
            self._put("Node", a_node(f"n{number}", str(CPU), labels=labels, uid=f"n{number}"))
            self._put("Pod", a_pod(f"service-{number}", "5", "4Gi", node=f"n{number}", started=True))
        self._take_in()
        self.scheduler.handle(events.CacheSynced(), self.now)
        for _ in range(WAITING):
            self._large_group()
        self._run_cycles()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)  # as the engine does once its lists are complete
        self.cycles.clear()
        self.longest = (0.0, "")

    def _name(self, kind: str) -> str:
        self.number += 1
        return f"{kind}-{self.number}"

    def _created(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _gang(self, name: str, sizes: list[str], topology: str | None = None, parent: str | None = None) -> None:
        more: dict[str, Any] = {"parentCompositePodGroupName": parent} if parent else {}
        self._put("PodGroup", a_gang(name, len(sizes), topology=topology, created=self._created(), **more))
        for index, cpu in enumerate(sizes):
            self._put("Pod", a_pod(f"{name}-{index}", cpu, "1Gi", group=name, started=True))

    def _large_group(self) -> None:
        kind, size = self.random.choice(("one", "two", "tree")), self.random.randint(40, 120)
        name = self._name(f"large-{kind}")
        if kind == "one":
            self._gang(name, ["3"] * size)
        elif kind == "two":
            self._gang(name, ["3"] * (size // 2) + ["2"] * (size // 2))
        else:
            spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
            meta = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": self._created()}
            self._put("CompositePodGroup", msgspec.convert({"metadata": meta, "spec": spec}, api.CompositePodGroup))
            for child in range(2):
                self._gang(f"{name}-{child}", ["2"] * self.random.randint(40, 60), RACK, parent=name)

    def _small_pods(self) -> None:
        for _ in range(PODS_PER_SECOND - 12):
            self._put("Pod", a_pod(self._name("single"), self.random.choice(("1", "2")), "1Gi", started=True))
        for topology in (None, None, RACK):
            self._gang(self._name("gang"), ["1"] * 4, topology)

    # --- the API server ----------------------------------------------------------------------------

    def _carry_out(self, decision: d.Decision) -> None:
        match decision:
            case d.Bind(pod, node):
                self.seen["binds"] += 1
                bound: types.Pod = self.objects["Pod", pod.name]
                spec = msgspec.structs.replace(bound.spec, node_name=node)
                status = msgspec.structs.replace(bound.status, phase="Running", start_time=self._created())
                self.objects["Pod", pod.name] = msgspec.structs.replace(bound, spec=spec, status=status)
                self.inbox.append(events.BindSucceeded(pod.uid, node))
                self.inbox.append(events.ObjectUpdated("Pod", self.objects["Pod", pod.name]))
                heapq.heappush(self.ends, (self.now + self.random.uniform(300, 900), pod.name))
            case d.SetCondition(about) if about.kind != "Pod":
                self.seen["conditions"] += 1
                self._set_condition(decision)
            case d.Evict():
                self.seen["evictions"] += 1
            case _:
                self.seen["other"] += 1

    def _set_condition(self, decision: d.SetCondition) -> None:
        key = (decision.about.kind, decision.about.name)
        obj = self.objects.get(key)
        if obj is None:
            return
        old = {each.type: each for each in obj.status.conditions or ()}
        before = old.get(decision.type)
        same = before is not None and before.status == decision.status
        old[decision.type] = types.Condition(
            decision.type,
            decision.status,
            decision.reason,
            decision.message,
            last_transition_time=before.last_transition_time if same and before else self._created(),
        )
        status = msgspec.structs.replace(obj.status, conditions=tuple(old.values()))
        self._put(decision.about.kind, msgspec.structs.replace(obj, status=status))

    def _end_pods(self) -> None:
        ended = Counter[str]()
        while self.ends and self.ends[0][0] <= self.now:
            _, name = heapq.heappop(self.ends)
            self._gone("Pod", name)
            if name.startswith("gang"):
                self._gone("PodGroup", name.rsplit("-", 1)[0])
            elif name.startswith("large"):
                ended["-".join(name.split("-")[:3])] += 1
        for large in ended:
            if not any(("Pod", f"{large}{suffix}") in self.objects for suffix in ("-0", "-0-0", "-1-0")):
                for kind, name in (("PodGroup", large), ("CompositePodGroup", large)):
                    self._gone(kind, name)
                for child in range(2):
                    self._gone("PodGroup", f"{large}-{child}")
                self.seen["large groups that ran"] += 1
                self._large_group()

    # --- time --------------------------------------------------------------------------------------

    def _take_in(self) -> None:
        for event in self.inbox:
            self.scheduler.handle(event, self.now)
        self.inbox.clear()

    def _run_cycles(self) -> None:
        while True:
            taken, self.inbox = self.inbox[:EVENTS_AT_ONCE], self.inbox[EVENTS_AT_ONCE:]
            began = time.process_time()
            for event in taken:
                self.scheduler.handle(event, self.now)
            decisions = self.scheduler.next(self.now)
            self.cycles.append(time.process_time() - began)
            if self.cycles[-1] > self.longest[0]:
                kinds = Counter(type(decision).__name__ for decision in decisions)
                self.longest = (self.cycles[-1], f"{len(taken)} events, {dict(kinds)}, at {self._created()}")
            for decision in decisions:
                self._carry_out(decision)
            if not decisions and not self.inbox and self.scheduler.is_idle(self.now):
                return

    def second(self, number: int) -> None:
        """One second of the day."""
        self.now += 1.0
        self._end_pods()
        self._small_pods()
        if number % 600 == 0:
            node = f"n{self.random.randrange(NODES)}"
            self._gone("Node", node)
            labels = {RACK: f"r{int(node[1:]) // PER_RACK}"}
            self._put("Node", a_node(node, str(CPU), labels=labels, uid=f"{node}-{number}"))
        self._run_cycles()

    def report(self, hours: float, took: float) -> Iterator[str]:
        """What the day was like."""
        cycles = sorted(self.cycles)
        over = sum(each > LONGEST_CYCLE for each in cycles)
        queue = self.scheduler.state.queue.entities
        yield f"{hours:g} hours in {took:.0f} s of processor time; {len(cycles):,} cycles; {dict(self.seen)}"
        attempts = sum(entity.attempts for entity in queue.values())
        yield f"waiting at the end: {len(queue):,} entities; attempts of those: {attempts:,}"
        for share in (0.5, 0.99, 0.999, 0.9999):
            yield f"cycle, {share:.2%} are below  {cycles[int(share * (len(cycles) - 1))] * 1000:.2f} ms"
        reached = "NO" if over else "yes"
        yield f"longest cycle  {cycles[-1] * 1000:.1f} ms (at most {LONGEST_CYCLE * 1000:.0f}: {reached})"
        yield f"the longest: {self.longest[1]}"


def figures(hours: float = 0.2, seed: int = 1) -> Iterator[Figure]:
    """The beginning of the day; the first reservations are made after five minutes."""
    day = Day(seed)
    for second in range(int(hours * 3600)):
        day.second(second)
    name = f"{hours:g} hours of a busy cluster: the longest turn"
    yield Figure(name, day.longest[0] * 1000, "ms", ceiling=LONGEST_CYCLE * 1000, note=day.longest[1])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    day = Day(options.seed)
    began = time.process_time()
    for second in range(int(options.hours * 3600)):
        day.second(second)
        if second % 900 == 899:
            print(f"after {(second + 1) / 3600:.2f} h: longest {max(day.cycles) * 1000:.1f} ms", flush=True)
    for line in day.report(options.hours, time.process_time() - began):
        print(line)
    return int(max(day.cycles) > LONGEST_CYCLE)


if __name__ == "__main__":
    sys.exit(main())
