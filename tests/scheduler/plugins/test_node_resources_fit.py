"""NodeResourcesFit: free resources, rejections and scoring strategies, with known numbers."""

from __future__ import annotations

from muster.api import types
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.objects import a_gang, a_node, a_pod, of
from tests.build.scheduler import a_world


def fit(**strategy):
    return NodeResourcesFit({"scoringStrategy": strategy} if strategy else None)


def _with_disk():
    room = {"cpu": "4", "memory": "32Gi", "pods": "110", "ephemeral-storage": "10Gi"}
    return {"metadata": {"name": "disk"}, "status": {"allocatable": room}}


def test_a_node_is_refused_for_each_resource_it_lacks():
    cluster = a_cluster(a_node("n0", cpu=1, memory="1Gi"), a_node("n1", cpu=8, memory="64Gi"))
    question = asked(cluster, a_pod(cpu=2, memory="2Gi"), fit())
    assert question.nodes == {"n1"}
    assert question.text == "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."


def test_a_request_beyond_the_whole_node_is_final_and_one_beyond_what_is_free_is_not():
    cluster = a_cluster(a_node("small", cpu=1), a_node("busy", cpu=4), a_pod("other", cpu=3, memory="1Gi", node="busy"))
    question = asked(cluster, a_pod(cpu=2, memory="1Gi"), fit())
    assert question.counts == {"Insufficient cpu": 2}
    assert question.final == {"small"}


def test_the_culprits_name_the_resource():
    question = asked(a_cluster(a_node(cpu=1)), a_pod(cpu=2, memory="1Gi"), fit())
    assert question.trial.diagnose(question.shape).rejected_by == {"NodeResourcesFit", ("NodeResourcesFit", "cpu")}


def test_a_full_node_has_too_many_pods_even_for_a_pod_without_requests():
    cluster = a_cluster(a_node("n0", pods=1), a_pod("other", memory="1Gi", node="n0"))
    question = asked(cluster, a_pod(cpu=None, memory=None), fit())
    assert question.text == "0/1 nodes are available: 1 Too many pods."
    assert question.final == set()


def test_a_pod_without_requests_fits_where_nothing_is_free():
    cluster = a_cluster(a_node("n0", cpu=1), a_pod("other", cpu=1, memory="1Gi", node="n0"))
    assert asked(cluster, a_pod(cpu=None, memory=None), fit()).nodes == {"n0"}


def test_an_extended_resource_that_no_node_has_is_insufficient():
    question = asked(a_cluster(a_node()), a_pod(memory="1Gi", requests={"example.com/gpu": 1}), fit())
    assert question.text == "0/1 nodes are available: 1 Insufficient example.com/gpu."
    assert question.final == {"n0"}


def test_ignored_resources_and_groups_are_not_looked_at():
    cluster = a_cluster(a_node())
    pod = a_pod(memory="1Gi", requests={"example.com/gpu": 1})
    assert asked(cluster, pod, NodeResourcesFit({"ignoredResourceGroups": ["example.com"]})).nodes == {"n0"}
    assert asked(cluster, pod, NodeResourcesFit({"ignoredResources": ["example.com/gpu"]})).nodes == {"n0"}


def test_a_gang_is_planned_checked_and_bound_without_room_for_what_is_ignored():
    plugin = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/gpu"]}}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [plugin]}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    world = a_world([a_node("n0", cpu=2)], config={**kind, "profiles": [profile]})
    requests = {"cpu": "1", "example.com/gpu": "4"}
    containers = [{"name": "c", "resources": {"requests": requests, "limits": {"example.com/gpu": "4"}}}]
    world.add(a_gang("g", 2), *(a_pod(f"g-{i}", "g", containers=containers) for i in range(2))).run()
    assert world.pending() == []

    world.add(a_gang("h", 2, priority=5))
    world.add(*(a_pod(f"h-{i}", "h", priority=5, containers=containers) for i in range(2))).wait(3)
    assert world.pending() == []
    assert sorted(world.evicted()) == ["g-0", "g-1"]


def test_seats_are_what_fits_beside_what_runs():
    cluster = a_cluster(
        a_node("n0", cpu=4, pods=3), a_node("n1", cpu=4), a_pod("other", cpu=1, memory="1Gi", node="n0")
    )
    question = asked(cluster, a_pod(cpu="1500m", memory="1Gi"), fit())
    seats = question.trial.seats(question.shape)
    assert {cluster.names[slot]: int(count) for slot, count in enumerate(seats)} == {"n0": 2, "n1": 2}
    assert evaluator_of(question.cluster).independent(question.shape)


def test_least_allocated_on_an_empty_node_is_85():
    assert asked(a_cluster(a_node(cpu=4, memory="32Gi")), a_pod(cpu=1, memory="1Gi"), fit()).scores() == {"n0": 85}


def test_least_allocated_without_requests_uses_the_filler_and_is_98():
    assert asked(a_cluster(a_node(cpu=4, memory="32Gi")), a_pod(cpu=None, memory=None), fit()).scores() == {"n0": 98}


def test_most_allocated_prefers_the_fuller_node():
    nodes = [a_node(name, cpu=4, memory="32Gi") for name in ("full", "empty")]
    cluster = a_cluster(*nodes, a_pod("other", cpu=2, memory="16Gi", node="full"))
    scores = asked(cluster, a_pod(cpu=1, memory="8Gi"), fit(type="MostAllocated")).scores()
    assert scores == {"full": (75 + 75) // 2, "empty": (25 + 25) // 2}


def test_extended_resources_count_only_for_pods_that_ask_for_them():
    plugin = fit(
        type="MostAllocated", resources=[{"name": "example.com/gpu", "weight": 3}, {"name": "cpu", "weight": 1}]
    )
    cluster = a_cluster(a_node("n0", cpu=4, extended={"example.com/gpu": 4}))
    assert asked(cluster, a_pod(cpu=2, memory="1Gi"), plugin).scores() == {"n0": 50}
    assert asked(cluster, a_pod(cpu=2, memory="1Gi", requests={"example.com/gpu": 1}), plugin).scores() == {
        "n0": (3 * 25 + 50) // 4
    }


def test_a_resource_the_node_has_none_of_is_left_out():
    plugin = fit(type="LeastAllocated", resources=[{"name": "ephemeral-storage"}, {"name": "cpu"}])
    cluster = a_cluster(a_node("n0", cpu=4), of(types.Node, _with_disk()))
    assert asked(cluster, a_pod(cpu=1, memory="1Gi"), plugin).scores() == {"n0": 75, "disk": (75 + 100) // 2}


def test_requested_to_capacity_ratio_follows_the_curve():
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    plugin = fit(
        type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape}, resources=[{"name": "cpu"}]
    )
    cluster = a_cluster(a_node("n0", cpu=4), a_node("n1", cpu=3))
    assert asked(cluster, a_pod(cpu=1, memory="1Gi"), plugin).scores() == {"n0": 25, "n1": 33}


def test_a_falling_curve_is_cut_towards_zero_and_rates_of_zero_do_not_take_part():
    shape = [{"utilization": 0, "score": 10}, {"utilization": 70, "score": 0}]
    plugin = fit(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})
    cluster = a_cluster(a_node("n0", cpu=4, memory="10Gi"))
    # cpu is at 25 percent: 100 - int(100 * 25 / 70) = 65; memory is beyond the curve and at 0.
    assert asked(cluster, a_pod(cpu=1, memory="8Gi"), plugin).scores() == {"n0": 65}
