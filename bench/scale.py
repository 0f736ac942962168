"""The largest cluster that we measure: 100,000 nodes and 200,000 running pods, in one process.

What it takes to take them in (from the bytes of the lists to a scheduler that is ready, and the memory of the process
after that), and what decisions cost there: a gang of 1,000, one inside a rack, pods that are spread over zones or over
nodes. Then what must not grow with the cluster: 20,000 groups with parents, and updates that change nothing. Times are
processor time. `python -m bench.scale [--nodes N] [--pods N]`.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from bench.figures import Figure
from bench.gangs import RACK
from bench.guard import GuardedWork
from bench.objects import HOSTNAME, ZONE, a_composite, a_gang, a_node, a_pod, running_pod
from muster.api.types import Node, Pod
from muster.engine.metrics import Metrics
from muster.engine.settings import GC_THRESHOLDS
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import CacheSynced, Event, ObjectUpdated
from muster.scheduler.runtime.config import default_config

NODES, PODS, PER_RACK, ZONES = 100_000, 200_000, 200, 10
PAGE = 500
UPDATES = 20_000

T = TypeVar("T")


class ListPage(msgspec.Struct, Generic[T], gc=False):
    items: list[T]


# --- intake ----------------------------------------------------------------------------------------


def node_json(number: int) -> dict[str, Any]:
    """A node of ordinary size: labels, a dozen images, conditions."""
    name = f"node-{number}"
    labels = {HOSTNAME: name, RACK: f"rack-{number // PER_RACK}", ZONE: f"zone-{number % ZONES}", "pool": "gpu"}
    images = [{"names": [f"registry.example.com/team/app-{i}:1.{i}"], "sizeBytes": 50_000_000 + i} for i in range(12)]
    conditions = [{"type": kind, "status": "False"} for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-uid-{number}", "resourceVersion": str(number), "labels": labels},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {"capacity": room, "allocatable": room, "images": images, "conditions": conditions},
    }


def pages(make: Callable[[int], dict[str, Any]], count: int) -> Iterator[bytes]:
    for start in range(0, count, PAGE):
        yield msgspec.json.encode({"items": [make(number) for number in range(start, min(start + PAGE, count))]})


class LargeCluster:
    """A scheduler that is given a cluster page by page, and the processor time that it took."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.nodes = nodes
        self.scheduler = Scheduler(default_config())
        self.metrics = Metrics()
        self.known: dict[tuple[str, str], Any] = {}  # as the engine keeps them
        self.seconds = 0.0
        gc.set_threshold(*GC_THRESHOLDS)
        self._take_in("Node", msgspec.json.Decoder(ListPage[Node]), pages(node_json, nodes))
        self._take_in("Pod", msgspec.json.Decoder(ListPage[Pod]), pages(lambda n: running_pod(n, n, nodes), pods))
        self.seconds += timed(self._ready)

    def _take_in(self, kind: str, decoder: msgspec.json.Decoder[Any], data: Iterator[bytes]) -> None:
        for page in data:
            self.seconds += timed(lambda page=page: self._handle_page(kind, decoder.decode(page).items))

    def _handle_page(self, kind: str, objects: list[Any]) -> None:
        for obj in objects:
            self.known[obj.metadata.namespace, obj.metadata.name] = obj
            self.handle(ObjectUpdated(kind, obj))

    def _ready(self) -> None:
        gc.collect()
        gc.freeze()
        self.handle(CacheSynced())
        self.decide()

    def handle(self, event: Event) -> None:
        self.metrics.handled(event, 1.0)
        self.scheduler.handle(event, 1.0)

    def decide(self) -> list[Bind]:
        """Everything that waits; what was bound."""
        binds: list[Bind] = []
        while True:
            decisions = self.scheduler.next(1.0)
            binds += [decision for decision in decisions if isinstance(decision, Bind)]
            if not decisions and self.scheduler.is_idle(1.0):
                return binds


def timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def memory_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


# --- decisions -------------------------------------------------------------------------------------


def decision(site: LargeCluster, name: str, size: int, topology: str | None = None, **spec: Any) -> float:
    """Milliseconds from the last member's arrival to the binds."""
    site.handle(ObjectUpdated("PodGroup", a_gang(name, size, topology=topology)))
    labels = {"app": name}
    for number in range(size):
        site.handle(ObjectUpdated("Pod", a_pod(f"{name}-{number}", "1", "1Gi", group=name, labels=labels, **spec)))
    binds: list[Bind] = []
    took = timed(lambda: binds.extend(site.decide()))
    assert len(binds) == size, f"{len(binds)} of {size} pods of {name} were bound"
    return took * 1000


def spread_over(key: str, app: str) -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": {"app": app}}}]}


# --- what must not grow ----------------------------------------------------------------------------


def groups_with_parents(count: int) -> list[Event]:
    """Trees of one composite and three gangs; every group comes before its parent."""
    found: list[Event] = []
    for number in range(count // 4):
        root = f"root-{number}"
        children = (a_gang(f"{root}-{i}", 2, parentCompositePodGroupName=root) for i in range(3))
        found += [ObjectUpdated("PodGroup", child) for child in children]
        found.append(ObjectUpdated("CompositePodGroup", a_composite(root, 3)))
    return found


def take_in(scheduler: Scheduler, events: list[Event]) -> None:
    for event in events:
        scheduler.handle(event, 1.0)


def microseconds_each(scheduler: Scheduler, events: list[Event]) -> float:
    gc.collect()
    gc.freeze()
    return timed(lambda: take_in(scheduler, events)) / len(events) * 1e6


def unchanged(kind: str, data: dict[str, Any], into: type[Any]) -> list[Event]:
    """The same object again and again, decoded anew each time, with another version and other times in its status."""
    found: list[Event] = []
    for version in range(UPDATES):
        data["metadata"]["resourceVersion"] = str(1_000_000 + version)
        for condition in data["status"]["conditions"]:
            condition["lastHeartbeatTime"] = condition["lastTransitionTime"] = f"2026-01-01T00:00:{version % 60:02d}Z"
        found.append(ObjectUpdated(kind, msgspec.json.decode(msgspec.json.encode(data), type=into)))
    return found


def unchanged_updates(scheduler: Scheduler, nodes: int) -> Iterator[tuple[str, float]]:
    yield "a pod", microseconds_each(scheduler, unchanged("Pod", running_pod(7, 7, nodes), Pod))
    yield "a node", microseconds_each(scheduler, unchanged("Node", node_json(7), Node))
    group = msgspec.to_builtins(a_gang("same", 4))
    group["status"] = {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "r"}]}
    kind: Any = type(a_gang("same", 4))
    take_in(scheduler, [ObjectUpdated("PodGroup", msgspec.convert(group, kind))])
    yield "a group", microseconds_each(scheduler, unchanged("PodGroup", group, kind))


# --- the page --------------------------------------------------------------------------------------


def measure(nodes: int, pods: int) -> dict[str, float]:
    """All figures, by name; in a process of its own, because its memory is one of them."""
    site = LargeCluster(nodes, pods)
    found = {"intake, s": site.seconds, "memory, MiB": memory_mib()}
    found["gang"] = decision(site, "gang", 1000)
    found["rack"] = decision(site, "rack", 1000, RACK)
    found["zones"] = decision(site, "zones", 30, **spread_over(ZONE, "zones"))
    found["hosts"] = decision(site, "hosts", 30, **spread_over(HOSTNAME, "hosts"))
    again = decision(site, "again", 30, **spread_over(ZONE, "again"))
    found["zones again"] = again
    found["groups"] = timed(lambda: take_in(site.scheduler, groups_with_parents(20_000)))
    found |= {f"unchanged {kind}": took for kind, took in unchanged_updates(site.scheduler, nodes)}
    return found


