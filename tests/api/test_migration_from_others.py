"""Manifests for Volcano and for the coscheduling plugin become ours, and what has no equivalent is named."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.manifests import check
from muster.api.migration import Note, migrate
from tests.build.manifests import Obj
from tests.build.random_manifests import json_values


def a_task(name: str, replicas: int, **more: Any) -> Obj:
    template = {"spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def a_volcano_job(*tasks: Obj, **spec: Any) -> Obj:
    metadata = {"name": "train", "namespace": "ml"}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**spec, "tasks": list(tasks)},
    }


def a_group(version: str, **spec: Any) -> Obj:
    return {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "g", "namespace": "ml"}, "spec": spec}


def a_deployment(labels: Obj | None = None, annotations: Obj | None = None) -> Obj:
    metadata = {"labels": {"app": "web", **(labels or {})}, "annotations": annotations or {}}
    template = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "ml"}, "spec": spec}


def moved(*objects: Obj) -> tuple[list[Obj], list[Note]]:
    before = deepcopy(list(objects))
    done = migrate(objects)
    assert list(objects) == before
    for obj in done.objects:
        assert not check(obj), obj
    return done.objects, done.notes


def of_kind(objects: list[Obj], kind: str) -> list[Obj]:
    return [obj for obj in objects if obj["kind"] == kind]


def lost(notes: list[Note]) -> set[str]:
    return {note.path for note in notes if note.lost}


def test_a_job_of_volcano_becomes_a_gang_and_a_job_for_each_task():
    objects, _ = moved(a_volcano_job(a_task("ps", 1), a_task("worker", 4), minAvailable=3, maxRetry=7))
    (group,) = of_kind(objects, "PodGroup")
    assert group["metadata"] == {"name": "train", "namespace": "ml"}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    jobs = of_kind(objects, "Job")
    assert [job["metadata"]["name"] for job in jobs] == ["train-ps", "train-worker"]
    assert [job["spec"]["parallelism"] for job in jobs] == [1, 4]
    for job in jobs:
        assert job["spec"]["completionMode"] == "Indexed"
        assert job["spec"]["backoffLimit"] == 7
        pod = job["spec"]["template"]["spec"]
        assert (pod["schedulerName"], pod["schedulingGroup"]) == ("muster", {"podGroupName": "train"})
        assert pod["restartPolicy"] == "OnFailure"


def test_without_a_minimum_all_pods_start_together():
    objects, _ = moved(a_volcano_job(a_task("a", 2), a_task("b", 3)))
    assert of_kind(objects, "PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 5}}


def test_minimums_of_tasks_become_a_tree():
    objects, notes = moved(a_volcano_job(a_task("ps", 1), a_task("worker", 4, minAvailable=2), minAvailable=3))
    (root,) = of_kind(objects, "CompositePodGroup")
    assert root["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    children = of_kind(objects, "PodGroup")
    assert [child["spec"]["schedulingPolicy"]["gang"]["minCount"] for child in children] == [1, 2]
    assert {child["spec"]["parentCompositePodGroupName"] for child in children} == {"train"}
    joined = [job["spec"]["template"]["spec"]["schedulingGroup"]["podGroupName"] for job in of_kind(objects, "Job")]
    assert joined == [child["metadata"]["name"] for child in children]
    assert not lost(notes)


def test_a_minimum_of_the_job_above_those_of_its_tasks_is_named_as_lost():
    job = a_volcano_job(a_task("a", 4, minAvailable=1), a_task("b", 4, minAvailable=1), minAvailable=5)
    assert "spec.minAvailable" in lost(moved(job)[1])


def test_tasks_minimums_do_not_count_where_the_job_needs_fewer():
    job = a_volcano_job(a_task("a", 4, minAvailable=2), a_task("b", 4), minAvailable=1)
    objects, _ = moved(job)
    assert of_kind(objects, "PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 1}}
    assert not of_kind(objects, "CompositePodGroup")


def test_pods_keep_their_names_in_dns_and_their_numbers():
    objects, _ = moved(a_volcano_job(a_task("worker", 2), plugins={"svc": [], "env": []}))
    (service,) = of_kind(objects, "Service")
    pod = of_kind(objects, "Job")[0]["spec"]["template"]
    assert service["spec"]["clusterIP"] == "None"
    assert pod["spec"]["subdomain"] == service["metadata"]["name"] == "train"
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert {each["name"] for each in pod["spec"]["containers"][0]["env"]} == {"VC_TASK_INDEX", "VK_TASK_INDEX"}


def test_a_volume_whose_claim_exists_is_mounted_in_every_container():
    job = a_volcano_job(
        a_task("w", 1), volumes=[{"mountPath": "/data", "volumeClaimName": "data"}, {"mountPath": "/x"}]
    )
    objects, notes = moved(job)
    pod = of_kind(objects, "Job")[0]["spec"]["template"]["spec"]
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data"}
    assert pod["containers"][0]["volumeMounts"] == [{"name": "volume-0", "mountPath": "/data"}]
    assert lost(notes) == {"spec.volumes[1]"}


def test_an_estimate_of_the_running_time_is_kept_for_backfill():
    objects, _ = moved(a_volcano_job(a_task("w", 1), runningEstimate="30m"))
    annotations = of_kind(objects, "Job")[0]["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"scheduling.muster.dev/expected-duration": "30m"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue", "research"),
        ("policies", [{"event": "PodEvicted", "action": "RestartJob"}]),
        ("minSuccess", 1),
        ("networkTopology", {"mode": "hard", "highestTierAllowed": 1}),
    ],
)
def test_what_has_no_equivalent_is_named(field, value):
    assert f"spec.{field}" in lost(moved(a_volcano_job(a_task("w", 1), **{field: value}))[1])


def test_what_a_task_loses_is_named_with_its_place():
    job = a_volcano_job(a_task("a", 1), a_task("b", 1, dependsOn={"name": ["a"]}))
    assert "spec.tasks[1].dependsOn" in lost(moved(job)[1])


def test_a_queue_is_left_out_and_named():
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {}}
    objects, notes = moved(queue)
    assert objects == []
    assert [note.lost for note in notes] == [True]


@pytest.mark.parametrize("version", ["scheduling.x-k8s.io/v1alpha1", "scheduling.volcano.sh/v1beta1"])
def test_a_group_of_another_scheduler_becomes_ours(version):
    objects, _ = moved(a_group(version, minMember=3, priorityClassName="batch"))
    (group,) = objects
    assert group["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert group["metadata"] == {"name": "g", "namespace": "ml"}
    assert group["spec"] == {"priorityClassName": "batch", "schedulingPolicy": {"gang": {"minCount": 3}}}


@pytest.mark.parametrize(
    "marks",
    [
        {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
        {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}},
        {"annotations": {"scheduling.k8s.io/group-name": "g"}},
    ],
)
def test_pods_that_named_their_group_for_another_scheduler_join_ours(marks):
    objects, _ = moved(a_deployment(**marks))
    template = objects[0]["spec"]["template"]
    assert template["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    assert template["spec"]["schedulerName"] == "muster"
    assert template["metadata"]["labels"]["app"] == "web"


def test_pods_that_name_no_group_are_left_as_they_are():
    deployment = a_deployment()
    assert moved(deployment)[0] == [deployment]


@given(spec=st.dictionaries(st.sampled_from(["tasks", "minAvailable", "plugins", "volumes", "maxRetry"]), json_values))
def test_nothing_that_a_job_may_contain_breaks_the_migration(spec):
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    assert migrate([job]).notes
