"""Whatever bytes arrive, the answer is a Status below 500 or an object: hooks never see what the schema refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from core_api import Api
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.build.examples import examples
from tests.build.manifests import in_version

from muster.server.request import Response
from muster.testing import a_pod, a_pod_group

COLLECTIONS = {
    "pods": "/api/v1/namespaces/default/pods",
    "nodes": "/api/v1/nodes",
    "services": "/api/v1/namespaces/default/services",
    "events": "/apis/events.k8s.io/v1/namespaces/default/events",
    "podgroups": "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups",
    "workloads": "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads",
    "compositepodgroups": "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups",
    "deployments": "/apis/apps/v1/namespaces/default/deployments",
    "jobs": "/apis/batch/v1/namespaces/default/jobs",
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "secrets": "/api/v1/namespaces/default/secrets",
    "namespaces": "/api/v1/namespaces",
}
# fmt: off
WORDS = [
    "metadata", "name", "generateName", "labels", "annotations", "finalizers", "ownerReferences",
    "managedFields", "spec", "status", "template", "containers", "image", "resources", "requests", "limits",
    "cpu", "memory", "env", "value", "ports", "containerPort", "nodeName", "tolerations", "affinity",
    "schedulingGroup", "podGroupName", "schedulingPolicy", "gang", "basic", "minCount", "workloadRef",
    "podGroupTemplates", "compositePodGroupTemplates", "schedulingConstraints", "topology", "key",
    "selector", "matchLabels", "matchExpressions", "replicas", "conditions", "type", "reason", "phase",
    "data", "stringData", "op", "path", "from", "add", "remove", "replace", "$patch", "$retainKeys",
    "taints", "effect", "priorityClassName", "disruptionMode", "single", "all", "parallelism", "completions",
    "minAvailable", "regarding", "note", "eventTime",
]
# fmt: on
PARAMETERS = [
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "timeoutSeconds",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "includeObject",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "a", "1", "100m", "1Gi", "Always", "2026-01-01T00:00:00Z", "50%", "x" * 300, "/spec/-", "é"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.fixed_dictionaries(
    {"metadata": st.one_of(st.just({"name": "x"}), VALUES)},
    optional={"spec": VALUES, "status": VALUES, "data": VALUES, "type": VALUES, "regarding": VALUES, "kind": VALUES},
)


async def ask(api: Api, method: str, path: str, body: bytes, content: str) -> None:
    answer = await api.raw(method, path, body, content=content)
    assert isinstance(answer, Response)
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        assert msgspec.json.decode(answer.body)["kind"] == "Status"


@pytest.fixture(scope="module")
def world() -> Any:
    """One server for all examples: state that earlier bodies left is part of the attack."""
    loop = asyncio.new_event_loop()
    api = loop.run_until_complete(Api().start())
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    workload = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    group = in_version(a_pod_group("victim", min_count=2), "v1alpha2")
    seeds = {
        "pods": a_pod("victim"),
        "nodes": {"metadata": {"name": "victim"}},
        "podgroups": group,
        "deployments": {"metadata": {"name": "victim"}, "spec": workload},
        "jobs": {"metadata": {"name": "victim"}, "spec": {"template": {"spec": {**template["spec"]}}}},
    }
    seeds["jobs"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    for plural, obj in seeds.items():
        made = loop.run_until_complete(api.post(COLLECTIONS[plural], obj))
        assert made.code == 201, made.text
    yield loop, api
    loop.close()


FUZZ = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FUZZ
@given(plural=st.sampled_from(sorted(COLLECTIONS)), obj=OBJECTS)
def test_creating_anything(world: Any, plural: str, obj: dict[str, Any]) -> None:
    loop, api = world
    loop.run_until_complete(ask(api, "POST", COLLECTIONS[plural], msgspec.json.encode(obj), "application/json"))


@FUZZ
@given(
    plural=st.sampled_from(["pods", "nodes", "podgroups", "deployments", "jobs"]),
    subresource=st.sampled_from(["", "/status"]),
    kind=st.sampled_from(["merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml"]),
    patch=st.one_of(OBJECTS, VALUES),
)
def test_patching_with_anything(world: Any, plural: str, subresource: str, kind: str, patch: Any) -> None:
    loop, api = world
    path = f"{COLLECTIONS[plural]}/victim{subresource}"

    async def attempt() -> None:
        answer = await api.raw(
            "PATCH", path, msgspec.json.encode(patch), content=f"application/{kind}", fieldManager="fuzz"
        )
        assert answer.status < 500, answer.body

    loop.run_until_complete(attempt())


@FUZZ
@given(
    path=st.sampled_from(["/pods/victim/binding", "/pods/victim/eviction", "/serviceaccounts/default/token"]),
    obj=OBJECTS,
)
def test_posting_anything_to_a_subresource(world: Any, path: str, obj: dict[str, Any]) -> None:
    loop, api = world
    body = msgspec.json.encode({**obj, "target": obj.get("spec"), "deleteOptions": {"dryRun": ["All"]}})
    loop.run_until_complete(ask(api, "POST", f"/api/v1/namespaces/default{path}", body, "application/json"))


@FUZZ
@given(body=st.binary(max_size=200), prefix=st.sampled_from([b"", b"k8s\x00", b"{", b"["]))
def test_raw_bytes_in_every_content_type(world: Any, body: bytes, prefix: bytes) -> None:
    loop, api = world
    for content in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
        loop.run_until_complete(ask(api, "POST", COLLECTIONS["pods"], prefix + body, content))
    loop.run_until_complete(ask(api, "DELETE", f"{COLLECTIONS['pods']}/missing", prefix + body, "application/json"))


@FUZZ
@given(
    query=st.dictionaries(
        st.sampled_from(
            [
                "limit",
                "continue",
                "resourceVersion",
                "resourceVersionMatch",
                "labelSelector",
                "fieldSelector",
                "timeoutSeconds",
                "sendInitialEvents",
                "allowWatchBookmarks",
                "includeObject",
            ]
        ),
        st.one_of(st.text(max_size=12), st.sampled_from(["1", "0", "true", "Exact", "a=b", "metadata.name=x"])),
        max_size=4,
    ),
    accept=st.one_of(st.text(max_size=20), st.sampled_from(["application/json;as=Table;v=v1;g=meta.k8s.io", "*/*"])),
)
def test_listing_with_any_query(world: Any, query: dict[str, str], accept: str) -> None:
    loop, api = world
    if query.get("resourceVersion", "").isdigit():
        query["resourceVersion"] = "1"

    async def attempt() -> None:
        answer = await api.raw("GET", COLLECTIONS["pods"], accept=accept, **query)
        assert answer.status < 500, answer.body

    loop.run_until_complete(attempt())
