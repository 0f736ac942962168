"""Older manifests become current ones, and nothing is dropped in silence."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.manifests import check
from muster.api.migration import migrate
from muster.testing import a_pod
from tests.build.manifests import Obj, a_composite, a_pod_group, a_workload, changed
from tests.build.random_manifests import json_values

WORKLOAD = "Workload"


def old(version: str, name: str = "w", **spec: Any) -> Obj:
    return {"apiVersion": version, "kind": WORKLOAD, "metadata": {"name": name, "namespace": "ml"}, "spec": spec}


def draft(*groups: Obj, **spec: Any) -> Obj:
    return old("scheduling/v1alpha1", podGroups=list(groups), **spec)


def release_135(*groups: Obj) -> Obj:
    return old("scheduling.k8s.io/v1alpha1", podGroups=list(groups))


def pod_in_ml(name: str = "p", labels: Obj | None = None, **spec: Any) -> Obj:
    return a_pod(name, "ml", labels=labels, **spec)


def a_job(parallelism: int = 4, **template: Any) -> Obj:
    spec = {"parallelism": parallelism, "template": {"spec": template}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ml"}, "spec": spec}


def moved(*objects: Obj, to_crd: bool = False) -> tuple[list[Obj], list[str]]:
    before = deepcopy(list(objects))
    done = migrate(objects, to_crd=to_crd)
    assert list(objects) == before
    for obj in done.objects:
        assert not check(obj), obj
    return done.objects, [str(note) for note in done.notes]


def group_of(pod: Obj) -> str:
    return pod["spec"]["schedulingGroup"]["podGroupName"]


def named(objects: list[Obj], kind: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects if obj["kind"] == kind]


SINGLE = {"name": "pg1", "gangMode": "Single", "minCount": 100, "schedulingTimeoutSeconds": 60}


def test_a_gang_of_the_draft_becomes_a_template_and_a_group():
    (workload, group), notes = moved(draft(SINGLE))
    assert workload["apiVersion"] == group["apiVersion"] == "scheduling.k8s.io/v1beta1"
    policy = {"gang": {"minCount": 100}}
    assert workload["spec"]["podGroupTemplates"] == [{"name": "pg1", "schedulingPolicy": policy}]
    assert group["metadata"] == {"name": "w-pg1", "namespace": "ml"}
    assert group["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "pg1"}
    assert group["spec"]["schedulingPolicy"] == policy
    assert any("no equivalent: schedulingTimeoutSeconds: 60" in note for note in notes)


def test_a_group_of_the_draft_that_is_off_becomes_basic():
    (workload, _), _ = moved(draft({"name": "loose", "gangMode": "Off"}))
    assert workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == {"basic": {}}


def test_the_selector_of_the_draft_decides_which_group_a_pod_joins():
    one = {**SINGLE, "name": "job1", "podGroupSelector": {"part": "one"}}
    two = {**SINGLE, "name": "job2", "podGroupSelector": {"selector": {"matchLabels": {"part": "two"}}}}
    link = {"workload": {"name": "w"}}
    objects, _ = moved(
        draft(one, two), pod_in_ml("a", {"part": "one"}, **link), pod_in_ml("b", {"part": "two"}, **link)
    )
    assert [group_of(obj) for obj in objects if obj["kind"] == "Pod"] == ["w-job1", "w-job2"]
    assert all("workload" not in obj["spec"] for obj in objects if obj["kind"] == "Pod")


def test_a_replicated_gang_becomes_one_group_a_replica():
    group = {
        "name": "lws",
        "gangMode": "Replicated",
        "replicas": 3,
        "minCount": 4,
        "replicatedGangKey": {"fieldPath": "metadata.labels['idx']"},
    }
    objects, _ = moved(
        draft(group),
        pod_in_ml("a", {"idx": "2"}, workload={"name": "w"}),
        pod_in_ml("b", workload={"name": "w", "podGroup": "lws", "podGroupReplica": 1}),
        pod_in_ml("c", {"idx": "9"}, workload={"name": "w"}),
    )
    assert named(objects, "PodGroup") == ["w-lws-0", "w-lws-1", "w-lws-2", "w-lws-9"]
    assert [group_of(obj) for obj in objects if obj["kind"] == "Pod"] == ["w-lws-2", "w-lws-1", "w-lws-9"]


def test_a_replicated_gang_of_unknown_size_gets_one_group_and_a_note():
    objects, notes = moved(draft({"name": "lws", "gangMode": "Replicated", "minCount": 2}))
    assert named(objects, "PodGroup") == ["w-lws-0"]
    assert any("how many replicas" in note for note in notes)


def test_a_missing_minimum_is_taken_from_the_pods_and_told():
    objects, notes = moved(draft({"name": "g"}), a_job(parallelism=7, workload={"name": "w"}))
    assert objects[1]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 7}}
    assert any("had no minCount" in note for note in notes)


def test_a_job_that_its_workload_names_joins_without_a_link():
    objects, _ = moved(
        draft(SINGLE, controllerRef={"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}), a_job()
    )
    assert objects[0]["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "j"}
    assert objects[-1]["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": "w-pg1"}


def test_what_has_no_equivalent_is_told():
    odd = {**SINGLE, "gangMode": "Weird", "colour": "red", "gangSchedulingPolicy": {"schedulingTimeoutSeconds": 5}}
    workload = {**draft(odd, dict(SINGLE), controllerRef={"kind": "Job", "name": "j", "uid": "u"}), "status": {"x": 1}}
    _, notes = moved(workload)
    for words in ("'Weird'", "colour", "schedulingTimeoutSeconds: 5", "controllerRef.uid", "status", "second group"):
        assert any(words in note for note in notes), words


def test_a_pod_whose_group_is_not_clear_loses_its_link_and_is_told():
    objects, notes = moved(draft(SINGLE, {**SINGLE, "name": "pg2"}), pod_in_ml(workload={"name": "w"}))
    assert "workload" not in objects[-1]["spec"]
    assert any("not clear" in note for note in notes)


def test_a_workload_of_135_and_its_pods():
    gang = {"name": "workers", "policy": {"gang": {"minCount": 4}}}
    basic = {"name": "driver", "policy": {"basic": {}}}
    objects, _ = moved(
        release_135(gang, basic),
        pod_in_ml("a", workloadRef={"name": "w", "podGroup": "workers", "podGroupReplicaKey": "k1"}),
        pod_in_ml("b", workloadRef={"name": "w", "podGroup": "workers"}),
        a_job(workloadRef={"name": "w", "podGroup": "driver"}),
    )
    assert named(objects, "PodGroup") == ["w-workers-k1", "w-workers", "w-driver"]
    assert group_of(objects[-3]) == "w-workers-k1"
    assert group_of(objects[-2]) == "w-workers"
    assert objects[-1]["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": "w-driver"}


def test_a_group_name_that_is_no_label_is_changed_and_told():
    objects, notes = moved(
        release_135({"name": "Big.Workers", "policy": {"basic": {}}}),
        pod_in_ml(workloadRef={"name": "w", "podGroup": "Big.Workers"}),
    )
    assert objects[0]["spec"]["podGroupTemplates"][0]["name"] == "big-workers"
    assert group_of(objects[-1]) == "w-big-workers"
    assert any("'Big.Workers'" in note for note in notes)


def test_a_pod_without_its_workload_still_names_its_group():
    objects, notes = moved(pod_in_ml(workloadRef={"name": "elsewhere", "podGroup": "g"}))
    assert group_of(objects[0]) == "elsewhere-g"
    assert any("not among the input" in note for note in notes)


def test_v1alpha2_becomes_v1beta1():
    group = {
        **a_pod_group(
            podGroupTemplateRef={"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
            disruptionMode="PodGroup",
        ),
        "apiVersion": "scheduling.k8s.io/v1alpha2",
    }
    (new,), notes = moved(group)
    assert new["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert new["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "t"}
    assert new["spec"]["disruptionMode"] == {"all": {}}
    assert any("spec.workloadRef" in note for note in notes)
    assert any("{all: {}}" in note for note in notes)


FLAT = {"workloadName": "w", "podGroupTemplateName": "t"}


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
@pytest.mark.parametrize("reference", [FLAT, {"workload": FLAT}])
def test_any_form_of_the_template_reference_becomes_a_workload_reference(version: str, reference: Obj):
    group = changed(a_pod_group(podGroupTemplateRef=reference), "apiVersion", f"scheduling.k8s.io/{version}")
    (new,), _ = moved(group)
    assert new["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "t"}
    assert "podGroupTemplateRef" not in new["spec"]


def test_current_objects_are_left_alone():
    given = [a_pod_group(), a_composite(), a_workload(), pod_in_ml(), {"apiVersion": "v1", "kind": "ConfigMap"}]
    assert migrate(given).objects == given
    assert migrate(given).notes == []


def test_migration_is_done_once():
    once, _ = moved(draft(SINGLE), pod_in_ml(workload={"name": "w"}))
    assert migrate(once).objects == once


def test_for_the_crds_groups_change_their_api_and_pods_carry_a_label():
    objects, notes = moved(
        release_135({"name": "g", "policy": {"gang": {"minCount": 1}}}),
        a_job(workloadRef={"name": "w", "podGroup": "g"}),
        pod_in_ml(schedulingGroup={"podGroupName": "w-g"}),
        pod_in_ml("single", {"app": "x"}),
        to_crd=True,
    )
    assert {obj["apiVersion"] for obj in objects[:2]} == {"scheduling.muster.dev/v1alpha3"}
    template = objects[2]["spec"]["template"]
    assert template["metadata"]["labels"] == {"scheduling.muster.dev/pod-group": "w-g"}
    assert "schedulingGroup" not in template["spec"]
    assert objects[3]["metadata"]["labels"] == {"scheduling.muster.dev/pod-group": "w-g"}
    assert objects[4]["metadata"]["labels"] == {"app": "x"}
    assert any("became the label" in note for note in notes)


def test_a_group_name_too_long_for_a_label_is_told():
    _, notes = moved(changed(a_pod_group(), "metadata.name", "a" * 64), to_crd=True)
    assert any("longer than a label" in note for note in notes)


@given(
    st.sampled_from(["scheduling/v1alpha1", "scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1alpha2", "v1"]),
    st.sampled_from([WORKLOAD, "PodGroup", "Pod", "Job"]),
    st.dictionaries(
        st.sampled_from(["podGroups", "workload", "workloadRef", "template", "controllerRef", "podGroupTemplateRef"]),
        st.lists(json_values | st.fixed_dictionaries({"policy": json_values, "name": json_values}), max_size=2)
        | st.fixed_dictionaries({"name": json_values, "spec": json_values, "podGroup": json_values}),
    ),
    st.booleans(),
)
def test_no_json_makes_a_migration_crash(version: str, kind: str, spec: Obj, to_crd: bool):
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    workload = {**release_135({"name": "g"}), "metadata": {"name": "x"}}
    assert migrate([obj, workload, obj], to_crd=to_crd).objects


# --- pod templates inside other objects ------------------------------------------------------------

LINK_135 = {"name": "w", "podGroup": "workers"}
CONTAINERS = [{"name": "c", "image": "i"}]


def template(**spec: Any) -> Obj:
    return {"spec": {"containers": CONTAINERS, **spec}}


def a_job_set(**link: Any) -> Obj:
    """Two replicated jobs of two Jobs of three pods each."""
    job = {"spec": {"parallelism": 3, "template": template(**link)}}
    replicated = [{"name": name, "replicas": 2, "template": deepcopy(job)} for name in ("a", "b")]
    metadata = {"name": "js", "namespace": "ml"}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"replicatedJobs": replicated},
    }


def at(obj: Any, *steps: str | int) -> Any:
    for step in steps:
        obj = obj[step]
    return obj


def test_every_pod_template_of_a_nested_object_joins_its_group():
    gang = {"name": "workers", "policy": {"gang": {"minCount": 4}}}
    objects, notes = moved(release_135(gang), a_job_set(workloadRef=LINK_135))
    job_set = objects[-1]
    for index in range(2):
        spec = at(job_set, "spec", "replicatedJobs", index, "template", "spec", "template", "spec")
        assert spec == {"containers": CONTAINERS, "schedulingGroup": {"podGroupName": "w-workers"}}
        where = f"spec.replicatedJobs[{index}].template.spec.template.spec.workloadRef"
        assert f"jobset/js: {where} became schedulingGroup.podGroupName: w-workers" in notes
    assert any("where the CRD of JobSet does not know it, the server drops it" in note for note in notes)


def test_the_pods_of_nested_templates_are_multiplied():
    (workload, *_), notes = moved(draft({"name": "workers", "gangMode": "Single"}), a_job_set(workload=LINK_135))
    assert workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == {"gang": {"minCount": 12}}
    assert any("it is now 12, the pods seen in the input" in note for note in notes)


@pytest.mark.parametrize(
    ("kind", "version", "wrap", "steps"),
    [
        (
            "CronJob",
            "batch/v1",
            lambda t: {"jobTemplate": {"spec": {"template": t}}},
            ("jobTemplate", "spec", "template"),
        ),
        ("StatefulSet", "apps/v1", lambda t: {"template": t}, ("template",)),
        (
            "LeaderWorkerSet",
            "leaderworkerset.x-k8s.io/v1",
            lambda t: {"leaderWorkerTemplate": {"workerTemplate": t}},
            ("leaderWorkerTemplate", "workerTemplate"),
        ),
        ("Mystery", "example.com/v1", lambda t: {"parts": [{"of": [t]}]}, ("parts", 0, "of", 0)),
    ],
)
def test_any_object_with_a_pod_template_is_converted(kind: str, version: str, wrap: Any, steps: Any):
    gang = {"name": "workers", "policy": {"gang": {"minCount": 4}}}
    metadata = {"name": "x", "namespace": "ml"}
    given = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": wrap(template(workloadRef=LINK_135))}

    objects, _ = moved(release_135(gang), given)
    assert at(objects[-1], "spec", *steps, "spec", "schedulingGroup") == {"podGroupName": "w-workers"}
    assert "workloadRef" not in str(objects[-1])

    labelled, _ = moved(release_135(gang), given, to_crd=True)
    labels = at(labelled[-1], "spec", *steps, "metadata", "labels")
    assert labels == {"scheduling.muster.dev/pod-group": "w-workers"}


def test_what_is_no_pod_template_is_named_and_left_as_it_is():
    chart = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"pod.yaml": "workloadRef: x"}}
    odd = {"apiVersion": "example.com/v1", "kind": "Odd", "metadata": {"name": "o"}, "spec": {"workloadRef": LINK_135}}

    done = migrate([chart, odd])

    assert done.objects == [chart, odd]
    assert [(note.path, done.places[note]) for note in done.notes] == [("data.pod.yaml", 0), ("spec.workloadRef", 1)]
    assert all("it was left as it is" in note.text for note in done.notes)


def test_todays_groups_keep_their_reference():
    group = a_pod_group(workloadRef={"workloadName": "w", "templateName": "t"})
    assert migrate([group]).objects == [group]
    assert migrate([group]).notes == []


def test_migrating_again_changes_nothing():
    gang = {"name": "workers", "policy": {"gang": {"minCount": 4}}}
    objects, _ = moved(release_135(gang), a_job_set(workloadRef=LINK_135))
    assert migrate(objects).objects == objects
