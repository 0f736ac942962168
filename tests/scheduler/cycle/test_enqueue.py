"""Where an entity belongs in the queue after a change, and which changes requeue which entity."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface.cluster_events import NODE_LABELS, POD_GONE, POD_PLACED, STORAGE
from muster.scheduler.plugins.node_affinity import NodeAffinity
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.plugins.pod_topology_spread import PodTopologySpread
from muster.scheduler.plugins.volume_binding import VolumeBinding
from muster.scheduler.runtime.config import load
from tests.build.objects import ZONE, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world


class AfterTheDatabase(Plugin):
    """Somebody's own rule: pods wait until a database runs, wherever that is."""

    name = "AfterTheDatabase"
    filter_depends_on = DependsOn.PODS
    message = "node(s) had no database to talk to"
    requeue_on = frozenset((POD_PLACED,))
    pod_labels = frozenset(("app",))

    def concerns(self, shape):
        return (shape.pod.metadata.labels or {}).get("app") == "web"

    def filter(self, shape, cluster, slots):
        runs = any((entry.pod.metadata.labels or {}).get("app") == "db" for entry in cluster.pods.values())
        return np.full(cluster.alive[slots].shape, runs)


def a_world_with_that_rule() -> TestWorld:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "AfterTheDatabase"}]}},
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    world = a_world()
    world.scheduler = Scheduler(load(document, extra=[AfterTheDatabase]))
    world.restart()
    return world.add(a_node("n0", cpu=4))


def test_the_cures_of_somebodys_own_rule_wake_whom_it_refused():
    world = a_world_with_that_rule()
    world.add(a_pod("web", labels={"app": "web"})).run()
    assert world.pending() == ["web"]

    world.add(a_pod("noise", labels={"app": "noise"})).run()
    assert world.pending() == ["web"]
    world.add(a_pod("db", labels={"app": "db"})).run()

    assert world.pending() == []


def test_a_node_that_goes_takes_along_whom_others_keep_away_from():
    world = a_world([a_node("n1", zone="z"), a_node("n2", zone="z")])
    apart = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "loud"}}}
    quiet = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    world.add(a_pod("loud", node="n1", labels={"app": "loud"}), a_pod("quiet", affinity=quiet)).run()
    assert world.pending() == ["quiet"]

    world.remove("Node", "n1")
    world.run()

    assert world.pending() == []


def test_a_pod_of_an_unknown_node_can_go_while_others_wait():
    world = a_world()
    world.add(a_pod("ghost", node="never-seen"), a_pod("waits"), a_pod("other", cpu=2)).run()

    world.finish("ghost")
    world.run()

    assert world.pending() == ["other", "waits"]


def test_a_pod_that_asks_for_less_than_before_makes_room():
    world = a_world([a_node("n0", cpu=2)])
    big = a_pod("big", cpu=2, node="n0")
    world.add(big, a_pod("waits", cpu=1)).run()
    assert world.pending() == ["waits"]

    container = msgspec.structs.replace(
        big.spec.containers[0], resources=a_pod("x", cpu=1).spec.containers[0].resources
    )
    world.add(msgspec.structs.replace(big, spec=msgspec.structs.replace(big.spec, containers=(container,)))).run()

    assert world.pending() == []


def test_a_node_update_that_changes_nothing_wakes_nobody():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("waits", cpu=2)).run()
    before = world.scheduler.state.version

    world.add(a_node("n0", cpu=1))

    assert world.scheduler.state.version == before
    assert not world.scheduler.state.signals.pending


@pytest.mark.parametrize(
    ("rule", "change", "called"),
    [
        (PodTopologySpread, POD_GONE, True),
        (VolumeBinding, STORAGE, True),
        (NodeAffinity, NODE_LABELS, False),  # the node itself shows that
        (NodeResourcesFit, POD_GONE, False),
    ],
)
def test_a_rule_is_called_for_changes_that_no_node_shows(rule: type[Plugin], change: str, called: bool):
    assert change in rule.requeue_on
    assert (change in rule().gains) is called


