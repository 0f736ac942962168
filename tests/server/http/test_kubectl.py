"""What people type: a real kubectl against a running server with controllers and nodes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubectl import Kubectl, needs_kubectl

from muster.api.resources import NAMESPACES, NODES, POD_GROUPS, PODS
from muster.testing import Cluster, a_gang, a_node, a_pod

pytestmark = [pytest.mark.e2e, needs_kubectl]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
"""
POD_GROUP = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(https=True, controllers=True) as made:
        made.client.create(NODES, a_node("n1"))
        yield made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One discovery cache for all tests, as a person has."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = f"t-{abs(hash(request.node.name)) % 10**8}"
    cluster.client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


@pytest.fixture
def kubectl(cluster: Cluster, home: Path, namespace: str, tmp_path: Path) -> Kubectl:
    """kubectl whose namespace is the test's own."""
    assert cluster.kubeconfig is not None
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return Kubectl(file, home)


# Looking around


def test_version(kubectl: Kubectl) -> None:
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["minor"] == "37"


def test_api_resources_and_versions(kubectl: Kubectl) -> None:
    listed = kubectl("api-resources", "-o", "wide")
    for word in ("podgroups", "compositepodgroups", "workloads", "pods", "deployments", "leases", "cpg", "pg"):
        assert word in listed
    assert "scheduling.k8s.io/v1alpha2" in kubectl("api-versions")


@pytest.mark.parametrize("kind", ["podgroup", "compositepodgroup", "workload", "pod", "job"])
def test_explain_recursive(kubectl: Kubectl, kind: str) -> None:
    text = kubectl("explain", kind, "--recursive")
    assert "FIELDS:" in text
    assert "spec" in text


def test_explain_one_field(kubectl: Kubectl) -> None:
    assert "minCount" in kubectl("explain", "podgroup.spec.schedulingPolicy.gang")


def test_auth(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "create", "pods", "--as", "jane", fails=True).startswith("no")
    kubectl("create", "rolebinding", "jane", "--clusterrole=view", "--user=jane")
    assert kubectl("auth", "can-i", "list", "podgroups", "--as", "jane").strip() == "yes"
    listed = kubectl("auth", "can-i", "--list", "--as", "jane")
    assert "podgroups.scheduling.k8s.io" in listed
    refused = kubectl("get", "secrets", "--as", "jane", fails=True)
    assert f'User "jane" cannot list resource "secrets" in API group "" in the namespace "{namespace}"' in refused


# Creating


def test_create_namespace_configmap_and_token(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "namespace", f"{namespace}-x")
    kubectl("create", "configmap", "c", "--from-literal=a=1")
    kubectl("create", "serviceaccount", "bot")
    assert kubectl("create", "token", "bot").count(".") == 2
    assert kubectl("get", "configmap", "c", "-o", "jsonpath={.data.a}") == "1"


def test_create_job_makes_a_pod(kubectl: Kubectl) -> None:
    kubectl("create", "job", "j", "--image=busybox", "--", "true")
    kubectl("wait", "--for=jsonpath={.status.active}=1", "job/j", "--timeout=20s")
    assert "pod/j-" in kubectl("get", "pods", "-l", "job-name=j", "-o", "name")


def test_create_deployment_and_scale_it(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "d", "--image=nginx", "--replicas=2")
    kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deployment/d", "--timeout=20s")
    kubectl("scale", "deployment/d", "--replicas=3")
    kubectl("wait", "--for=jsonpath={.status.replicas}=3", "deployment/d", "--timeout=20s")
    assert kubectl("get", "all").count("pod/d-") == 3


def test_create_twice_says_that_it_exists(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=POD_GROUP)
    assert "(AlreadyExists)" in kubectl("create", "-f", "-", input=POD_GROUP, fails=True)


def test_an_unknown_field_is_named(kubectl: Kubectl) -> None:
    bad = POD_GROUP.replace("minCount: 2", "minCount: 2, minCuont: 3")
    assert 'unknown field "spec.schedulingPolicy.gang.minCuont"' in kubectl("create", "-f", "-", input=bad, fails=True)


def test_an_invalid_group_is_refused_with_the_field(kubectl: Kubectl) -> None:
    refused = kubectl("create", "-f", "-", input=POD_GROUP.replace("minCount: 2", "minCount: 0"), fails=True)
    assert "spec.schedulingPolicy.gang.minCount" in refused


# Applying


