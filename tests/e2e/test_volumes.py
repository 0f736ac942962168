"""Claims that wait for their pod, on a real cluster: made on demand or found, and for a gang all of it or none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.kube.cluster import DEFAULT_CONTROLLERS, RealCluster

from tests.e2e.objects import bound, gang_manifest, large_node, one_cpu_pod
from tests.e2e.processes import Kubectl, eventually, scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ZONE = "topology.kubernetes.io/zone"
CHOSEN = "volume.kubernetes.io/selected-node"
Obj = dict[str, Any]


@pytest.fixture(scope="module")
def kubectl(kube: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A cluster of two zones with Muster as its scheduler, and the real volume controller."""
    log = tmp_path_factory.mktemp("volumes") / "muster.log"
    with RealCluster(kube, native=True) as cluster:
        cluster.start_controller_manager((*DEFAULT_CONTROLLERS, "persistentvolume-binder-controller"))
        kubectl = Kubectl(kube, cluster.kubeconfig)
        kubectl.create(
            *(large_node(f"{zone}{i}", **{ZONE: zone}) for zone in "ab" for i in range(2)),
            a_class("made", "example.com/disk", zone="b"),
            a_class("found", "kubernetes.io/no-provisioner"),
        )
        with scheduler(cluster.kubeconfig, log):
            yield kubectl


def a_class(name: str, provisioner: str, zone: str = "") -> Obj:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}] if zone else None
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **({"allowedTopologies": allowed} if allowed else {}),
    }


def a_claim(name: str, storage_class: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def a_volume(name: str, node: str, storage_class: str, claim: Obj | None = None) -> Obj:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    spec: Obj = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    if claim is not None:
        meta = claim["metadata"]
        spec["claimRef"] = {"namespace": "default", "name": meta["name"], "uid": meta["uid"]}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def using(claim: str, name: str, group: str = "") -> Obj:
    return one_cpu_pod(name, group, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


def the_claim(kubectl: Kubectl, name: str) -> Obj:
    return json.loads(kubectl("get", "pvc", name, "-o", "json"))


def chosen(kubectl: Kubectl, name: str) -> str:
    return (the_claim(kubectl, name)["metadata"].get("annotations") or {}).get(CHOSEN, "")


def provision(kubectl: Kubectl, claim: str, storage_class: str = "made") -> str:
    """Do what a provisioner does when a node was chosen."""
    node = eventually(lambda: chosen(kubectl, claim), else_=f"a node chosen for {claim}")
    kubectl.create(a_volume(f"pv-{claim}", node, storage_class, the_claim(kubectl, claim)))
    return node


def test_a_volume_is_made_where_its_class_allows_and_the_pod_follows(kubectl: Kubectl) -> None:
    kubectl.create(a_claim("single", "made"), using("single", "single"))
    eventually(lambda: chosen(kubectl, "single"), else_="a node chosen")
    assert bound(kubectl, "single") == {}, "the pod waits for its volume"
    node = provision(kubectl, "single")
    assert node.startswith("b")
    eventually(lambda: bound(kubectl, "single") == {"single": node}, else_="the pod on the node of its volume")


def test_no_member_of_a_gang_is_bound_before_all_volumes_are(kubectl: Kubectl) -> None:
    kubectl.create(a_claim("g-0", "made"), a_claim("g-1", "made"), gang_manifest("g", 3))
    kubectl.create(using("g-0", "g-0", "g"), using("g-1", "g-1", "g"), one_cpu_pod("g-2", "g"))
    provision(kubectl, "g-0")
    eventually(lambda: the_claim(kubectl, "g-0")["status"]["phase"] == "Bound", else_="the first claim bound")
    assert bound(kubectl, "g-") == {}
    provision(kubectl, "g-1")
    eventually(lambda: len(bound(kubectl, "g-")) == 3, else_="the whole gang")


def test_a_choice_that_the_provisioner_gives_back_is_made_again(kubectl: Kubectl) -> None:
    kubectl.create(a_claim("again", "made"), using("again", "again"))
    eventually(lambda: chosen(kubectl, "again"), else_="a node chosen")
    kubectl("annotate", "pvc", "again", f"{CHOSEN}-")
    provision(kubectl, "again")
    eventually(lambda: bound(kubectl, "again"), else_="the pod bound after the second choice")


def test_volumes_that_exist_are_found_and_kept_for_their_claims(kubectl: Kubectl) -> None:
    kubectl.create(a_volume("local-a", "a0", "found"), a_volume("local-b", "b1", "found"))
    kubectl.create(a_claim("f-0", "found"), a_claim("f-1", "found"), gang_manifest("f", 2))
    kubectl.create(using("f-0", "f-0", "f"), using("f-1", "f-1", "f"))
    eventually(lambda: set(bound(kubectl, "f-").values()) == {"a0", "b1"}, else_="both on the nodes of the volumes")
