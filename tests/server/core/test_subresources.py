"""Binding, scale, log and token: the pages below an object."""

from __future__ import annotations

import pytest
from core_api import PODS, Api

from muster.server.request import Response
from muster.testing import a_pod

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def a_binding(node: str = "n1", **meta: object) -> dict[str, object]:
    return {"metadata": {"name": "p", **meta}, "target": {"kind": "Node", "name": node}}


async def test_a_binding_names_the_node_and_marks_the_pod_scheduled(api: Api) -> None:
    await api.post(PODS, {**a_pod("p"), "metadata": {"name": "p", "annotations": {"a": "1"}}})
    await api.merge(f"{PODS}/p/status", {"status": {"nominatedNodeName": "n0"}})
    bound = await api.post(f"{PODS}/p/binding", a_binding(annotations={"b": "2"}))
    pod = await api.get(f"{PODS}/p")

    assert (bound.code, bound.body["status"]) == (201, "Success")
    assert pod.body["spec"]["nodeName"] == "n1"
    assert pod.meta["annotations"] == {"a": "1", "b": "2"}
    assert pod.meta["generation"] == 1
    assert "nominatedNodeName" not in pod.body["status"]
    scheduled = [entry for entry in pod.body["status"]["conditions"] if entry["type"] == "PodScheduled"]
    assert [entry["status"] for entry in scheduled] == ["True"]


async def test_a_bound_pod_cannot_be_bound_again(api: Api) -> None:
    await api.post(PODS, a_pod("p"))
    await api.post(f"{PODS}/p/binding", a_binding("n1"))
    again = await api.post(f"{PODS}/p/binding", a_binding("n2"))

    assert again.code == 409
    assert again.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )


async def test_a_pod_that_is_going_cannot_be_bound(api: Api) -> None:
    await api.post(PODS, {**a_pod("p"), "metadata": {"name": "p", "finalizers": ["example.com/hold"]}})
    await api.delete(f"{PODS}/p")
    refused = await api.post(f"{PODS}/p/binding", a_binding())

    assert refused.code == 409
    assert "pod p is being deleted, cannot be assigned to a host" in refused.body["message"]


async def test_a_gated_pod_cannot_be_bound(api: Api) -> None:
    await api.post(PODS, a_pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    assert (await api.post(f"{PODS}/p/binding", a_binding())).code == 409


async def test_a_binding_for_another_uid_is_refused(api: Api) -> None:
    await api.post(PODS, a_pod("p"))
    assert (await api.post(f"{PODS}/p/binding", a_binding(uid="older"))).code == 409
    assert (await api.post(f"{PODS}/q/binding", {"target": {"name": "n"}})).code == 404


async def test_a_binding_needs_a_node(api: Api) -> None:
    await api.post(PODS, a_pod("p"))
    refused = await api.post(f"{PODS}/p/binding", {"target": {"kind": "Pod", "name": ""}})
    assert refused.code == 422
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["target.kind", "target.name"]


async def a_deployment(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.post(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})


async def test_scale_shows_and_sets_replicas(api: Api) -> None:
    await a_deployment(api)
    shown = await api.get(f"{DEPLOYMENTS}/d/scale")
    patched = await api.merge(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}})
    put = await api.put(f"{DEPLOYMENTS}/d/scale", {**patched.body, "spec": {"replicas": 6}})
    stale = await api.put(f"{DEPLOYMENTS}/d/scale", {**patched.body, "spec": {"replicas": 7}})
    negative = await api.merge(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}})

    assert (shown.body["apiVersion"], shown.body["kind"]) == ("autoscaling/v1", "Scale")
    assert shown.body["status"] == {"replicas": 0, "selector": "a=b"}
    assert (patched.body["spec"], put.body["spec"]) == ({"replicas": 5}, {"replicas": 6})
    assert (stale.code, negative.code) == (409, 422)
    assert (await api.get(f"{DEPLOYMENTS}/d")).body["spec"]["replicas"] == 6


async def test_a_log_comes_from_whoever_runs_the_pod(api: Api) -> None:
    async def words(pod: dict[str, object], request: object) -> Response:
        return Response(200, b"hello\n", "text/plain")

    api.server.hooks.pod_log = words
    await api.post(PODS, a_pod("p", nodeName="n1"))
    shown = await api.get(f"{PODS}/p/log")
    wrong = await api.get(f"{PODS}/p/log", container="other")

    assert (shown.code, shown.text) == (200, "hello\n")
    assert wrong.body["message"] == "container other is not valid for pod p"


async def test_a_token_comes_from_the_issuer(api: Api) -> None:
    api.server.hooks.issue_token = lambda namespace, name, request: {**request, "status": {"token": name}}
    path = "/api/v1/namespaces/default/serviceaccounts"
    await api.post(path, {"metadata": {"name": "robot"}})
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}}
    made = await api.post(f"{path}/robot/token", body)

    assert (made.code, made.body["status"]["token"]) == (201, "robot")
    assert (await api.post(f"{path}/ghost/token", body)).code == 404


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", f"{PODS}/p/nonsense", 404),
        ("DELETE", f"{PODS}/p/status", 405),
        ("GET", f"{PODS}/p/binding", 405),
        ("GET", f"{PODS}/p/status", 200),
    ],
)
async def test_only_served_subresources_answer(api: Api, method: str, path: str, code: int) -> None:
    await api.post(PODS, a_pod("p"))
    assert (await api.ask(method, path)).code == code


@pytest.mark.parametrize("stream", ["exec", "attach", "portforward"])
async def test_streams_say_in_one_sentence_that_no_container_runs(api: Api, stream: str) -> None:
    await api.post(PODS, a_pod("p"))
    for method in ("GET", "POST"):
        answer = await api.ask(method, f"{PODS}/p/{stream}")
        assert answer.code == 400
        assert answer.body["message"] == (
            f"{stream}: simulated nodes run no containers, so there is nothing to connect to"
        )
    assert (await api.ask("POST", f"{PODS}/ghost/{stream}")).code == 404
