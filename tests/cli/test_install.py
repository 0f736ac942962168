"""`muster install`: what it prints, and that it asks for no more than it needs."""

import json

import pytest
import yaml
from click.testing import CliRunner

from muster.api.installation import USER, installation
from muster.cli import exits
from muster.cli.install import command


def printed(*flags):
    done = CliRunner().invoke(command, ["--dry-run", *flags])
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.output))


def of_kind(objects, kind):
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


def pod_spec(objects):
    return of_kind(objects, "Deployment")["spec"]["template"]["spec"]


def test_a_dry_run_prints_everything_in_an_order_that_can_be_applied():
    kinds = [each["kind"] for each in printed()]
    assert kinds == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Role",
        "RoleBinding",
        "Deployment",
        "PodDisruptionBudget",
    ]


def test_custom_resources_come_first_when_asked_for():
    objects = printed("--crds")
    assert [each["kind"] for each in objects[:3]] == ["CustomResourceDefinition"] * 3
    assert objects[3:] == printed()


def test_rights_have_no_wildcards():
    for each in printed():
        for rule in each.get("rules", ()):
            assert "*" not in json.dumps(rule)
            assert set(rule) <= {"apiGroups", "resources", "verbs", "resourceNames"}


def test_nothing_may_be_written_but_what_scheduling_writes():
    rules = of_kind(printed(), "ClusterRole")["rules"]
    written = {
        (verb, resource)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }
    assert written == {
        ("delete", "pods"),
        ("create", "pods/binding"),
        ("patch", "pods/status"),
        ("patch", "persistentvolumes"),
        ("patch", "persistentvolumeclaims"),
        ("update", "resourceclaims"),
        ("update", "resourceclaims/binding"),
        ("update", "resourceclaims/status"),
        ("create", "events"),
        ("patch", "events"),
        ("patch", "podgroups"),
        ("patch", "podgroups/status"),
        ("patch", "compositepodgroups"),
        ("patch", "compositepodgroups/status"),
        ("create", "tokenreviews"),
        ("create", "subjectaccessreviews"),
    }


def test_native_pod_groups_are_not_ours_to_change():
    rules = of_kind(printed(), "ClusterRole")["rules"]
    native = [r for r in rules if r["apiGroups"] == ["scheduling.k8s.io"] and "podgroups" in r["resources"]]
    assert [rule["verbs"] for rule in native] == [["get", "list", "watch"]]


def test_two_leases_are_the_only_ones_it_may_touch():
    roles = [each for each in printed() if each["kind"] == "Role"]
    names = {
        role["metadata"]["namespace"]: rule.get("resourceNames")
        for role in roles
        for rule in role["rules"]
        if "update" in rule["verbs"]
    }
    assert names == {"muster-system": ["muster"], "kube-system": ["muster-binding"]}


def test_the_pods_have_no_privileges():
    spec = pod_spec(printed())
    (container,) = spec["containers"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_two_replicas_elect_a_leader_and_are_probed():
    objects = printed()
    (container,) = pod_spec(objects)["containers"]
    assert of_kind(objects, "Deployment")["spec"]["replicas"] == 2
    assert "--leader-elect=true" in container["args"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert of_kind(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_the_arguments_are_ones_that_the_scheduler_takes():
    from muster.cli.scheduler import command as scheduler

    (container,) = pod_spec(printed())["containers"]
    assert container["args"][0] == "scheduler"
    scheduler.make_context("scheduler", list(container["args"][1:]))


def test_a_namespace_and_a_name_go_everywhere():
    objects = printed("--namespace", "apart", "--scheduler-name", "gangs")
    shared = [each for each in objects if each["metadata"].get("namespace") == "kube-system"]
    assert [each["kind"] for each in shared] == ["Role", "RoleBinding"]
    assert {each["metadata"].get("namespace", "apart") for each in objects if each not in shared} == {"apart"}
    assert shared[1]["subjects"][0]["namespace"] == "apart"
    (container,) = pod_spec(objects)["containers"]
    assert "--leader-elect-resource-namespace=apart" in container["args"]
    assert "--scheduler-name=gangs" in container["args"]
    assert objects == json.loads(json.dumps(installation(container["image"], "apart", "gangs")))


@pytest.mark.parametrize("flag", ["--namespace", "--scheduler-name"])
def test_a_name_that_cannot_be_one_is_refused(flag):
    done = CliRunner().invoke(command, ["--dry-run", flag, "Not A Name"])
    assert done.exit_code == exits.USAGE
    assert flag in done.output


def test_without_a_cluster_the_failure_says_so(tmp_path):
    done = CliRunner().invoke(command, ["--kubeconfig", str(tmp_path / "none")])
    assert done.exit_code == exits.BAD_INPUT


def test_without_being_asked_no_decisions_are_recorded():
    (container,) = pod_spec(printed())["containers"]
    assert not any("decision-log" in each for each in container["args"])


@pytest.mark.parametrize(
    ("flags", "source"),
    [
        (("--decision-log",), {"emptyDir": {"sizeLimit": "1Gi"}}),
        (("--decision-log-claim", "logs"), {"persistentVolumeClaim": {"claimName": "logs"}}),
    ],
)
def test_a_volume_for_the_decision_log_is_mounted_where_the_scheduler_writes_it(flags, source):
    from muster.cli.scheduler import command as scheduler

    spec = pod_spec(printed(*flags))
    (container,) = spec["containers"]
    assert {"name": "decisions", **source} in spec["volumes"]
    assert {"name": "decisions", "mountPath": "/var/log/muster"} in container["volumeMounts"]
    assert "--decision-log=/var/log/muster/$(POD_NAME).jsonl" in container["args"]
    assert spec["securityContext"].get("fsGroup") == (USER if "logs" in flags else None)
    scheduler.make_context("scheduler", list(container["args"][1:]))


def test_the_rights_of_workloads_are_a_role_of_their_own_without_wildcards():
    added = printed("--workloads")[len(printed()) :]
    assert [each["kind"] for each in added] == ["ClusterRole", "ClusterRoleBinding"]
    assert "*" not in json.dumps(added)
    written = {
        resource
        for rule in added[0]["rules"]
        if set(rule["verbs"]) - {"get", "list", "watch"}
        for resource in rule["resources"]
    }
    assert written == {"workloads", "podgroups", "compositepodgroups"}


def test_every_kind_that_is_followed_can_be_read():
    from muster.controllers.workloads.kinds import WATCHED

    rules = of_kind(printed("--workloads")[len(printed()) :], "ClusterRole")["rules"]
    readable = {(group, each) for rule in rules for group in rule["apiGroups"] for each in rule["resources"]}
    assert {(each.group, each.plural) for each in WATCHED} <= readable


def test_policies_name_the_scheduler_and_leave_the_system_alone():
    added = printed("--policies", "--scheduler-name", "ours")[len(printed()) :]
    assert [each["kind"] for each in added] == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"] * 2
    for policy, binding in zip(added[::2], added[1::2], strict=True):
        assert "'ours'" in policy["spec"]["matchConditions"][0]["expression"]
        (term,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert "kube-system" in term["values"]


def test_with_custom_resources_the_policy_only_names_the_scheduler():
    policy = [each for each in printed("--policies", "--crds") if each["kind"] == "MutatingAdmissionPolicy"]
    assert [each["metadata"]["name"] for each in policy] == ["muster-managed-namespaces"]
    assert "schedulingGroup" not in json.dumps(policy)