def figures(nodes: int = NODES, pods: int = PODS) -> Iterator[Figure]:
    command = [sys.executable, "-m", "bench.scale", "--measure", "--nodes", str(nodes), "--pods", str(pods)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, float] = json.loads(done.stdout)
    size = f"{nodes:,} nodes, {pods:,} pods"
    yield Figure(f"{size}: intake", found["intake, s"], "s", ceiling=20)
    yield Figure(f"{size}: memory", found["memory, MiB"], "MiB", ceiling=1228)
    yield Figure(f"{size}: a gang of 1,000", found["gang"], "ms", ceiling=300)
    yield Figure(f"{size}: a gang of 1,000 in a rack", found["rack"], "ms", ceiling=100)
    yield Figure(f"{size}: 30 pods spread over zones", found["zones"], "ms", ceiling=200)
    yield Figure(f"{size}: 30 pods spread over zones, a second time", found["zones again"], "ms", ceiling=200)
    yield Figure(f"{size}: 30 pods spread over nodes", found["hosts"], "ms", ceiling=200)
    yield Figure("20,000 groups with parents", found["groups"], "s", ceiling=1)
    for kind in ("a pod", "a node", "a group"):
        yield Figure(f"an update of {kind} that changes nothing", found[f"unchanged {kind}"], "µs", ceiling=20)


# --- the quick form --------------------------------------------------------------------------------


def a_cluster(nodes: int) -> Scheduler:
    scheduler = Scheduler(default_config())
    for number in range(nodes):
        labels = {RACK: f"rack-{number // PER_RACK}", ZONE: f"zone-{number % ZONES}"}
        scheduler.handle(ObjectUpdated("Node", a_node(f"node-{number}", "64", "256Gi", labels)), 0.0)
    scheduler.handle(CacheSynced(), 0.0)
    return scheduler


def one_gang(size: int, topology: str | None = None, **spec: Any) -> Callable[[], Callable[[], object]]:
    def prepare() -> Callable[[], object]:
        scheduler = a_cluster(5_000)
        scheduler.handle(ObjectUpdated("PodGroup", a_gang("g", size, topology=topology)), 0.0)
        for number in range(size):
            pod = a_pod(f"g-{number}", "1", "1Gi", group="g", labels={"app": "g"}, **spec)
            scheduler.handle(ObjectUpdated("Pod", pod), 0.0)

        def decide() -> None:
            while scheduler.next(1.0):
                pass

        return decide

    return prepare


def _intake_of_groups() -> Callable[[], object]:
    scheduler, events = Scheduler(default_config()), groups_with_parents(4_000)
    return lambda: take_in(scheduler, events)


def _unchanged_pods() -> Callable[[], object]:
    scheduler = a_cluster(10)
    events: list[Event] = []
    for number in range(5_000):
        data = msgspec.json.encode(running_pod(7, number, 10))
        events.append(ObjectUpdated("Pod", msgspec.json.decode(data, type=Pod)))
    return lambda: take_in(scheduler, events)


def guarded() -> Iterator[GuardedWork]:
    yield GuardedWork("5,000 nodes: a gang of 500", one_gang(500))
    yield GuardedWork("5,000 nodes: a gang of 500 in a rack", one_gang(500, RACK))
    yield GuardedWork("5,000 nodes: 30 pods spread over zones", one_gang(30, **spread_over(ZONE, "g")))
    yield GuardedWork("5,000 nodes: 30 pods spread over nodes", one_gang(30, **spread_over(HOSTNAME, "g")))
    yield GuardedWork("4,000 groups with parents", _intake_of_groups)
    yield GuardedWork("5,000 updates of a pod that change nothing", _unchanged_pods)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--measure", action="store_true", help="measure in this process and print JSON")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.nodes, arguments.pods)))
        return
    for figure in figures(arguments.nodes, arguments.pods):
        print(figure, flush=True)


if __name__ == "__main__":
    main()
