"""Judging manifests of any kind without a server."""

from typing import Any

import pytest

from muster.api.manifests import check
from muster.testing import a_pod
from tests.build.manifests import Obj, a_composite, a_pod_group, a_workload, changed


def fields_of(manifest: Any) -> list[str]:
    found = check(manifest)
    assert found is not None
    return [error.field for error in found]


def a_job(**template: Any) -> Obj:
    spec = {"template": {"spec": template}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


@pytest.mark.parametrize("obj", [a_pod_group(), a_composite(), a_workload(), a_pod("p"), a_job()])
def test_good_manifests_have_no_errors(obj: Obj):
    assert check(obj) == []


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3", "v1alpha2"])
def test_a_group_is_judged_in_any_served_version(version: str):
    obj = changed(a_pod_group(), "apiVersion", f"scheduling.k8s.io/{version}")
    assert check(obj) == []
    bad = changed(obj, "spec.schedulingPolicy", {"gang": {"minCount": 0}})
    assert fields_of(bad) == ["spec.schedulingPolicy.gang.minCount"]


def test_the_fields_of_v1alpha2_are_named_as_they_are_written():
    obj = changed(a_pod_group(), "apiVersion", "scheduling.k8s.io/v1alpha2")
    obj["spec"]["podGroupTemplateRef"] = {"workload": {"workloadName": "w", "podGroupTemplateName": "A"}}
    assert fields_of(obj) == ["spec.podGroupTemplateRef.workload.podGroupTemplateName"]


@pytest.mark.parametrize("version", ["scheduling/v1alpha1", "scheduling.k8s.io/v1alpha1"])
def test_a_version_of_the_past_is_refused_with_a_hint(version: str):
    (error,) = check(changed(a_workload(), "apiVersion", version)) or []
    assert error.field == "apiVersion"
    assert "muster migrate" in error.detail


def test_a_version_that_does_not_serve_the_kind_is_refused():
    assert fields_of(changed(a_composite(), "apiVersion", "scheduling.k8s.io/v1beta1")) == ["apiVersion"]
    assert fields_of(changed(a_composite(), "apiVersion", "scheduling.k8s.io/v9")) == ["apiVersion"]


def test_the_kinds_of_the_crds_keep_the_same_rules():
    crd = "scheduling.muster.dev/v1alpha3"
    assert check(changed(a_composite(), "apiVersion", crd)) == []
    bad = changed(a_pod_group(priority=2 * 10**9), "apiVersion", crd)
    assert fields_of(bad) == ["spec.priority"]
    assert fields_of(changed(bad, "apiVersion", "scheduling.muster.dev/v1beta1")) == ["apiVersion"]


def test_an_unknown_field_and_a_wrong_type_are_told():
    obj = a_pod_group(minCount=3, priority="high")
    found = {error.field: error.detail for error in check(obj) or []}
    assert found == {"spec.minCount": "unknown field", "spec.priority": "must be a whole number"}


@pytest.mark.parametrize("manifest", [3, [], "text", None])
def test_a_manifest_is_an_object(manifest: Any):
    assert fields_of(manifest) == [""]


def test_a_manifest_says_what_it_is():
    assert fields_of({}) == ["apiVersion", "kind"]
    assert fields_of({"kind": "Pod", "apiVersion": 1}) == ["apiVersion"]


def test_pods_and_templates_are_judged_by_what_gangs_need():
    assert fields_of(a_pod("p", schedulingGroup={})) == ["spec.schedulingGroup"]
    bad = a_job(schedulingGroup={"podGroupName": "A"}, priority="x")
    assert fields_of(bad) == ["spec.template.spec.priority", "spec.template.spec.schedulingGroup.podGroupName"]


def test_quantities_are_judged():
    container = {"resources": {"requests": {"cpu": "1x", "memory": "-1"}, "limits": {"cpu": 1}}}
    prefix = "spec.containers[0].resources.requests"
    assert fields_of(a_pod("p", containers=[container])) == [f"{prefix}[cpu]", f"{prefix}[memory]"]


def test_kinds_without_rules_are_told_apart_from_good_ones():
    assert check({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}) is None
    assert check({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}) == []
    assert fields_of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "x"}}) == [
        "metadata.namespace"
    ]


def test_a_fault_that_two_rules_find_is_told_once():
    obj = a_pod_group()
    obj["metadata"]["labels"] = {"a": 1}
    assert fields_of(obj) == ["metadata.labels[a]"]


def test_a_template_that_is_not_there_is_not_judged():
    broken = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": 3}}
    assert check(broken) == []


@pytest.mark.parametrize(("value", "wrong"), [("all", False), ("2", False), ("3", True), ("some", True)])
def test_the_annotation_that_makes_a_job_a_gang_is_judged(value: str, wrong: bool):
    job = a_job()
    job["metadata"]["annotations"] = {"scheduling.muster.dev/gang": value}
    job["spec"]["parallelism"] = 2
    assert fields_of(job) == (["metadata.annotations[scheduling.muster.dev/gang]"] if wrong else [])


@pytest.mark.parametrize("junk", ["text", ["scheduling.muster.dev/gang"], 5, None])
def test_annotations_that_are_none_are_not_judged(junk: Any):
    job = a_job()
    job["spec"]["template"]["metadata"] = {"annotations": junk}
    assert check(job) is not None