def test_a_rule_about_a_nodes_load_may_be_cured_by_more_load():
    class Crowded(Plugin):
        name = "Crowded"
        filter_depends_on = DependsOn.USAGE
        requeue_on = frozenset((POD_PLACED, POD_GONE))

    assert Crowded().gains == {POD_PLACED}


def test_a_gated_member_holds_its_whole_gang():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 2), *pods(2, "g"), a_pod("held", "g", gates=["example.com/hold"]))
    world.wait(3)
    assert world.bound() == {}
    assert world.condition("PodGroup", "g").reason == "SchedulingGated"

    world.add(a_pod("held", "g")).run()

    assert len(world.bound()) == 3


def test_a_root_without_a_priority_takes_the_lowest_of_its_members_and_places_the_highest_first():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_gang("g", 1, priority=None), a_pod("low", "g", priority=1), a_pod("high", "g", priority=9)).run()

    assert set(world.bound()) == {"high"}


def test_a_root_whose_class_has_not_given_it_a_priority_is_not_tried():
    world = a_world([a_node("n0", cpu=2)])
    gang = a_gang("g", 2, priority=None)
    named = msgspec.structs.replace(gang, spec=msgspec.structs.replace(gang.spec, priority_class_name="ten"))
    world.add(named, a_pod("good", "g", priority=10), a_pod("odd", "g", priority=20)).run()
    assert not world.bound()

    filled = msgspec.structs.replace(named, spec=msgspec.structs.replace(named.spec, priority=10))
    world.add(filled).run()

    assert not world.bound()
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.reason == "SchedulerError"


def test_members_that_arrive_while_binds_are_in_flight_wait_for_them():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 2), *pods(2, "g"))
    binds = [x for x in world.scheduler.next(world.now) if isinstance(x, d.Bind)]
    assert len(binds) == 2
    world.add(a_pod("late", "g"))
    assert not [x for x in world.scheduler.next(world.now) if isinstance(x, d.Bind)]

    for bind in binds:
        world._carry_out(bind)
    world.run()

    assert "late" in world.bound()


def test_freed_room_wakes_a_waiting_gang_without_a_timer():
    world = a_world([a_node("n0", cpu=4)])
    world.add(*[a_pod(f"old-{i}", node="n0") for i in range(2)])
    world.add(a_gang("g", 4), *pods(4, "g")).run()
    attempts = next(r for r in world.scheduler.view().queue() if r.key.name == "g").attempts
    world.remove("Pod", "old-0")
    world.run()
    assert next(r for r in world.scheduler.view().queue() if r.key.name == "g").attempts == attempts, (
        "not enough: not tried"
    )

    world.remove("Pod", "old-1")
    world.run()

    assert len(world.bound("g")) == 4


def test_a_child_that_grows_beside_a_running_tree_costs_no_attempts_until_it_is_complete():
    world = a_world([a_node("n0", cpu=16)])
    world.add(a_composite("root", 1), a_gang("first", 1, parent="root"), a_gang("later", 5, parent="root"))
    world.add(*pods(1, "first")).run()
    for i in range(4):
        world.add(a_pod(f"later-{i}", "later")).run()
    root = next(r for r in world.scheduler.view().queue() if r.key.name == "root")
    assert root.attempts <= 1
    world.wait(3)
    assert world.condition("PodGroup", "later").message == "4 of 5 members exist"

    world.add(a_pod("later-4", "later")).run()

    assert len(world.bound("later")) == 5, "bound at once: no backoff was earned"


def test_members_of_an_incomplete_child_do_not_wake_a_tree_that_failed_for_another_reason():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("root", 1), a_gang("big", 2, parent="root"), a_gang("slow", 5, parent="root"))
    world.add(*pods(2, "big", cpu=4)).run()
    root = next(iter(world.scheduler.view().queue()))
    attempts = root.attempts
    for i in range(4):
        world.add(a_pod(f"slow-{i}", "slow")).run()
    assert root.attempts == attempts


def test_a_pod_that_has_the_name_of_another_is_queued_in_its_place():
    world = a_world().add(a_pod("p"))
    pod = a_pod("p")
    world.add(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid="second")))
    (entity,) = world.scheduler.state.queue.entities.values()
    assert entity.uid == "second"
