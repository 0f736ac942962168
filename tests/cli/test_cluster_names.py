"""The shell completes names from the cluster, and is silent without one."""

from typing import Any

from click.shell_completion import ShellComplete

from muster.api.resources import POD_GROUPS
from muster.cli.main import muster
from muster.testing.cluster import Cluster


def completed(*arguments: str, incomplete: str = "") -> list[str]:
    found = ShellComplete(muster, {}, "muster", "_MUSTER_COMPLETE").get_completions(list(arguments), incomplete)
    return [item.value for item in found]


def a_group(name: str) -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    return {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def test_groups_and_targets_are_completed_from_the_cluster(muster_https: Cluster) -> None:
    for name in ("train-a", "train-b", "serve"):
        muster_https.client.create(POD_GROUPS, a_group(name), "default")
    where = f"--kubeconfig={muster_https.kubeconfig}"
    assert completed("tree", where, incomplete="train") == ["train-a", "train-b"]
    assert completed("explain", where, incomplete="podgroup/s") == ["podgroup/serve"]
    assert completed("explain", where, incomplete="podgroup/x") == []


def test_nodes_are_completed_from_the_cluster(muster_cluster: Cluster) -> None:
    where = f"--kubeconfig={muster_cluster.kubeconfig}"
    assert completed("node", "fail", where, incomplete="node-") == ["node-0", "node-1", "node-2"]


def test_kinds_are_completed_without_a_cluster(tmp_path) -> None:
    assert completed("explain", incomplete="pod") == ["podgroup/", "pod/"]
    assert completed("tree", f"--kubeconfig={tmp_path / 'none'}") == []
