"""Defaults and rules of the built-in kinds other than pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muster.api.gates import parse
from muster.server.resources.rules import RULES, rules_for

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def written(group: str, plural: str, obj: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, Any]:
    rules = rules_for(group, plural)
    obj = copy.deepcopy(obj)
    obj.setdefault("metadata", {}).setdefault("name", "x")
    obj["metadata"].setdefault("uid", "u-1")
    if rules.default is not None:
        rules.default(obj)
    if rules.prepare is not None:
        rules.prepare(obj, old, "")
    return obj


def complaints(group: str, plural: str, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    validate = rules_for(group, plural).validate
    assert validate is not None
    return [str(error) for error in validate(written(group, plural, obj, old), old, "")]


def a_job(**spec: Any) -> dict[str, Any]:
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["restartPolicy"] = "Never"
    return {"spec": {"template": template, **spec}}


def test_a_job_is_one_pod_once_by_default():
    spec = written("batch", "jobs", a_job())["spec"]

    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["suspend"]) == ("NonIndexed", False)


def test_a_job_selects_its_pods_by_its_own_uid():
    spec = written("batch", "jobs", a_job())["spec"]

    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    labels = spec["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/controller-uid"] == "u-1"
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "x"
    assert complaints("batch", "jobs", a_job()) == []


def test_a_job_whose_pods_always_restart_is_refused():
    job = a_job()
    job["spec"]["template"]["spec"]["restartPolicy"] = "Always"

    assert complaints("batch", "jobs", job) == [
        'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    ]


def test_an_indexed_job_needs_completions():
    assert complaints("batch", "jobs", a_job(completionMode="Indexed")) == [
        "spec.completions: Required value: when completion mode is Indexed"
    ]


def test_parallelism_of_a_job_may_change_and_its_template_may_not():
    old = written("batch", "jobs", a_job(completions=4))
    wider = copy.deepcopy(old)
    wider["spec"]["parallelism"] = 3
    other = copy.deepcopy(old)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "other"

    assert complaints("batch", "jobs", wider, old) == []
    assert any(text.startswith("spec.template: Invalid value") for text in complaints("batch", "jobs", other, old))


def test_a_suspended_job_may_still_be_told_where_to_run():
    old = written("batch", "jobs", a_job(suspend=True))
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}

    assert complaints("batch", "jobs", new, old) == []


def test_a_gang_of_a_job_is_no_larger_than_its_parallelism():
    job = a_job(parallelism=2, scheduling={"schedulingPolicy": {"gang": {"minCount": 3}}})

    assert complaints("batch", "jobs", job) == [
        "spec.scheduling.schedulingPolicy.gang.minCount: Invalid value: 3: must not be greater than parallelism (2)"
    ]


def test_the_policy_of_a_running_job_keeps_its_variant_but_not_its_minimum():
    old = written("batch", "jobs", a_job(parallelism=4, scheduling={"schedulingPolicy": {"gang": {"minCount": 4}}}))
    smaller = copy.deepcopy(old)
    smaller["spec"]["scheduling"]["schedulingPolicy"]["gang"]["minCount"] = 2
    basic = copy.deepcopy(old)
    basic["spec"]["scheduling"]["schedulingPolicy"] = {"basic": {}}

    assert complaints("batch", "jobs", smaller, old) == []
    assert "the basic/gang policy variant is immutable after creation" in complaints("batch", "jobs", basic, old)[0]


def a_deployment(**spec: Any) -> dict[str, Any]:
    return {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": copy.deepcopy(TEMPLATE), **spec}}


def test_a_deployment_rolls_by_quarters_by_default():
    spec = written("apps", "deployments", a_deployment())["spec"]

    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert complaints("apps", "deployments", a_deployment()) == []


def test_a_selector_must_select_its_own_template():
    wrong = a_deployment(selector={"matchLabels": {"app": "b"}})

    assert "`selector` does not match template `labels`" in complaints("apps", "deployments", wrong)[0]


def test_the_selector_of_a_deployment_is_fixed():
    old = written("apps", "deployments", a_deployment())
    new = copy.deepcopy(old)
    new["spec"]["selector"]["matchLabels"]["more"] = "x"
    new["spec"]["template"]["metadata"]["labels"]["more"] = "x"

    assert complaints("apps", "deployments", new, old)[0].endswith("field is immutable")


def test_a_budget_takes_a_minimum_or_a_maximum():
    both = {"spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {}}}

    assert "minAvailable and maxUnavailable cannot be both set" in complaints("policy", "poddisruptionbudgets", both)[0]
    assert complaints("policy", "poddisruptionbudgets", {"spec": {"minAvailable": "120%"}})
    assert complaints("policy", "poddisruptionbudgets", {"spec": {"maxUnavailable": "50%"}}) == []


def test_the_value_of_a_priority_class_never_changes():
    old = written("scheduling.k8s.io", "priorityclasses", {"value": 5})
    new = {**copy.deepcopy(old), "value": 6}

    assert complaints("scheduling.k8s.io", "priorityclasses", new, old) == [
        "value: Forbidden: may not be changed in an update."
    ]


@pytest.mark.parametrize("obj", [{"value": 1_000_000_001}, {"metadata": {"name": "system-mine"}, "value": 1}])
def test_what_is_the_systems_own_is_not_for_users(obj: dict[str, Any]):
    assert complaints("scheduling.k8s.io", "priorityclasses", obj)


def test_the_system_classes_themselves_are_fine():
    obj = {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000}

    assert complaints("scheduling.k8s.io", "priorityclasses", obj) == []


def test_a_namespace_is_active_and_holds_itself():
    namespace = written("", "namespaces", {"metadata": {"name": "team"}})

    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


def test_only_finalize_may_let_a_namespace_go():
    old = written("", "namespaces", {"metadata": {"name": "team"}})
    new = copy.deepcopy(old)
    new["spec"] = {"finalizers": []}
    prepare = RULES[("", "namespaces")].prepare
    assert prepare is not None

    kept, freed = copy.deepcopy(new), copy.deepcopy(new)
    prepare(kept, old, "")
    prepare(freed, old, "finalize")

    assert kept["spec"] == {"finalizers": ["kubernetes"]}
    assert freed["spec"] == {"finalizers": []}


def test_a_node_registers_with_its_status():
    node = written("", "nodes", {"status": {"capacity": {"cpu": "4"}}})

    assert node["status"]["allocatable"] == {"cpu": "4"}


def test_taints_are_checked():
    assert complaints("", "nodes", {"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}})
    twice = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]
    assert complaints("", "nodes", {"spec": {"taints": twice}})


def test_plain_text_of_a_secret_is_stored_encoded():
    secret = written("", "secrets", {"stringData": {"key": "value"}})

    assert secret["data"] == {"key": "dmFsdWU="}
    assert "stringData" not in secret


def test_an_immutable_config_map_stays_as_it_is():
    old = written("", "configmaps", {"data": {"a": "1"}, "immutable": True})

    assert complaints("", "configmaps", {"data": {"a": "2"}, "immutable": True}, old) == [
        "data: Forbidden: field is immutable when `immutable` is set"
    ]


def test_a_kind_without_rules_keeps_spec_and_status_apart():
    rules = rules_for("example.com", "things")
    assert rules.prepare is not None
    new = {"metadata": {}, "spec": {"a": 2}, "status": {"b": 2}}
    old = {"metadata": {}, "spec": {"a": 1}, "status": {"b": 1}}

    rules.prepare(new, old, "status")

    assert (new["spec"], new["status"]) == ({"a": 1}, {"b": 2})


def test_fields_of_a_feature_that_is_off_are_dropped_unless_they_are_in_use():
    off, _ = parse("GenericWorkload=false")
    prepare = rules_for("", "pods", off).prepare
    assert prepare is not None
    member = {"metadata": {}, "spec": {"schedulingGroup": {"podGroupName": "g"}}}
    new, kept = copy.deepcopy(member), copy.deepcopy(member)

    prepare(new, None, "")
    prepare(kept, member, "")

    assert "schedulingGroup" not in new["spec"]
    assert kept["spec"] == member["spec"]


def test_a_job_loses_its_gang_where_jobs_have_none():
    off, _ = parse("WorkloadWithJob=false")
    prepare = rules_for("batch", "jobs", off).prepare
    assert prepare is not None
    job = a_job(scheduling={"schedulingPolicy": {"gang": {}}})
    job["metadata"] = {"name": "j", "uid": "u"}

    prepare(job, None, "")

    assert "scheduling" not in job["spec"]
