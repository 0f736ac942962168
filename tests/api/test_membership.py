"""Which leaf a pod belongs to: the labels that managers write, and equality of the table and its expressions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.job_gangs import GANG_ANNOTATION
from muster.api.membership import (
    COMPLETION_INDEX_LABEL,
    COSCHEDULING_LABEL,
    JOB_NAME_LABEL,
    JOBSET,
    KUBEFLOW,
    KUEUE_GROUP_LABEL,
    LWS,
    OWN_GROUP_LABEL,
    POD_GROUP_LABEL,
    RAY,
    RULES,
    SUBGROUP_SIZE,
    Facts,
    facts_of,
    facts_of_meta,
    leaf_of,
    rule_for,
)
from muster.api.membership_policy import membership_policies, variables
from muster.api.types import Pod
from muster.cel import Program, Values, compile
from muster.server.admission.dynamic.mutating_policies import MutatingPolicy
from muster.server.resources.rules.policy_expressions import authorizer_library

Obj = dict[str, Any]
UID = "0123456789ab-cdef"


def a_pod(
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: tuple[str, str, str] | None = None,
) -> Obj:
    meta: Obj = {"name": "p", "namespace": "default", "uid": "u"}
    if labels is not None:
        meta["labels"] = labels
    if annotations is not None:
        meta["annotations"] = annotations
    if owner is not None:
        version, kind, name = owner
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}
        meta["ownerReferences"] = [
            other,
            {"apiVersion": version, "kind": kind, "name": name, "uid": UID, "controller": True},
        ]
    return {"metadata": meta, "spec": {}}


JOBSET_LABELS = {
    f"{JOBSET}jobset-name": "train",
    f"{JOBSET}jobset-uid": UID,
    f"{JOBSET}restart-attempt": "2",
    JOB_NAME_LABEL: "train-workers-1",
    COMPLETION_INDEX_LABEL: "0",
}
LWS_LABELS = {f"{LWS}name": "serve", f"{LWS}group-index": "1", f"{LWS}template-revision-hash": "abc"}
JOB = ("batch/v1", "Job", "train-workers-1")


EXAMPLES = [
    (a_pod(JOBSET_LABELS, owner=JOB), "train-workers-1-01234567-2"),
    (a_pod(LWS_LABELS), "serve-1-abc"),
    (a_pod({**LWS_LABELS, f"{LWS}subgroup-index": "0"}, {SUBGROUP_SIZE: "2"}), "serve-1-abc-s0"),
    (a_pod({**LWS_LABELS, f"{LWS}worker-index": "0"}, {SUBGROUP_SIZE: "2"}), "serve-1-abc-leader"),
    (a_pod({**LWS_LABELS, f"{LWS}worker-index": "3"}, {SUBGROUP_SIZE: "2"}), ""),
    (a_pod({f"{RAY}cluster": "r", f"{RAY}group": "w"}, owner=("ray.io/v1", "RayCluster", "r")), "r-w-01234567"),
    (a_pod({f"{RAY}cluster": "r", f"{RAY}group": "w"}), ""),
    (
        a_pod(
            {f"{KUBEFLOW}job-name": "j", f"{KUBEFLOW}replica-type": "worker"},
            owner=("kubeflow.org/v1", "PyTorchJob", "j"),
        ),
        "j-worker-01234567",
    ),
    (a_pod({KUEUE_GROUP_LABEL: "g"}), "g"),
    (a_pod({KUEUE_GROUP_LABEL: "g"}, owner=("apps/v1", "StatefulSet", "s")), ""),
    (a_pod({COSCHEDULING_LABEL: "g"}), "g-cos"),
    (a_pod({COMPLETION_INDEX_LABEL: "0"}, owner=("batch/v1", "Job", "j")), "j-01234567"),
    (a_pod({}, owner=("batch/v1", "Job", "j")), ""),
    (a_pod({}, {GANG_ANNOTATION: "all"}, owner=("batch/v1", "Job", "j")), "j-01234567"),
    (a_pod({}, {GANG_ANNOTATION: "all"}, owner=("apps/v1", "StatefulSet", "s")), "s-01234567"),
    (a_pod({}, {GANG_ANNOTATION: "2"}, owner=("apps/v1", "ReplicaSet", "d-5f")), "d-5f-01234567"),
    (a_pod({}, owner=("apps/v1", "StatefulSet", "s")), ""),
    (a_pod(), ""),
    (a_pod({POD_GROUP_LABEL: "mine"}), "mine"),
    (a_pod({OWN_GROUP_LABEL: "yes"}), ""),
    (a_pod({GANG_ANNOTATION: "none"}), ""),
    (a_pod({}, {GANG_ANNOTATION: "none"}), ""),
]


@pytest.mark.parametrize(("pod", "leaf"), EXAMPLES)
def test_the_pods_of_each_manager_name_their_leaf(pod: Obj, leaf: str):
    assert leaf_of(facts_of(pod)) == leaf


def test_the_examples_are_about_every_rule():
    assert {rule.name for pod, _ in EXAMPLES if (rule := rule_for(facts_of(pod))) is not None} == {
        rule.name for rule in RULES
    }


@pytest.mark.parametrize(
    ("more", "annotations", "leaf"),
    [
        ({POD_GROUP_LABEL: "mine"}, {}, "mine"),
        ({POD_GROUP_LABEL: "mine", OWN_GROUP_LABEL: "yes"}, {}, ""),
        ({OWN_GROUP_LABEL: "yes"}, {}, ""),
        ({GANG_ANNOTATION: "none"}, {}, ""),
        ({}, {GANG_ANNOTATION: "none"}, ""),
        ({KUEUE_GROUP_LABEL: "late"}, {}, "serve-1-abc"),
    ],
)
def test_who_says_so_is_in_another_group_or_in_none(more: dict[str, str], annotations: dict[str, str], leaf: str):
    assert leaf_of(facts_of(a_pod({**LWS_LABELS, **more}, annotations))) == leaf


@pytest.mark.parametrize("value", ["UPPER", "under_score", "-x", "a" * 254])
def test_a_name_that_no_object_can_have_means_no_group(value: str):
    assert leaf_of(Facts({KUEUE_GROUP_LABEL: value}, {})) == ""


def test_a_rule_knows_the_object_that_says_how_large_the_group_is():
    def workload(pod: Obj) -> Any:
        rule = rule_for(facts_of(pod))
        assert rule is not None
        return rule.workload_of(facts_of(pod))

    assert workload(a_pod(JOBSET_LABELS, owner=JOB)) == ("jobset.x-k8s.io", "JobSet", "train")
    assert workload(a_pod(LWS_LABELS)) == ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "serve")
    kubeflow = {f"{KUBEFLOW}job-name": "j", f"{KUBEFLOW}replica-type": "worker"}
    assert workload(a_pod(kubeflow, owner=("kubeflow.org/v1", "TFJob", "j"))) == ("kubeflow.org", "TFJob", "j")
    assert workload(a_pod({KUEUE_GROUP_LABEL: "g"})) is None


# --- Python and expressions ------------------------------------------------------------------------

KEYS = sorted(
    {
        *JOBSET_LABELS,
        *LWS_LABELS,
        f"{LWS}subgroup-index",
        f"{LWS}worker-index",
        f"{RAY}cluster",
        f"{RAY}group",
        f"{KUBEFLOW}job-name",
        f"{KUBEFLOW}replica-type",
        KUEUE_GROUP_LABEL,
        COSCHEDULING_LABEL,
        POD_GROUP_LABEL,
        OWN_GROUP_LABEL,
        GANG_ANNOTATION,
    }
)
VALUES = st.sampled_from(["", "0", "1", "a", "none", "all", "Upper", "x.y", "x_y", "-", UID, "é" * 9, "a" * 63])
FAMILIES = st.sampled_from(["", JOBSET, LWS, RAY, KUBEFLOW, "batch.", "kueue.", "scheduling."])
OWNERS = st.none() | st.tuples(
    st.sampled_from(["batch/v1", "apps/v1", "ray.io/v1", "kubeflow.org/v1", "kubeflow.org/v2beta1", "v1"]),
    st.sampled_from(["Job", "StatefulSet", "ReplicaSet", "RayCluster", "PyTorchJob", "ConfigMap"]),
    st.sampled_from(["j", "a.b", "Bad"]),
)


@st.composite
def random_pods(draw: st.DrawFn) -> Obj:
    """Pods with all labels of one manager, or of several, and now and then one that is wrong or missing."""
    family = draw(FAMILIES)
    labels = {key: draw(VALUES) for key in KEYS if family and key.startswith(family)}
    labels |= draw(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3))
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=2)):
        labels.pop(key, None)
    annotations = draw(st.dictionaries(st.sampled_from([GANG_ANNOTATION, SUBGROUP_SIZE, "other"]), VALUES, max_size=2))
    pod = a_pod(draw(st.sampled_from([labels, labels, labels, None])), annotations, draw(OWNERS))
    if not annotations and draw(st.booleans()):
        del pod["metadata"]["annotations"]
    return pod


def a_policy() -> MutatingPolicy:
    spec = membership_policies("muster", "muster-system")[0]["spec"]
    return MutatingPolicy("p", spec, authorizer_library(lambda *_: None))  # pyright: ignore[reportArgumentType]


POLICY = a_policy()
GROUP = compile("variables.group", POLICY.environment)


def test_every_expression_compiles():
    for each in variables():
        program = compile(each["expression"], POLICY.environment)
        assert isinstance(program, Program), (each["name"], program)


@pytest.mark.parametrize(("pod", "leaf"), EXAMPLES)
def test_expressions_name_the_leaves_of_each_manager(pod: Obj, leaf: str):
    assert POLICY.evaluate(GROUP, Values({"object": pod})) == leaf


@given(random_pods())
def test_expressions_give_what_the_table_gives(pod: Obj):
    assert POLICY.evaluate(GROUP, Values({"object": pod})) == leaf_of(facts_of(pod))


@given(random_pods())
def test_a_decoded_pod_gives_what_its_json_gives(pod: Obj):
    import msgspec

    assert leaf_of(facts_of_meta(msgspec.convert(pod, Pod).metadata)) == leaf_of(facts_of(pod))