def test_apply_on_the_client_side_and_diff(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f", "-", input=DEPLOYMENT)
    assert "unchanged" in kubectl("apply", "-f", "-", input=DEPLOYMENT)
    changed = DEPLOYMENT.replace("nginx", "nginx:2")
    assert "+      - image: nginx:2" in kubectl("diff", "-f", "-", input=changed, fails=True)
    assert "configured" in kubectl("apply", "-f", "-", input=changed)
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={..image}") == "nginx:2"


def test_apply_on_the_server_side_meets_conflicts(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in kubectl(*apply, input=CONFIG_MAP)
    other = kubectl(*apply, "--field-manager=other", input=CONFIG_MAP.replace("'1'", "'2'"), fails=True)
    assert "conflict" in other
    kubectl(*apply, "--field-manager=other", "--force-conflicts", input=CONFIG_MAP.replace("'1'", "'2'"))
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "2"


def test_a_dry_run_leaves_nothing(kubectl: Kubectl) -> None:
    kubectl("apply", "--dry-run=server", "-f", "-", input=CONFIG_MAP)
    assert "(NotFound)" in kubectl("get", "cm", "c", fails=True)


def test_replace_and_edit_paths(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=CONFIG_MAP)
    kubectl("replace", "-f", "-", input=CONFIG_MAP.replace("'1'", "'9'"))
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "9"


# Getting


def test_get_in_every_output(kubectl: Kubectl, cluster: Cluster, namespace: str) -> None:
    for obj in a_gang("g", 2, namespace):
        cluster.client.create(POD_GROUPS if obj["kind"] == "PodGroup" else PODS, obj)
    table = kubectl("get", "pg")
    assert table.split()[:6] == ["NAME", "POLICY", "WORKLOAD", "MEMBERS", "STATUS", "AGE"]
    wide = kubectl("get", "pg", "-o", "wide").splitlines()[0]
    assert wide.split()[-5:] == ["REASON", "TOPOLOGY", "PRIORITY", "MADE", "FOR"]
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/g-0", "pod/g-1"]
    assert len(json.loads(kubectl("get", "pods", "-o", "json"))["items"]) == 2
    assert yaml.safe_load(kubectl("get", "pod", "g-0", "-o", "yaml"))["kind"] == "Pod"
    assert kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name").split() == ["N", "g-0", "g-1"]
    assert kubectl("get", "pods", "--sort-by=.metadata.name", "--no-headers").split()[0] == "g-0"
    assert "g-0" in kubectl("get", "pods", "-A")
    assert "g-1" not in kubectl("get", "pods", "--field-selector=metadata.name=g-0")


def test_get_and_watch(kubectl: Kubectl, cluster: Cluster, namespace: str) -> None:
    watching = kubectl.start("get", "pods", "-w", "--no-headers")
    try:
        cluster.client.create(PODS, a_pod("seen", namespace))
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:3] == ["seen", "0/1", "Pending"]
    finally:
        watching.terminate()
        watching.wait(5)
        watching.stdout.close() if watching.stdout else None


@pytest.mark.parametrize("what", ["pod/p", "node/n1", "pg/g", "namespace/default"])
def test_describe(kubectl: Kubectl, cluster: Cluster, namespace: str, what: str) -> None:
    cluster.client.create(PODS, a_pod("p", namespace))
    for obj in a_gang("g", 1, namespace):
        cluster.client.create(POD_GROUPS if obj["kind"] == "PodGroup" else PODS, obj)
    assert what.partition("/")[2] in kubectl("describe", what)


def test_logs_and_events(kubectl: Kubectl, cluster: Cluster, namespace: str) -> None:
    cluster.client.create(PODS, a_pod("p", namespace, nodeName="n1"))
    kubectl("logs", "p")
    kubectl("events")
    kubectl("get", "events")


# Changing


def test_label_annotate_and_patch_in_three_types(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=CONFIG_MAP)
    kubectl("label", "cm", "c", "x=1")
    kubectl("annotate", "cm", "c", "y=2")
    kubectl("patch", "cm", "c", "-p", '{"data":{"s":"1"}}')
    kubectl("patch", "cm", "c", "--type=merge", "-p", '{"data":{"m":"1"}}')
    kubectl("patch", "cm", "c", "--type=json", "-p", '[{"op":"add","path":"/data/j","value":"1"}]')
    got = json.loads(kubectl("get", "cm", "c", "-o", "json"))
    assert got["data"] == {"a": "1", "s": "1", "m": "1", "j": "1"}
    assert (got["metadata"]["labels"]["x"], got["metadata"]["annotations"]["y"]) == ("1", "2")


def test_rollout_and_set_image(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", input=DEPLOYMENT)
    kubectl("set", "image", "deployment/web", "c=nginx:3")
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={..image}") == "nginx:3"


def test_cordon_taint_and_drain(kubectl: Kubectl, cluster: Cluster, namespace: str) -> None:
    cluster.client.create(NODES, a_node(f"{namespace}-node"))
    node = f"{namespace}-node"
    cluster.client.create(PODS, a_pod("p", namespace, nodeName=node, terminationGracePeriodSeconds=0))
    kubectl("cordon", node)
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    kubectl("taint", "node", node, "a=b:NoSchedule")
    kubectl("drain", node, "--force", "--timeout=20s")
    assert "(NotFound)" in kubectl("get", "pod", "p", fails=True)
    kubectl("uncordon", node)


# Deleting


@pytest.mark.parametrize(("cascade", "left"), [("background", 0), ("foreground", 0), ("orphan", 1)])
def test_delete_with_each_cascade(kubectl: Kubectl, cascade: str, left: int) -> None:
    kubectl("apply", "-f", "-", input=DEPLOYMENT)
    kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deployment/web", "--timeout=20s")
    kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--timeout=20s")
    if left:
        assert len(kubectl("get", "rs", "-o", "name").split()) == left
    else:
        kubectl("wait", "--for=delete", "rs", "-l", "app=web", "--timeout=20s")


def test_delete_a_namespace_with_what_is_in_it(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", input=CONFIG_MAP)
    kubectl("delete", "namespace", namespace, "--timeout=30s")
    assert "(NotFound)" in kubectl("get", "namespace", namespace, fails=True)


def test_delete_all_of_a_kind_and_by_label(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=CONFIG_MAP)
    kubectl("label", "cm", "c", "x=1")
    kubectl("delete", "cm", "-l", "x=1")
    assert "(NotFound)" in kubectl("get", "cm", "c", fails=True)
