"""Metrics that are read from the scheduler at a scrape."""

from __future__ import annotations

from muster.engine.metrics import Metrics
from muster.engine.scheduler_collector import SchedulerCollector
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"scheduler_{name}", labels)


def test_pods_behind_a_gate_show_as_gated():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_pod("alone", gates=["wait"]))
    world.add(
        a_gang("g", 2), a_pod("g-0", "g", gates=["wait"]), a_pod("g-1", "g"), a_gang("short", 2), a_pod("s-0", "short")
    )
    world.run()

    metrics = Metrics()
    metrics.registry.register(SchedulerCollector(world.scheduler.view, lambda: 0))

    assert value(metrics, "pending_pods", queue="gated") == 3
    assert value(metrics, "pending_pods", queue="incomplete") == 1


def test_unschedulable_pods_are_counted_by_the_plugins_that_rejected_them():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("big", cpu=4), a_gang("g", 2), *pods(2, "g", cpu=4)).run()

    metrics = Metrics()
    metrics.registry.register(SchedulerCollector(world.scheduler.view, lambda: 3))

    assert value(metrics, "unschedulable_pods", plugin="NodeResourcesFit") == 3
    assert value(metrics, "queued_entities", queue="unschedulable", type="podgroup") == 1
    assert value(metrics, "queued_entities", queue="unschedulable", type="pod") == 1
    assert value(metrics, "cache_size", type="nodes") == 1
    assert value(metrics, "pending_async_api_calls") == 3


def test_without_a_view_only_calls_are_counted():
    metrics = Metrics()
    metrics.registry.register(SchedulerCollector(None, lambda: 3))

    assert value(metrics, "pending_async_api_calls") == 3
    assert value(metrics, "cache_size", type="nodes") is None
