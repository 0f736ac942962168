"""Objects of `resource.k8s.io` are refused, defaulted and stored as kube-apiserver does it, word for word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.api.errors import ApiError
from muster.testing import Cluster
from tests.server.device_answers import answers, recorded
from tests.server.device_cases import ALLOCATION as SOME
from tests.server.device_cases import CASES, Obj, a_slice, changed, claim, device, exactly, status, taint_rule, template

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_POD = {"resource": "pods", "name": "p", "uid": "u"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as found:
        yield found


def call(cluster: Cluster, method: str, path: str, body: Obj | None = None) -> tuple[int, Obj]:
    try:
        return (201 if method == "POST" else 200), cluster.client.request(method, path, body)
    except ApiError as error:
        return error.code, {"message": error.message}


@pytest.fixture(scope="module")
def given(cluster: Cluster) -> dict[str, Obj]:
    return answers(lambda method, path, body: call(cluster, method, path, body))


@pytest.mark.parametrize("case", sorted(recorded()))
def test_the_answer_is_that_of_a_real_server(given: dict[str, Obj], case: str) -> None:
    assert given[case] == recorded()[case]


def test_every_case_was_recorded(given: dict[str, Obj]) -> None:
    assert given.keys() == recorded().keys()
    assert sum(answer["code"] == 422 for answer in given.values()) > 100
    assert len(CASES) > 100


def test_administration_needs_the_label_on_the_namespace(cluster: Cluster) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    cluster.client.request("POST", "/api/v1/namespaces", {"metadata": {"name": "admins", "labels": labels}})
    path = "/apis/resource.k8s.io/v1/namespaces/admins/resourceclaims"
    assert call(cluster, "POST", path, claim(exactly(adminAccess=True)))[0] == 201
    bad = template(spec=claim(exactly(adminAccess=True))["spec"])
    code, told = call(cluster, "POST", CLAIMS.replace("claims", "claimtemplates"), bad)
    assert code == 422
    assert "spec.spec.devices.requests[0].adminAccess: Forbidden" in told["message"]


def test_no_consumer_is_added_while_a_claim_is_being_deleted(cluster: Cluster) -> None:
    obj = changed(claim(exactly()), "metadata", "finalizers", value=["example.com/hold"])
    cluster.client.request("POST", CLAIMS, obj)
    cluster.client.request("PUT", f"{CLAIMS}/c/status", {**obj, "status": status(SOME, reservedFor=[_POD])})
    cluster.client.request("DELETE", f"{CLAIMS}/c")
    more = status(SOME, reservedFor=[_POD, {**_POD, "uid": "v"}])
    code, told = call(cluster, "PUT", f"{CLAIMS}/c/status", {**obj, "status": more})
    assert code == 422
    assert "new entries may not be added while" in told["message"]
    assert call(cluster, "PUT", f"{CLAIMS}/c/status", {**obj, "status": status(SOME)})[0] == 200
    cluster.client.request("PUT", f"{CLAIMS}/c", changed(obj, "metadata", "finalizers", value=[]))


def test_the_main_endpoint_keeps_the_status_and_the_status_endpoint_the_spec(cluster: Cluster) -> None:
    obj = claim(exactly())
    cluster.client.request("POST", CLAIMS, {**obj, "status": status(SOME)})
    assert cluster.client.request("GET", f"{CLAIMS}/c").get("status") in (None, {})
    cluster.client.request("PUT", f"{CLAIMS}/c/status", {**claim(exactly(count=3)), "status": status(SOME)})
    stored = cluster.client.request("GET", f"{CLAIMS}/c")
    assert stored["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert stored["status"]["allocation"]["devices"]["results"][0]["device"] == "d"
    cluster.client.request("PUT", f"{CLAIMS}/c", obj)
    assert cluster.client.request("GET", f"{CLAIMS}/c")["status"]["allocation"]
    cluster.client.request("DELETE", f"{CLAIMS}/c")


def test_an_expression_that_is_stored_is_not_judged_again(cluster: Cluster) -> None:
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    spec = {"selectors": [{"cel": {"expression": "device.driver == 'a'"}}]}
    obj = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}, "spec": spec}
    cluster.client.request("POST", path, obj)
    cluster.client.request("PUT", f"{path}/x", changed(obj, "metadata", "labels", value={"a": "b"}))
    wrong = changed(obj, "spec", "selectors", value=[{"cel": {"expression": "device.nothing"}}])
    assert call(cluster, "PUT", f"{path}/x", wrong)[0] == 422
    cluster.client.request("DELETE", f"{path}/x")


def test_slices_are_found_by_driver_and_node(cluster: Cluster) -> None:
    path = "/apis/resource.k8s.io/v1/resourceslices"
    for name, node in (("one", "n1"), ("two", "n2")):
        cluster.client.request("POST", path, changed(a_slice(device(), nodeName=node), "metadata", "name", value=name))

    def found(selector: str) -> list[str]:
        listed = cluster.client.request("GET", path, query={"fieldSelector": selector})
        return [item["metadata"]["name"] for item in listed["items"]]

    assert found("spec.nodeName=n2") == ["two"]
    assert found("spec.driver=gpu.example.com") == ["one", "two"]
    assert found("spec.driver=other") == []
    for name in ("one", "two"):
        cluster.client.request("DELETE", f"{path}/{name}")


def test_a_taint_has_the_time_at_which_it_came(cluster: Cluster) -> None:
    path = "/apis/resource.k8s.io/v1/devicetaintrules"
    made = cluster.client.request("POST", path, taint_rule())
    assert made["spec"]["taint"]["timeAdded"].endswith("Z")
    cluster.client.request("DELETE", f"{path}/rule")
