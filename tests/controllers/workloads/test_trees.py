"""The trees of all kinds, as people would draw them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.expected_members import CREATED, READY, SCHEDULED
from muster.api.membership import COSCHEDULING_GROUPS, Facts
from muster.api.resources import JOBS, REPLICA_SETS, STATEFUL_SETS, Resource
from muster.controllers.workloads import by_annotation, coscheduling, job, jobset, kubeflow, leader_worker_set, ray
from muster.controllers.workloads.tree import Leaf, Node, Sight, Tree
from tests.controllers.workloads.owners import (
    JSON,
    UID,
    a_jobset,
    a_ray_cluster,
    a_replicated_job,
    a_template,
    an_lws,
    an_owner,
    lws_pods,
    ours,
)

U = UID[:8]


def drawn(tree: Tree) -> list[Any]:
    """A tree as nested lists: name, minimum, key of its topology, children."""

    def draw(node: Node) -> list[Any]:
        below = [] if isinstance(node, Leaf) else [draw(child) for child in node.children]
        short = node.name.replace(f"-{U}", "").removesuffix("-0") if f"-{U}" in node.name else node.name
        return [short, node.minimum, *([node.topology] if node.topology else []), *below]

    return [draw(root) for root in tree.roots]


def reasons(tree: Tree) -> list[str]:
    return [remark.reason for remark in tree.remarks]


def named(*leaves: str) -> Sight:
    return Sight({name: Facts({}, {}) for name in leaves})


# --- Job -------------------------------------------------------------------------------------------


def a_job(
    template: JSON | None = None, annotations: JSON | None = None, status: JSON | None = None, **spec: Any
) -> JSON:
    body = {
        "completionMode": "Indexed",
        "parallelism": 3,
        "completions": 3,
        "template": template or a_template(),
        **spec,
    }
    return an_owner(JOBS, "j", body, annotations=annotations, status=status or {})


SEEN = named(f"j-{U}")


@pytest.mark.parametrize(
    ("owner", "minimum"),
    [
        (a_job(), 3),
        (a_job(completions=9), None),
        (a_job(completionMode="NonIndexed"), None),
        (a_job(template=a_template(gang="2")), 2),
        (a_job(template=a_template(gang="none")), None),
        (a_job(status={"succeeded": 2}), 1),
    ],
)
def test_a_job_is_a_gang_where_it_is_fully_parallel_or_says_so(owner: JSON, minimum: int | None):
    tree = job.tree_of(owner, SEEN)

    assert drawn(tree) == [["j", minimum]]
    assert tree.whole == (minimum is not None)


def test_a_job_whose_pods_name_another_group_needs_none():
    assert job.tree_of(a_job(), Sight()).roots == ()


def test_a_suspended_job_has_no_group():
    assert job.tree_of(a_job(suspend=True), SEEN).roots == ()


def test_a_gang_that_is_no_gang_is_said_and_ignored():
    tree = job.tree_of(a_job(template=a_template(gang="many")), SEEN)

    assert drawn(tree) == [["j", 3]]
    assert reasons(tree) == ["BadAnnotation"]
    assert "none, all or a number" in tree.remarks[0].message


# --- JobSet ----------------------------------------------------------------------------------------


def test_a_jobset_is_a_tree_of_replicated_jobs_and_jobs():
    owner = a_jobset(a_replicated_job("driver"), a_replicated_job("workers", 2, 3), annotations=ours(topology="block"))

    assert drawn(jobset.tree_of(owner, Sight())) == [
        [
            "train",
            2,
            "block",
            ["train-driver-0", 1],
            ["train-workers", 2, ["train-workers-0", 3], ["train-workers-1", 3]],
        ]
    ]


def test_names_carry_the_attempt_and_equal_what_pods_say():
    tree = jobset.tree_of(a_jobset(a_replicated_job("w", 2, 2), status={"restarts": 4}), Sight())

    assert [leaf.name for leaf in tree.leaves()] == [f"train-w-0-{U}-4", f"train-w-1-{U}-4"]
    assert tree.whole


def test_topologies_of_each_level():
    job_ = a_replicated_job("w", 2, 2)
    job_["template"]["metadata"] = {"annotations": ours(topology="rack")}
    owner = a_jobset(job_, a_replicated_job("d"), annotations=ours(topology="block", topology__w="row"))

    assert drawn(jobset.tree_of(owner, Sight())) == [
        [
            "train",
            2,
            "block",
            ["train-w", 2, "row", ["train-w-0", 2, "rack"], ["train-w-1", 2, "rack"]],
            ["train-d-0", 1],
        ]
    ]


def test_groups_of_replicated_jobs_are_a_level_of_their_own():
    owner = a_jobset(
        a_replicated_job("a", 2, groupName="x"),
        a_replicated_job("b", groupName="x"),
        a_replicated_job("c", groupName="y"),
    )

    ((root,),) = (jobset.tree_of(owner, Sight()).roots,)
    assert [child.name for child in root.children] == [f"train-group-x-{U}-0", f"train-c-0-{U}-0"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("level", "roots"),
    [("set", ["train"]), ("role", ["train-d-0", "train-w"]), ("replica", ["train-d-0", "train-w-0", "train-w-1"])],
)
def test_the_outermost_gang_can_be_chosen(level: str, roots: list[str]):
    owner = a_jobset(a_replicated_job("d"), a_replicated_job("w", 2), annotations=ours(gang_level=level))

    assert [root[0] for root in drawn(jobset.tree_of(owner, Sight()))] == roots


def test_without_a_gang_every_job_is_basic():
    owner = a_jobset(a_replicated_job("w", 2, 2), annotations=ours(gang="none"))
    tree = jobset.tree_of(owner, Sight())

    assert drawn(tree) == [["train-w-0", None], ["train-w-1", None]]
    assert not tree.whole


def test_jobs_that_start_in_order_are_expected():
    owner = a_jobset(
        a_replicated_job("d"), a_replicated_job("w", 1, 3), startupPolicy={"startupPolicyOrder": "InOrder"}
    )

    first, second = jobset.tree_of(owner, Sight()).leaves()
    assert first.expected == ()
    assert [(each.count, each.after) for each in second.expected] == [(3, READY)]


def test_jobs_that_depend_on_completion_are_gangs_of_their_own():
    late = a_replicated_job("w", 1, 3, dependsOn=[{"name": "d", "status": "Complete"}])
    tree = jobset.tree_of(a_jobset(a_replicated_job("d"), late), Sight())

    assert drawn(tree) == [["train-d-0", 1], ["train-w-0", 3]]
    # Nothing is held for them; the scheduler says if they would not even fit into the empty cluster.
    listed = [[(each.count, each.after) for each in leaf.expected] for leaf in tree.leaves()]
    assert listed == [[], [(3, "completed")]]
    assert reasons(tree) == ["GangInParts"]


def test_exclusive_placement_is_expected_and_said():
    owner = a_jobset(a_replicated_job("w", 2, 3), annotations={jobset.EXCLUSIVE: "rack"})
    tree = jobset.tree_of(owner, Sight())

    assert [(leaf.topology, leaf.expected[0].after) for leaf in tree.leaves()] == [("rack", SCHEDULED)] * 2
    assert reasons(tree) == ["ExclusivePlacementLimitsGang"]
    assert (
        reasons(
            jobset.tree_of(
                a_jobset(a_replicated_job("w", 2, 3), annotations={jobset.EXCLUSIVE: "r", jobset.NODE_SELECTOR: "x"}),
                Sight(),
            )
        )
        == []
    )


def test_a_suspended_jobset_has_no_groups():
    assert jobset.tree_of(a_jobset(a_replicated_job("w"), suspend=True), Sight()).roots == ()


def test_pods_of_different_classes_are_said():
    owner = a_jobset(a_replicated_job("d", template=a_template("high")), a_replicated_job("w"))
    tree = jobset.tree_of(owner, Sight())

    assert tree.priority_class == ""
    assert reasons(tree) == ["MixedPriorities"]
    assert (
        jobset.tree_of(a_jobset(a_replicated_job("d", template=a_template("high"))), Sight()).priority_class == "high"
    )


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        (ours(gang_level="rack"), "must be one of set, role, replica"),
        (ours(topology__nobody="rack"), "there is no part 'nobody'; there are: w, default"),
        (ours(topology="not a key"), "is no label key"),
        (ours(disruption="some"), "must be all or single"),
        (ours(gangs="all"), "means nothing here"),
    ],
)
def test_a_wrong_annotation_is_said_with_what_is_allowed(annotations: JSON, said: str):
    tree = jobset.tree_of(a_jobset(a_replicated_job("w", 2), annotations=annotations), Sight())

    assert set(reasons(tree)) == {"BadAnnotation"}
    assert said in tree.remarks[0].message
    assert drawn(tree) == [["train-w", 2, ["train-w-0", 1], ["train-w-1", 1]]]


def test_annotations_of_the_train_job_above_count():
    parent = {"kind": "TrainJob", "metadata": {"name": "t", "annotations": ours(topology="block")}}

    assert drawn(jobset.tree_of(a_jobset(a_replicated_job("node", 1, 4)), Sight(parent=parent))) == [
        ["train-node-0", 4, "block"]
    ]


# --- LeaderWorkerSet -------------------------------------------------------------------------------


def test_each_replica_that_has_pods_is_a_gang():
    tree = leader_worker_set.tree_of(an_lws(), Sight(lws_pods((0, "a"), (1, "a"))))

    assert drawn(tree) == [["serve-0-a", 3], ["serve-1-a", 3]]
    assert tree.whole


def test_an_older_revision_keeps_its_size():
    tree = leader_worker_set.tree_of(an_lws(size=5), Sight(lws_pods((0, "old"), size=3) | lws_pods((1, "new"), size=5)))

    assert drawn(tree) == [["serve-0-old", 3], ["serve-1-new", 5]]


@pytest.mark.parametrize(
    ("size", "policy", "parts"),
    [
        (5, {"subGroupSize": 2}, [["s0", 3], ["s1", 2]]),
        (6, {"subGroupSize": 2}, [["s0", 2], ["s1", 2], ["s2", 2]]),
        (5, {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}, [["leader", 1], ["s0", 2], ["s1", 2]]),
    ],
)
def test_subgroups_are_leaves_of_their_replica(size: int, policy: JSON, parts: list[list[Any]]):
    tree = leader_worker_set.tree_of(an_lws(size, subgroup=policy), Sight(lws_pods((0, "a"))))

    wanted = [[f"serve-0-a-{suffix}", count] for suffix, count in parts]
    assert drawn(tree) == [["serve-0-a", len(parts), *wanted]]


def test_workers_that_wait_for_the_leader_are_expected():
    def expected(**more: Any) -> list[tuple[int, str]]:
        (leaf,) = leader_worker_set.tree_of(an_lws(**more), Sight(lws_pods((0, "a")))).leaves()
        return [(each.count, each.after) for each in leaf.expected]

    other_leader = {"leaderTemplate": a_template(cpu="2")}
    assert expected() == []
    assert expected(startupPolicy="LeaderReady") == [(3, READY)]
    assert expected(startupPolicy="LeaderReady", template=other_leader) == [(1, CREATED), (2, READY)]
    assert expected(annotations={leader_worker_set.EXCLUSIVE: "rack"}) == [(3, SCHEDULED)]


def test_a_set_can_be_one_gang():
    tree = leader_worker_set.tree_of(an_lws(annotations=ours(gang_level="set")), Sight(lws_pods((0, "a"), (1, "a"))))

    assert drawn(tree) == [["serve", 2, ["serve-0-a", 3], ["serve-1-a", 3]]]


@given(st.integers(1, 40), st.integers(1, 10), st.booleans())
def test_subgroups_hold_every_pod_that_the_manager_divides(size: int, subgroup: int, excluded: bool):
    workers = size - 1
    divided = workers % subgroup == 0 or (not excluded and size % subgroup == 0)
    if not divided or workers < subgroup:
        return  # the manager refuses it
    parts = list(leader_worker_set.subgroups(size, subgroup, leader_excluded=excluded))

    assert sum(part.leaders + part.workers for part in parts) == size
    assert sum(part.leaders for part in parts) == 1


# --- the others ------------------------------------------------------------------------------------


def a_worker_group(name: str, **more: Any) -> JSON:
    return {"groupName": name, "replicas": 2, "template": a_template(), **more}


def test_a_ray_cluster_is_a_gang_of_head_and_workers():
    owner = a_ray_cluster(a_worker_group("w"), a_worker_group("tpu", numOfHosts=4))

    assert drawn(ray.tree_of(owner, Sight())) == [["ray", 3, ["ray-headgroup", 1], ["ray-w", 2], ["ray-tpu", 8]]]


def test_a_ray_cluster_that_scales_itself_starts_with_its_least():
    owner = a_ray_cluster(
        a_worker_group("w", minReplicas=1), a_worker_group("x", minReplicas=0), enableInTreeAutoscaling=True
    )

    assert drawn(ray.tree_of(owner, Sight())) == [["ray", 2, ["ray-headgroup", 1], ["ray-w", 1]], ["ray-x", None]]


def test_labels_of_a_ray_cluster_are_honoured():
    labels = {"ray.io/gang-scheduling-enabled": "false", "ray.io/priority-class-name": "high"}
    tree = ray.tree_of(a_ray_cluster(a_worker_group("w"), labels=labels), Sight())

    assert drawn(tree) == [["ray-headgroup", None], ["ray-w", None]]
    assert tree.priority_class == "high"


def test_only_the_cluster_of_a_ray_job_goes_as_a_whole():
    assert not ray.tree_of(a_ray_cluster(a_worker_group("w")), Sight()).whole
    assert ray.tree_of(a_ray_cluster(a_worker_group("w")), Sight(parent={"kind": "RayJob"})).whole


def a_training_job(kind: str, field: str, version: str = "v1", **more: Any) -> JSON:
    master = "Launcher" if kind == "MPIJob" else "Master"
    types = {master: {"replicas": 1, "template": a_template()}, "Worker": {"replicas": 4, "template": a_template()}}
    return an_owner(Resource("kubeflow.org", version, "", kind, True), "j", {field: types, **more})


@pytest.mark.parametrize(("kind", "field"), sorted(kubeflow.REPLICA_SPECS.items()))
def test_a_training_job_is_a_gang_of_its_replica_types(kind: str, field: str):
    first = "j-launcher" if kind == "MPIJob" else "j-master"

    assert drawn(kubeflow.tree_of(a_training_job(kind, field), Sight())) == [["j", 2, [first, 1], ["j-worker", 4]]]


def test_a_training_job_that_needs_fewer_has_a_smaller_largest_type():
    policy = {"schedulingPolicy": {"minAvailable": 3, "priorityClass": "high"}}
    tree = kubeflow.tree_of(a_training_job("PyTorchJob", "pytorchReplicaSpecs", runPolicy=policy), Sight())

    assert drawn(tree) == [["j", 2, ["j-master", 1], ["j-worker", 2]]]
    assert tree.priority_class == "high"


def test_an_elastic_training_job_starts_with_its_least():
    tree = kubeflow.tree_of(
        a_training_job("PyTorchJob", "pytorchReplicaSpecs", elasticPolicy={"minReplicas": 2}), Sight()
    )

    assert drawn(tree) == [["j", 2, ["j-master", 1], ["j-worker", 2]]]


def test_the_launcher_of_the_newer_mpi_job_starts_alone():
    tree = kubeflow.tree_of(a_training_job("MPIJob", "mpiReplicaSpecs", "v2beta1"), Sight())

    assert drawn(tree) == [["j-worker", 4]]
    assert reasons(tree) == ["LauncherStartsAlone"]


def test_a_stateful_set_that_asks_for_it_is_a_gang_and_expects_its_later_pods():
    def tree(resource: Resource, **spec: Any) -> Tree:
        owner = an_owner(resource, "s", {"replicas": 3, "template": a_template(gang="all"), **spec})
        return by_annotation.tree_of(owner, named(f"s-{U}"))

    (leaf,) = tree(STATEFUL_SETS).leaves()
    assert (leaf.minimum, [(each.count, each.after) for each in leaf.expected]) == (3, [(3, READY)])
    assert [leaf.expected for leaf in tree(STATEFUL_SETS, podManagementPolicy="Parallel").leaves()] == [()]
    assert drawn(tree(REPLICA_SETS)) == [["s", 3]]


def test_a_group_of_the_coscheduling_plugin_has_ours_beside_it():
    owner = an_owner(COSCHEDULING_GROUPS, "g", {"minMember": 4, "scheduleTimeoutSeconds": 10})
    tree = coscheduling.tree_of(owner, named("g-cos"))

    assert drawn(tree) == [["g-cos", 4]]
    assert reasons(tree) == ["TimeoutIgnored"]


# --- Kueue -----------------------------------------------------------------------------------------


def test_topologies_for_kueue_are_honoured_where_kueue_is_not_involved():
    template = a_template()
    template["metadata"] = {
        "annotations": {
            "kueue.x-k8s.io/podset-required-topology": "block",
            "kueue.x-k8s.io/podset-slice-required-topology": "rack",
            "kueue.x-k8s.io/podset-slice-size": "3",
        }
    }
    owner = a_jobset(a_replicated_job("w", 2, 3, template), a_replicated_job("d"))
    assert drawn(jobset.tree_of(owner, Sight()))[0][2] == [
        "train-w",
        2,
        "block",
        ["train-w-0", 3, "rack"],
        ["train-w-1", 3, "rack"],
    ]

    owner["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    owner["metadata"]["annotations"] = ours(topology="row")
    tree = jobset.tree_of(owner, Sight())
    assert all(not node.topology for node, _ in tree.nodes())
    assert reasons(tree) == ["KueueAssignsTopology"]
