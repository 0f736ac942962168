"""The cluster under events: what counts where, and what is no news."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from muster.scheduler.cache.arrays import ChangeLog
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.node_columns import NodeColumns
from muster.scheduler.interface import cluster_events
from muster.scheduler.runtime.profile import default_profile
from tests.scheduler.constraints.builders import ZONE, a_cluster, a_node, a_pod, asked
from tests.scheduler.evaluators import evaluator_of

PROFILE = default_profile()


def cpu(cluster: Cluster, name: str = "n0") -> int:
    return int(cluster.used[0, cluster.index[name]])


# --- nodes ------------------------------------------------------------------------------------------


def test_a_node_becomes_a_column():
    cluster = a_cluster(a_node("n0", cpu="2500m", memory="1Gi", pods=7, gpu=3))
    room = dict(zip(cluster.resources, cluster.alloc[:, 0].tolist(), strict=True))
    assert room == {"cpu": 2500, "memory": 1024**3, "pods": 7, "example.com/gpu": 3}
    assert cluster.names == ["n0"]
    assert cluster.alive.tolist() == [True]


def test_columns_grow_with_the_number_of_nodes_and_keep_what_they_hold():
    cluster = a_cluster(a_node("n0", zone="a"), a_pod("p", cpu=1, on="n0", labels={"app": "x"}))
    cluster.labels(ZONE)
    cluster.image_sizes("app:latest")
    for i in range(1, 300):
        cluster.change("Node", a_node(f"n{i}", zone="b"))
    assert cluster.size == 300
    assert cpu(cluster) == 1000
    assert cluster.label_value(ZONE, int(cluster.labels(ZONE)[0])) == "a"
    assert (cluster.labels(ZONE) == cluster.label_id(ZONE, "b")).sum() == 299


def test_a_removed_nodes_slot_is_used_again():
    cluster = a_cluster(a_node("n0", zone="a", cpu=9), a_node("n1"))
    question = asked(cluster, a_pod())
    assert question.nodes == {"n0", "n1"}
    assert cluster.remove("Node", "", "n0") == {cluster_events.NODE_REMOVED}
    assert cluster.names[0] == ""
    assert question.nodes == {"n1"}
    cluster.change("Node", a_node("n2"))
    assert cluster.index["n2"] == 0
    assert cluster.labels(ZONE)[0] == 0
    assert question.nodes == {"n1", "n2"}
    assert cluster.remove("Node", "", "never was") == cluster_events.NOTHING


def test_a_heartbeat_is_no_news():
    cluster = a_cluster(a_node("n0"))
    before = cluster.usage_log.end
    assert cluster.change("Node", a_node("n0")) == cluster_events.NOTHING
    assert cluster.usage_log.end == before


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        ({"cpu": 8}, cluster_events.NODE_ALLOCATABLE),
        ({"unschedulable": True}, cluster_events.NODE_UNSCHEDULABLE),
        ({"taints": ["a=:NoSchedule"]}, cluster_events.NODE_TAINTS),
        ({"labels": {"a": "b"}}, cluster_events.NODE_LABELS),
        ({"images": {"app": 5}}, cluster_events.NODE_IMAGES),
    ],
)
def test_a_change_of_a_node_says_what_changed(other, kind):
    assert a_cluster(a_node("n0")).change("Node", a_node("n0", **other)) == {kind}


def test_ranks_do_not_depend_on_arrival_even_when_they_collide(monkeypatch):
    class Digest:
        def __init__(self, text: bytes, digest_size: int) -> None:
            self.text = text

        def digest(self) -> bytes:
            # Only the salt and the length of the name decide: alike names collide.
            _, salt, name = self.text.decode().split("/")
            return bytes([int(salt), len(name), 0, 0, 0, 0, 0, 0])

    monkeypatch.setattr("muster.scheduler.cache.node_columns.blake2b", Digest)
    ranks = []
    for order in ("abc", "cba", "bca"):
        columns = NodeColumns()
        for name in order:
            columns.set_node(a_node(name))
        ranks.append({name: int(columns.rank[columns.index[name]]) for name in order})
    assert ranks[0] == ranks[1] == ranks[2]
    assert len(set(ranks[0].values())) == 3


def test_labels_nobody_has_have_no_id():
    cluster = a_cluster(a_node("n0", zone="a"))
    assert cluster.label_id(ZONE, "b") == 0
    assert cluster.labels("never")[0] == 0


# --- pods -------------------------------------------------------------------------------------------


def test_a_bound_pod_counts_on_its_node():
    cluster = a_cluster(a_node(), a_pod("p", cpu=2, memory=None, on="n0"))
    assert cpu(cluster) == 2000
    assert cluster.used[2, 0] == 1
    assert cluster.nonzero[:, 0].tolist() == [2000, 200 * 1024**2]
    assert [entry.pod.metadata.name for entry in cluster.pods_on(0)] == ["p"]


def test_a_pod_without_a_node_does_not_count():
    cluster = a_cluster(a_node())
    assert cluster.change("Pod", a_pod("p")) == cluster_events.NOTHING
    assert cpu(cluster) == 0
    assert not cluster.pods


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_frees_its_room(phase):
    cluster = a_cluster(a_node(), a_pod("p", on="n0"))
    assert cluster.change("Pod", a_pod("p", on="n0", phase=phase)) == {cluster_events.POD_GONE}
    assert cpu(cluster) == 0
    assert cluster.change("Pod", a_pod("p", on="n0", phase=phase)) == cluster_events.NOTHING


def test_a_pod_being_deleted_keeps_its_room_until_it_is_gone():
    cluster = a_cluster(a_node(), a_pod("p", on="n0"))
    cluster.change("Pod", a_pod("p", on="n0", deleting=True))
    assert cpu(cluster) == 1000
    assert cluster.remove("Pod", "ns", "p") == {cluster_events.POD_GONE}
    assert cpu(cluster) == 0
    assert cluster.remove("Pod", "ns", "p") == cluster_events.NOTHING


def test_an_update_that_changes_nothing_the_scheduler_reads_is_no_news():
    cluster = a_cluster(a_node(), a_pod("p", on="n0"))
    before = cluster.usage_log.end
    running = a_pod("p", on="n0", phase="Running", terminationGracePeriodSeconds=5)
    assert cluster.change("Pod", running) == cluster_events.NOTHING
    assert cluster.usage_log.end == before
    assert cluster.pods["ns-p"].pod is running


def test_a_resized_pod_counts_with_its_new_size():
    cluster = a_cluster(a_node(), a_pod("p", cpu=1, on="n0"))
    assert cluster_events.POD_CHANGED in cluster.change("Pod", a_pod("p", cpu=3, on="n0"))
    assert cpu(cluster) == 3000


def test_a_pod_on_an_unknown_node_counts_when_the_node_comes():
    cluster = a_cluster(a_pod("p", on="n0"))
    assert cluster.pods["ns-p"].slot == -1
    cluster.change("Node", a_node("n0"))
    assert cpu(cluster) == 1000


def test_pods_of_a_removed_node_wait_for_it_to_come_back_or_leave():
    cluster = a_cluster(a_node("n0"), a_pod("p", on="n0"), a_pod("q", on="n0"))
    cluster.remove("Node", "", "n0")
    assert not cluster.used.any()
    cluster.remove("Pod", "ns", "q")
    cluster.change("Node", a_node("n0"))
    assert cpu(cluster) == 1000
    assert set(cluster.pods) == {"ns-p"}


def test_a_pod_that_loses_its_node_no_longer_counts():
    cluster = a_cluster(a_node(), a_pod("p", on="n0"))
    assert cluster.change("Pod", a_pod("p")) == {cluster_events.POD_GONE}
    assert cpu(cluster) == 0


def test_a_new_pod_of_the_same_name_means_that_the_old_one_is_gone():
    cluster = a_cluster(a_node(), a_pod("p", on="n0"))
    again = a_pod("p", on="n0", cpu=2)
    again = msgspec.structs.replace(again, metadata=msgspec.structs.replace(again.metadata, uid="other"))
    cluster.change("Pod", again)
    assert cpu(cluster) == 2000
    assert cluster.remove("Pod", "ns", "p", "ns-p") == cluster_events.NOTHING
    assert cpu(cluster) == 2000
    assert cluster.remove("Pod", "ns", "p", "other") == {cluster_events.POD_GONE}
    assert cpu(cluster) == 0


def test_an_unknown_kind_is_no_news():
    cluster = a_cluster(a_node())
    assert cluster.change("ConfigMap", a_pod()) == cluster_events.NOTHING
    assert cluster.remove("ConfigMap", "ns", "x") == cluster_events.NOTHING


# --- assumptions ------------------------------------------------------------------------------------


def test_an_assumed_pod_counts_until_it_is_forgotten():
    cluster = a_cluster(a_node())
    cluster.assume(a_pod("p"), "n0")
    assert cpu(cluster) == 1000
    cluster.forget("ns-p")
    assert cpu(cluster) == 0
    cluster.forget("ns-p")


def test_the_watch_confirms_an_assumption_without_counting_twice():
    cluster = a_cluster(a_node())
    cluster.assume(a_pod("p"), "n0")
    cluster.change("Pod", a_pod("p"))
    assert cpu(cluster) == 1000
    before = cluster.usage_log.end
    cluster.change("Pod", a_pod("p", on="n0"))
    assert (cpu(cluster), cluster.usage_log.end) == (1000, before)
    cluster.forget("ns-p")
    assert cpu(cluster) == 1000


def test_a_pod_bound_elsewhere_than_assumed_moves():
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    cluster.assume(a_pod("p"), "n0")
    cluster.change("Pod", a_pod("p", on="n1"))
    assert (cpu(cluster, "n0"), cpu(cluster, "n1")) == (0, 1000)


def test_assuming_again_moves_the_pod():
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    cluster.assume(a_pod("p"), "n0")
    cluster.assume(a_pod("p"), "n1")
    assert (cpu(cluster, "n0"), cpu(cluster, "n1")) == (0, 1000)


# --- caches -----------------------------------------------------------------------------------------


def test_a_cache_that_fell_too_far_behind_the_log_is_built_anew():
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(4)))
    question = asked(cluster, a_pod(cpu=2))
    assert len(question.nodes) == 4
    footprint = cluster.footprint(a_pod("other", cpu=3))
    for turn in range(70_000):
        cluster.add_usage(footprint, turn % 4, 1 if turn % 8 < 4 else -1)
    cluster.add_usage(footprint, 0, 1)
    assert question.nodes == {"n1", "n2", "n3"}


def test_caches_grow_with_the_cluster():
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(100)))
    pod = a_pod(tolerations=[{"key": "x", "operator": "Exists", "effect": "NoSchedule"}])
    question = asked(cluster, pod)
    assert len(question.nodes) == 100
    assert question.trial.seats(question.shape).sum() == 400
    more = [a_node("soft", cpu=2, taints=["x=:PreferNoSchedule"]), a_node("hard", taints=["y=:NoSchedule"])]
    for node in more:
        cluster.change("Node", node)
    fresh = asked(a_cluster(*(a_node(f"n{i}") for i in range(100)), *more), pod)
    assert question.nodes == fresh.nodes
    assert question.scores() == fresh.scores()
    assert question.best == fresh.best
    assert question.trial.seats(question.shape).sum() == 402


def test_only_so_many_shapes_are_cached(monkeypatch):
    monkeypatch.setattr("muster.scheduler.runtime.evaluator._CACHED_SLOTS", 1)
    cluster = a_cluster(a_node())
    for i in range(70):
        evaluator_of(cluster).feasibility(evaluator_of(cluster).shape(a_pod(cpu=f"{i + 1}m"), PROFILE))
    assert len(evaluator_of(cluster)._feasibility) == 64


def test_a_log_says_which_slots_changed_since():
    log = ChangeLog()
    log.add(3)
    seen = log.end
    log.add_many(np.array([5, 6]))
    assert log.since(seen).tolist() == [5, 6]
    for slot in range(70_000):
        log.add(slot)
    assert log.since(seen) is None
    assert log.since(log.end).tolist() == []


def test_many_changes_at_once_are_logged_or_make_every_reader_start_anew():
    log = ChangeLog()
    log.add_many(np.arange(3000))
    assert log.since(0).tolist() == list(range(3000))
    seen = log.end
    log.add_many(np.arange(100_000))
    assert log.since(seen) is None
    log.add(7)
    assert log.since(log.end - 1).tolist() == [7]
