"""The official Python client and lightkube, through their own models, against a running server."""

import gc
import threading
import time
from collections.abc import Iterator

import kubernetes
import lightkube
import pytest
from kubernetes.client.exceptions import ApiException
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod
from lightkube.types import PatchType
from tests.server.custom_resources.custom_api import a_definition, a_version, a_widget

from muster.api.resources import PODS
from muster.testing import Cluster, a_node, a_pod

# Both clients leave sockets to the garbage collector; it complains here, where that is no news.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def leftovers() -> Iterator[None]:
    """Collects what the clients left before another test has to hear about it."""
    yield
    gc.collect()


@pytest.fixture
def official(muster_https: Cluster) -> Iterator[kubernetes.client.ApiClient]:
    client = kubernetes.config.new_client_from_config(str(muster_https.kubeconfig))
    yield client
    client.close()
    client.rest_client.pool_manager.clear()


@pytest.fixture
def light(muster_https: Cluster) -> lightkube.Client:
    return lightkube.Client(lightkube.KubeConfig.from_file(muster_https.kubeconfig))


# The official client


def test_the_official_client_creates_reads_changes_and_deletes(official: kubernetes.client.ApiClient) -> None:
    core = kubernetes.client.CoreV1Api(official)
    created = core.create_namespaced_pod("default", a_pod("p", cpu="500m", labels={"app": "x"}))
    assert created.spec.scheduler_name == "default-scheduler"
    assert created.status.phase == "Pending"
    assert [pod.metadata.name for pod in core.list_namespaced_pod("default", label_selector="app=x").items] == ["p"]
    patched = core.patch_namespaced_pod("p", "default", {"metadata": {"annotations": {"a": "b"}}})
    assert patched.metadata.annotations["a"] == "b"
    patched.metadata.labels["more"] = "yes"
    assert core.replace_namespaced_pod("p", "default", patched).metadata.labels["more"] == "yes"
    with pytest.raises(ApiException) as caught:
        core.replace_namespaced_pod("p", "default", patched)
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")
    core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
    with pytest.raises(ApiException) as caught:
        core.read_namespaced_pod("p", "default")
    assert caught.value.status == 404


def test_the_official_client_defines_a_kind_and_uses_it(official: kubernetes.client.ApiClient) -> None:
    definitions = kubernetes.client.ApiextensionsV1Api(official)
    definitions.create_custom_resource_definition(a_definition(a_version(spec={"size": {"type": "integer"}})))
    custom = kubernetes.client.CustomObjectsApi(official)
    where = ("example.com", "v1", "default", "widgets")
    custom.create_namespaced_custom_object(*where, a_widget(spec={"size": 1}))
    assert custom.patch_namespaced_custom_object(*where, "w", {"spec": {"size": 2}})["spec"] == {"size": 2}
    assert [each["kind"] for each in custom.list_namespaced_custom_object(*where)["items"]] == ["Widget"]
    with pytest.raises(ApiException) as caught:
        custom.create_namespaced_custom_object(*where, a_widget("x", spec={"size": "big"}))
    assert caught.value.status == 422
    custom.delete_namespaced_custom_object(*where, "w")


def test_the_official_client_watches(muster_https: Cluster, official: kubernetes.client.ApiClient) -> None:
    core = kubernetes.client.CoreV1Api(official)
    version = core.list_namespaced_pod("default").metadata.resource_version

    def write() -> None:
        time.sleep(0.1)
        for index in range(5):
            muster_https.client.create(PODS, a_pod(f"p{index}"))

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    watch = kubernetes.watch.Watch()
    for event in watch.stream(core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=10):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 5:
            watch.stop()
    writer.join()
    assert seen == [("ADDED", f"p{index}") for index in range(5)]


