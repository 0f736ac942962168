"""`muster explain` for a user who may only see one namespace: conditions and events, and the right that is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from muster.api.resources import POD_GROUPS, PODS, Resource
from muster.cli.main import run
from muster.testing.cluster import Cluster

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", True)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)


def the(resource: Resource, name: str, **fields: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **fields}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(https=True, controllers=True, scheduler=True, nodes=2) as cluster:
        client = cluster.client
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
        client.create(ROLES, the(ROLES, "reader", rules=rules))
        subjects = [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]
        role = {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
        client.create(BINDINGS, the(BINDINGS, "reader", subjects=subjects, roleRef=role))
        client.create(POD_GROUPS, the(POD_GROUPS, "big", spec={"schedulingPolicy": {"gang": {"minCount": 3}}}))
        for i in range(3):
            spec = {
                "schedulingGroup": {"podGroupName": "big"},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "60"}}}],
            }
            client.create(PODS, the(PODS, f"big-{i}", spec=spec))
        _until_refused(cluster)
        yield cluster


def _until_refused(cluster: Cluster) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        conditions = (cluster.client.get(POD_GROUPS, "big", "default").get("status") or {}).get("conditions") or []
        if any(condition["reason"] == "Unschedulable" for condition in conditions):
            return
        time.sleep(0.05)
    raise AssertionError("the group was not refused")


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> str:
    """Ann's, who may read what is in her namespace."""
    credentials = cluster._plane.api.credentials
    whole = yaml.safe_load(credentials.kubeconfig(cluster.url))
    pair = credentials.authority.for_client("ann", ())
    (tmp_path / "ann.crt").write_bytes(pair.cert)
    (tmp_path / "ann.key").write_bytes(pair.key)
    whole["users"][0]["user"] = {
        "client-certificate": str(tmp_path / "ann.crt"),
        "client-key": str(tmp_path / "ann.key"),
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(whole))
    return str(file)


@pytest.mark.parametrize("target", ["podgroup/big", "pod/big-1"])
def test_the_condition_is_told_and_the_missing_right_is_named(
    target: str, kubeconfig: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["explain", target, "--kubeconfig", kubeconfig]) == 0
    text = capsys.readouterr().out
    assert text.startswith("podgroup big waits (Unschedulable): the cluster has 2 of 3 seats; short of cpu by 60")
    assert "Its events say:\n  podgroup big: FailedScheduling: the cluster has 2 of 3 seats" in text
    said = " ".join(text.split())
    assert "listing compositepodgroups, csinodes, deviceclasses, devicetaintrules, namespaces, nodes, " in said
    assert "in the whole cluster is forbidden to this user" in said


def test_programs_get_the_same_facts(kubeconfig: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", "pg/big", "--kubeconfig", kubeconfig, "-o", "json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out.encode())
    assert (found["verdict"], found["condition"]["status"]) == ("Unschedulable", "False")
    assert "nodes" in found["missing"]
    assert found["suggestions"] == []


def test_an_unknown_name_is_still_said_to_be_unknown(kubeconfig: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", "pg/nobody", "--kubeconfig", kubeconfig]) == 69
    assert 'podgroups.scheduling.k8s.io "nobody" not found' in capsys.readouterr().err


@pytest.mark.parametrize("question", ["queue", "tree", "topology", "snapshot"])
def test_questions_about_the_whole_cluster_name_the_missing_rights(
    question: str, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    more = ["-f", str(tmp_path / "s.gz")] if question == "snapshot" else []
    assert run([question, "--kubeconfig", kubeconfig, *more]) == 69
    assert (
        "listing compositepodgroups, csinodes, deviceclasses, devicetaintrules, namespaces, nodes, "
        in capsys.readouterr().err
    )


def test_with_all_rights_the_same_group_is_explained_in_full(cluster: Cluster, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", "pg/big", "--kubeconfig", str(cluster.kubeconfig)]) == 0
    text = capsys.readouterr().out
    assert "lower minCount of big from 3 to 2" in text
    assert "add 1 node like node-" in text
