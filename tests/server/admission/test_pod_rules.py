"""Pods: what they say when nobody said it, what is refused, and what may change."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.server.resources.rules import pod as rules
from muster.server.resources.rules.pod_defaults import pull_policy
from muster.testing import a_pod


def defaulted(**spec: Any) -> dict[str, Any]:
    pod = a_pod("p", **spec)
    rules.default(pod)
    rules.prepare(pod, None, "")
    return pod


def complaints(pod: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(error) for error in rules.validate(pod, old, "")]


def refused_fields(**spec: Any) -> set[str]:
    return {error.field for error in rules.validate(defaulted(**spec), None, "")}


def changed(old: dict[str, Any], **spec: Any) -> dict[str, Any]:
    new = copy.deepcopy(old)
    new["spec"].update(spec)
    return new


def test_a_plain_pod_gets_kubernetes_defaults():
    spec = defaulted()["spec"]

    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["enableServiceLinks"] is True
    assert spec["securityContext"] == {}
    container = spec["containers"][0]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["resources"] == {}
    assert complaints(defaulted()) == []


def test_a_new_pod_is_pending_whatever_its_author_says():
    pod = a_pod("p")
    pod["status"] = {"phase": "Running"}

    rules.default(pod)
    rules.prepare(pod, None, "")

    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_gated_pod_says_so_from_birth():
    condition = defaulted(schedulingGates=[{"name": "wait"}])["status"]["conditions"][0]

    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_a_limit_without_a_request_is_the_request():
    pod = defaulted(containers=[{"name": "a", "image": "i", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}])

    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
    assert pod["status"]["qosClass"] == "Guaranteed"


def test_a_request_without_a_limit_is_burstable():
    pod = defaulted(containers=[{"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}}}])

    assert pod["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("nginx@sha256:0123", "IfNotPresent"),
    ],
)
def test_only_images_that_move_are_always_pulled(image: str, policy: str):
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": [{"image": "i"}]}, "spec.containers[0].name"),
        ({"containers": [{"name": "A", "image": "i"}]}, "spec.containers[0].name"),
        ({"containers": [{"name": "a"}]}, "spec.containers[0].image"),
        ({"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]}, "spec.containers[1].name"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"nodeSelector": {"bad key": "x"}}, "spec.nodeSelector"),
        ({"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator"),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, "spec.schedulingGates[1]"),
        ({"schedulingGates": [{"name": "a"}], "nodeName": "n"}, "spec.nodeName"),
        ({"schedulingGroup": {}}, "spec.schedulingGroup"),
        ({"schedulingGroup": {"podGroupName": "Not A Name"}}, "spec.schedulingGroup.podGroupName"),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, "spec.volumes[1].name"),
        (
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            "spec.topologySpreadConstraints[0].maxSkew",
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        ),
    ],
)
def test_what_people_get_wrong_is_refused_at_its_field(spec: dict[str, Any], field: str):
    assert field in refused_fields(**spec)


@pytest.mark.parametrize(
    "resources",
    [
        {"requests": {"cpu": "-1"}},
        {"requests": {"cpu": "lots"}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        {"requests": {"nvidia.com/gpu": "1"}},
        {"limits": {"nvidia.com/gpu": "500m"}},
        {"limits": {"gpu": "1"}},
    ],
)
def test_resources_that_make_no_sense_are_refused(resources: dict[str, Any]):
    pod = a_pod("p", containers=[{"name": "a", "image": "i", "resources": resources}])
    rules.default(pod)
    if "nvidia.com/gpu" in resources.get("requests", {}):
        pod["spec"]["containers"][0]["resources"].pop("limits", None)

    assert complaints(pod)


def test_a_request_above_its_limit_is_refused_in_kubernetes_words():
    pod = defaulted(
        containers=[{"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]
    )

    assert complaints(pod) == [
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'
    ]


def test_the_image_of_a_pod_may_change():
    old = defaulted()
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["image"] = "busybox:2"

    assert complaints(new, old) == []


def test_tolerations_may_be_added_but_not_taken_away():
    old = defaulted(tolerations=[{"key": "a", "operator": "Exists"}])

    more = changed(old, tolerations=[{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}])
    fewer = changed(old, tolerations=[{"key": "b", "operator": "Exists"}])

    assert complaints(more, old) == []
    assert complaints(fewer, old)


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeName": "other"},
        {"schedulingGroup": {"podGroupName": "other"}},
        {"nodeSelector": {"a": "b"}},
        {"priority": 5},
        {"schedulerName": "muster"},
        {"terminationGracePeriodSeconds": 1},
    ],
)
def test_everything_else_in_a_pod_is_fixed(spec: dict[str, Any]):
    old = defaulted(schedulingGroup={"podGroupName": "g"})

    errors = rules.validate(changed(old, **spec), old, "")

    assert [error.field for error in errors] == ["spec"]
    assert errors[0].body().startswith("Forbidden: pod updates may not change fields other than")


def test_a_gated_pod_may_be_narrowed_to_fewer_nodes():
    old = defaulted(schedulingGates=[{"name": "g"}], nodeSelector={"a": "1"})

    assert complaints(changed(old, nodeSelector={"a": "1", "b": "2"}), old) == []
    assert complaints(changed(old, nodeSelector={"b": "2"}), old)


def test_gates_may_only_be_removed():
    old = defaulted(schedulingGates=[{"name": "a"}, {"name": "b"}])

    assert complaints(changed(old, schedulingGates=[{"name": "a"}]), old) == []
    assert complaints(changed(old, schedulingGates=[{"name": "c"}]), old) == [
        "spec.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate 'c'"
    ]


def test_a_deadline_may_come_nearer_but_not_go():
    old = defaulted(activeDeadlineSeconds=100)

    assert complaints(changed(old, activeDeadlineSeconds=50), old) == []
    assert complaints(changed(old, activeDeadlineSeconds=150), old)
    assert complaints(changed(old, activeDeadlineSeconds=None), old)


def test_the_status_endpoint_cannot_change_the_spec():
    old = defaulted()
    new = changed(old, nodeName="elsewhere")
    new["status"] = {"phase": "Running", "qosClass": "Guaranteed"}

    rules.prepare(new, old, "status")

    assert "nodeName" not in new["spec"]
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}


def test_the_main_endpoint_cannot_change_the_status():
    old = defaulted()
    new = copy.deepcopy(old)
    new["status"] = {"phase": "Succeeded"}

    rules.prepare(new, old, "")

    assert new["status"] == old["status"]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "restartPolicy": st.sampled_from(["Always", "Never", "OnFailure"]),
            "hostNetwork": st.booleans(),
            "terminationGracePeriodSeconds": st.integers(0, 100),
            "schedulingGates": st.lists(st.just({"name": "g"}), max_size=1),
        },
    )
)
def test_defaulting_twice_changes_nothing(spec: dict[str, Any]):
    once = defaulted(**copy.deepcopy(spec))
    twice = copy.deepcopy(once)
    rules.default(twice)

    assert twice == once
    assert complaints(once) == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({}, None),
        ({"maxExpirationSeconds": 3599}, ".maxExpirationSeconds"),
        ({"maxExpirationSeconds": 91 * 86400}, None),
        ({"maxExpirationSeconds": 91 * 86400 + 1}, ".maxExpirationSeconds"),
        ({"maxExpirationSeconds": 86401, "signerName": "kubernetes.io/x"}, ".maxExpirationSeconds"),
        ({"keyType": "DSA"}, ".keyType"),
        ({"signerName": ""}, ".signerName"),
        ({"credentialBundlePath": ""}, ""),
    ],
)
def test_a_certificate_that_a_pod_asks_for_has_limits(wrong: dict[str, Any], field: str | None):
    source = {"signerName": "example.com/s", "keyType": "ED25519", "credentialBundlePath": "bundle", **wrong}
    volume = {"name": "v", "projected": {"sources": [{"podCertificate": source}]}}
    at = "spec.volumes[0].projected.sources[0].podCertificate"
    assert refused_fields(volumes=[volume]) == (set() if field is None else {at + field})
