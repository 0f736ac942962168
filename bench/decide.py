"""How fast the scheduler decides: pods placed per second on plain columns, no queue and no I/O.

Run: python bench/decide.py [--quick]
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from bench.figures import Figure
from bench.objects import HOSTNAME, ZONE, a_node, a_pod
from muster.api.types import Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import default_profile
from muster.scheduler.runtime.trial import Trial

PROFILE = default_profile()


def web_pod(name: str, cpu: str = "500m", node: str = "", **spec: Any) -> Pod:
    labels = {"app": "web", "index": name}
    return a_pod(name, cpu, "1Gi", node=node, labels=labels, container={"image": "app"}, started=True, **spec)


def a_cluster(size: int) -> Cluster:
    cluster = Cluster()
    for number in range(size):
        labels = {ZONE: f"zone-{number % 3}"}
        cluster.change("Node", a_node(f"node-{number}", "64", "256Gi", labels, ephemeral_storage="500Gi"))
    return cluster


def one_by_one(trial: Trial, shapes: Sequence[Shape], count: int) -> int:
    for turn in range(count):
        shape = shapes[turn % len(shapes)]
        slot = trial.best(shape)
        if slot < 0:
            return turn
        trial.place(shape, slot)
    return count


def rate(cluster: Cluster, pods: Iterable[Pod], count: int, how: Callable[..., int] = one_by_one) -> float:
    """Decisions per second in the best of three runs, the first decision of each shape not counted."""
    evaluator = Evaluator(cluster)
    shapes = [evaluator.shape(pod, PROFILE) for pod in pods]
    return max(_once(evaluator, shapes, count, how) for _ in range(3))


def _once(evaluator: Evaluator, shapes: Sequence[Shape], count: int, how: Callable[..., int]) -> float:
    with evaluator.trial() as trial:
        for shape in shapes:
            trial.best(shape)
        begin = time.perf_counter()
        done = how(trial, shapes, count)
        spent = time.perf_counter() - begin
    if done != count:
        raise SystemExit(f"only {done} of {count} pods found a node")
    return count / spent


def in_one_pass(trial: Trial, shapes: Sequence[Shape], count: int) -> int:
    return len(trial.place_many(shapes[0], count))


def spread_pod() -> Pod:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return web_pod("spread", topologySpreadConstraints=[rule | {"labelSelector": {"matchLabels": {"app": "web"}}}])


def lonely_pod() -> Pod:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return web_pod("lonely", affinity={"podAntiAffinity": required})


def events(cluster: Cluster, count: int) -> tuple[float, float]:
    """Pod events per second into the cluster, in the best tenth: new bound pods, then updates of them."""
    pods = [web_pod(f"p{i}", cpu="100m", node=f"node-{i % cluster.size}") for i in range(count)]
    later = [msgspec.json.decode(msgspec.json.encode(pod), type=Pod) for pod in pods]
    gc.collect()
    gc.freeze()  # as the shell does once its lists are complete
    return _best_tenth(cluster, pods), _best_tenth(cluster, later)


def _best_tenth(cluster: Cluster, pods: list[Pod]) -> float:
    size = len(pods) // 10
    best = 0.0
    for start in range(0, len(pods), size):
        begin = time.perf_counter()
        for pod in pods[start : start + size]:
            cluster.change("Pod", pod)
        best = max(best, size / (time.perf_counter() - begin))
    return best


def figures(*, quick: bool = False) -> Iterator[Figure]:
    pods, few = (2_000, 1_000) if quick else (10_000, 3_000)
    cluster = a_cluster(5_000)

    def per_second(what: str, found: float, floor: float) -> Figure:
        return Figure(f"5,000 nodes, {what}", found, "decisions/s", floor=floor)

    one = rate(cluster, [web_pod("one")], pods)
    yield per_second("one shape, one at a time", one, 10_000)
    yield per_second("one shape, in one pass", rate(cluster, [web_pod("one")], 10_000, in_one_pass), 50_000)
    various = [web_pod(f"v{i}", cpu=f"{100 + i}m") for i in range(200)]
    yield per_second("200 shapes in turn", rate(cluster, various, few), 4_000)
    yield per_second("hard zone spreading", rate(cluster, [spread_pod()], few), 3_000)
    yield per_second("required hostname anti-affinity", rate(cluster, [lonely_pod()], few), 3_000)
    fresh, updates = events(cluster, 10_000 if quick else 50_000)
    yield Figure("new bound pods into the cluster", fresh, "events/s", floor=50_000)
    yield Figure("updates of bound pods into the cluster", updates, "events/s", floor=50_000)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Figure("memory with 5,000 nodes and the pods", memory, "MB", ceiling=500)
    del cluster
    large = a_cluster(50_000)
    cost = one / rate(large, [web_pod("one")], 2_000)
    yield Figure("cost of a decision at 50,000 nodes against 5,000", cost, "times", ceiling=15)
    cost = rate(a_cluster(5_000), [spread_pod()], 500) / rate(large, [spread_pod()], 500)
    yield Figure("the same with hard zone spreading", cost, "times", ceiling=15)


def main() -> None:
    for figure in figures(quick="--quick" in sys.argv):
        print(figure, flush=True)


if __name__ == "__main__":
    main()