def test_the_official_client_pages_through_a_list(official: kubernetes.client.ApiClient) -> None:
    core = kubernetes.client.CoreV1Api(official)
    for index in range(7):
        core.create_namespaced_config_map("default", {"metadata": {"name": f"c{index}"}, "data": {"i": str(index)}})
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map("default", limit=3, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert [name for name in names if name.startswith("c")] == [f"c{index}" for index in range(7)]


def test_the_official_client_binds_and_evicts(muster_https: Cluster, official: kubernetes.client.ApiClient) -> None:
    core = kubernetes.client.CoreV1Api(official)
    core.create_node(a_node("n1"))
    core.create_namespaced_pod("default", a_pod("p"))
    target = kubernetes.client.V1ObjectReference(kind="Node", name="n1")
    binding = kubernetes.client.V1Binding(metadata={"name": "p"}, target=target)
    core.create_namespaced_pod_binding("p", "default", binding, _preload_content=False)
    assert core.read_namespaced_pod("p", "default").spec.node_name == "n1"
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod_binding("p", "default", binding, _preload_content=False)
    assert caught.value.status == 409
    eviction = kubernetes.client.V1Eviction(metadata={"name": "p"})
    core.create_namespaced_pod_eviction("p", "default", eviction)
    assert core.read_namespaced_pod("p", "default").metadata.deletion_timestamp is not None


def test_the_official_client_discovers_and_uses_the_group_kinds(official: kubernetes.client.ApiClient) -> None:
    custom = kubernetes.client.CustomObjectsApi(official)
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    made = custom.create_namespaced_custom_object("scheduling.k8s.io", "v1beta1", "default", "podgroups", group)
    assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    dynamic = kubernetes.dynamic.DynamicClient(official)
    kind = dynamic.resources.get(api_version="scheduling.k8s.io/v1alpha3", kind="PodGroup")
    assert kind.get(name="g", namespace="default").spec.schedulingPolicy.gang.minCount == 3


def test_the_official_client_asks_what_it_may_do(official: kubernetes.client.ApiClient) -> None:
    authorization = kubernetes.client.AuthorizationV1Api(official)
    attributes = {"verb": "delete", "resource": "nodes"}
    review = authorization.create_self_subject_access_review({"spec": {"resourceAttributes": attributes}})
    assert review.status.allowed is True


# lightkube


def a_light_pod(name: str) -> Pod:
    spec = PodSpec(containers=[Container(name="main", image="x")])
    return Pod(metadata=ObjectMeta(name=name, namespace="default", labels={"app": "x"}), spec=spec)


def test_lightkube_creates_reads_changes_and_deletes(light: lightkube.Client) -> None:
    made = light.create(a_light_pod("p"))
    assert made.spec is not None
    assert made.spec.restartPolicy == "Always"
    assert [pod.metadata.name for pod in light.list(Pod, namespace="default", labels={"app": "x"})] == ["p"]
    for kind in (PatchType.STRATEGIC, PatchType.MERGE):
        light.patch(Pod, "p", {"metadata": {"labels": {kind.name: "yes"}}}, namespace="default", patch_type=kind)
    patch = [{"op": "add", "path": "/metadata/labels/json", "value": "yes"}]
    labels = light.patch(Pod, "p", patch, namespace="default", patch_type=PatchType.JSON).metadata.labels
    assert {"STRATEGIC", "MERGE", "json"} <= set(labels)
    light.delete(Pod, "p", namespace="default", grace_period=0)
    with pytest.raises(ApiError) as caught:
        light.get(Pod, "p", namespace="default")
    assert caught.value.status.code == 404


def test_lightkube_applies_on_the_server_and_meets_conflicts(light: lightkube.Client) -> None:
    wanted = ConfigMap(metadata=ObjectMeta(name="c", namespace="default"), data={"a": "1"})
    light.apply(wanted, field_manager="one")
    wanted.data = {"a": "2"}
    with pytest.raises(ApiError) as caught:
        light.apply(wanted, field_manager="two")
    assert caught.value.status.code == 409
    assert light.apply(wanted, field_manager="two", force=True).data == {"a": "2"}


def test_lightkube_watches(muster_https: Cluster, light: lightkube.Client) -> None:
    for index in range(3):
        muster_https.client.create(PODS, a_pod(f"p{index}"))
    seen = []
    for kind, pod in light.watch(Pod, namespace="default", server_timeout=5):
        seen.append((kind, pod.metadata.name))
        if len(seen) == 3:
            break
    assert seen == [("ADDED", f"p{index}") for index in range(3)]


def test_lightkube_scales_and_sets_status(light: lightkube.Client) -> None:
    light.create(Namespace(metadata=ObjectMeta(name="n")))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    light.create(Deployment.from_dict({"metadata": {"name": "d", "namespace": "n"}, "spec": spec}))
    scale = light.patch(Deployment.Scale, "d", {"spec": {"replicas": 4}}, namespace="n")
    assert scale.spec.replicas == 4
    light.create(Node.from_dict(a_node("n1")))
    status = light.patch(Node.Status, "n1", {"status": {"allocatable": {"cpu": "7"}}})
    assert status.status.allocatable["cpu"] == "7"


def test_lightkube_defines_a_kind_and_uses_it(light: lightkube.Client) -> None:
    light.create(CustomResourceDefinition.from_dict(a_definition(a_version(spec={"size": {"type": "integer"}}))))
    Widget = create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    light.create(Widget(a_widget(spec={"size": 1})), namespace="default")

    light.patch(Widget, "w", {"spec": {"size": 2}}, namespace="default", patch_type=PatchType.MERGE)
    light.apply(Widget(a_widget("applied", spec={"size": 3})), namespace="default", field_manager="test")

    assert [(each.metadata.name, each.spec["size"]) for each in light.list(Widget, namespace="default")] == [
        ("applied", 3),
        ("w", 2),
    ]
