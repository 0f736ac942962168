"""What a RuntimeClass adds to a pod, and what it refuses."""

from __future__ import annotations

from typing import Any

from tests.server.core.core_api import PODS, Answer, Api

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


async def a_class(api: Api, **body: Any) -> None:
    made = await api.post(CLASSES, {"metadata": {"name": "sandbox"}, "handler": "runsc", **body})
    assert made.code == 201


async def create_pod(api: Api, **spec: Any) -> Answer:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    return await api.post(PODS, body)


async def test_a_pod_gets_overhead_selector_and_tolerations_of_its_class():
    api = await Api().start()
    toleration = {"key": "sandbox", "operator": "Exists"}
    scheduling = {"nodeSelector": {"sandbox": "yes"}, "tolerations": [toleration]}
    await a_class(api, overhead={"podFixed": {"cpu": "250m"}}, scheduling=scheduling)
    spec = (await create_pod(api, runtimeClassName="sandbox", nodeSelector={"a": "b"})).body["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"a": "b", "sandbox": "yes"}
    assert toleration in spec["tolerations"]


async def test_a_class_that_is_not_there_or_does_not_agree_refuses_the_pod():
    api = await Api().start()
    await a_class(api, scheduling={"nodeSelector": {"a": "x"}})
    for spec, message in (
        ({"runtimeClassName": "other"}, 'RuntimeClass "other" not found'),
        ({"overhead": {"cpu": "1"}}, "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        (
            {"runtimeClassName": "sandbox", "nodeSelector": {"a": "b"}},
            "conflict: runtimeClass.scheduling.nodeSelector[a]",
        ),
    ):
        refused = await create_pod(api, **spec)
        assert refused.code == 403
        assert message in refused.body["message"]


async def test_overhead_that_is_not_that_of_the_class_is_refused():
    api = await Api().start()
    await a_class(api, overhead={"podFixed": {"cpu": "250m"}})
    refused = await create_pod(api, runtimeClassName="sandbox", overhead={"cpu": "1"})
    assert "Pod's Overhead doesn't match RuntimeClass's defined Overhead" in refused.body["message"]
