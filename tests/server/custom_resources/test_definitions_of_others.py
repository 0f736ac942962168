"""The definitions of JobSet, LeaderWorkerSet, Kueue and cert-manager are taken as they are; objects come back whole.

Read from the cache of Go modules, where somebody has downloaded them (`go mod download sigs.k8s.io/jobset@v0.10.1` and
so on); skipped otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.server.core.core_api import Api
from tests.server.custom_resources.custom_api import DEFINITIONS, Obj

MODULES = Path.home() / "go/pkg/mod"
FOLDERS = {
    "jobset": "sigs.k8s.io/jobset@*/config/components/crd/bases",
    "lws": "sigs.k8s.io/lws@*/config/crd/bases",
    "kueue": "sigs.k8s.io/kueue@*/config/components/crd/bases",
    "cert-manager": "github.com/cert-manager/cert-manager@*/deploy/crds",
}
POD = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "500m"}}}]}}
JOB = {"spec": {"parallelism": 2, "template": POD}}
OBJECTS: dict[str, list[Obj]] = {
    "jobset": [
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "spec": {"replicatedJobs": [{"name": "workers", "replicas": 3, "template": JOB}]},
        }
    ],
    "lws": [
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": POD}},
        }
    ],
    "kueue": [
        {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "spec": {"clusterQueue": "all"}},
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 3, "template": POD}]},
        },
    ],
    "cert-manager": [
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "spec": {"secretName": "s", "dnsNames": ["example.com"], "issuerRef": {"name": "i"}},
        },
        {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "spec": {"selfSigned": {}}},
    ],
}


def definitions(project: str) -> list[Obj]:
    found = sorted(MODULES.glob(FOLDERS[project]))
    if not found:
        pytest.skip(f"the Go module of {project} is not in {MODULES}")
    documents = [each for path in sorted(found[-1].glob("*.yaml")) for each in yaml.safe_load_all(path.read_text())]
    return [each for each in documents if each and each["kind"] == "CustomResourceDefinition"]


def contains(whole: Any, part: Any) -> bool:
    """Whether everything of a part is in the whole, which may have defaults beside."""
    if isinstance(part, dict):
        return all(name in whole and contains(whole[name], value) for name, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return whole == part


@pytest.mark.parametrize("project", FOLDERS)
async def test_definitions_are_taken_and_objects_come_back_whole(project: str) -> None:
    api = await Api().start()
    plurals: dict[str, str] = {}
    for definition in definitions(project):
        made = await api.post(DEFINITIONS, definition, fieldValidation="Strict")
        assert made.code == 201, made.text[:2000]
        plurals[definition["spec"]["names"]["kind"]] = definition["spec"]["names"]["plural"]
    for obj in OBJECTS[project]:
        path = f"/apis/{obj['apiVersion']}/namespaces/default/{plurals[obj['kind']]}"
        made = await api.post(path, {**obj, "metadata": {"name": "x"}}, fieldValidation="Strict")
        assert made.code == 201, made.text[:2000]
        assert contains((await api.get(f"{path}/x")).body, obj)
