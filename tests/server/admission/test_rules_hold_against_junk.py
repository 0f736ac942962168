"""Whatever somebody puts into whatever field, the server answers with the client's error, never with its own."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.build.examples import examples

from muster.api.errors import ApiError
from muster.api.resources import (
    DEPLOYMENTS,
    JOBS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    STORAGE_CLASSES,
    Resource,
)
from muster.client.local import LocalClient
from muster.server.admission.bootstrap import bootstrap_objects
from muster.server.core import ApiServer
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore

Path = tuple[str | int, ...]

CONTAINER = {
    "name": "c",
    "image": "i",
    "ports": [{"containerPort": 80, "name": "http", "hostPort": 80}],
    "env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
    "volumeMounts": [{"name": "v", "mountPath": "/x"}],
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    "livenessProbe": {"httpGet": {"port": 80}},
}
NODE_TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}
POD_SPEC = {
    "containers": [CONTAINER],
    "volumes": [{"name": "v", "configMap": {"name": "x"}}, {"name": "w", "hostPath": {"path": "/x"}}],
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NODE_TERMS},
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "x", "labelSelector": {"matchLabels": {"a": "b"}}}
            ]
        },
    },
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}],
    "schedulingGates": [{"name": "g"}],
    "schedulingGroup": {"podGroupName": "g"},
    "nodeSelector": {"a": "b"},
}
SELECTOR = {"matchLabels": {"app": "a"}}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
JOB_TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}

SEEDS: list[tuple[Resource, dict[str, Any]]] = [
    (PODS, {"spec": POD_SPEC}),
    (
        JOBS,
        {
            "spec": {
                "template": JOB_TEMPLATE,
                "parallelism": 2,
                "scheduling": {"schedulingPolicy": {"gang": {"minCount": 1}}},
            }
        },
    ),
    (DEPLOYMENTS, {"spec": {"template": TEMPLATE, "selector": SELECTOR, "strategy": {"type": "RollingUpdate"}}}),
    (SERVICES, {"spec": {"ports": [{"port": 80, "name": "a"}], "clusterIP": "10.96.3.4"}}),
    (NODES, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "status": {"capacity": {"cpu": "1"}}}),
    (PRIORITY_CLASSES, {"value": 5, "globalDefault": True, "preemptionPolicy": "Never"}),
    (POD_DISRUPTION_BUDGETS, {"spec": {"minAvailable": "50%", "selector": SELECTOR}}),
    (PERSISTENT_VOLUMES, {"spec": {"capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": NODE_TERMS}}}),
    (PERSISTENT_VOLUME_CLAIMS, {"spec": {"accessModes": ["ReadWriteOnce"]}}),
    (STORAGE_CLASSES, {"provisioner": "x", "parameters": {"a": "b"}}),
    (LEASES, {"spec": {"leaseDurationSeconds": 5}}),
]

junk = st.sampled_from(
    [None, "", 0, -1, 1.5, True, "x", [], {}, [None], [{}], {"a": None}, {"a": {"b": 1}}, [[]], "9" * 25, 2**63, "∞"]
)


def paths(value: Any, here: Path = ()) -> Iterator[Path]:
    yield here
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*here, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*here, index))


def replaced(value: Any, path: Path, by: Any) -> Any:
    if not path:
        return by
    changed = copy.copy(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], by)
    return changed


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[Resource, dict[str, Any]]:
    resource, seed = draw(st.sampled_from(SEEDS))
    whole = {"metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["a/b"]}, **seed}
    path = draw(st.sampled_from([each for each in paths(whole) if each]))
    return resource, replaced(whole, path, draw(junk))


@given(spoilt())
@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_field_can_crash_the_server(case: tuple[Resource, dict[str, Any]]):
    resource, obj = case

    assert asyncio.run(worst_answer(resource, obj)) < 500


async def worst_answer(resource: Resource, obj: dict[str, Any]) -> int:
    """The status of creating the object and of writing it again as it was stored."""
    client = LocalClient(ApiServer(MemoryStore(), build_registry()))
    for kind, standing in bootstrap_objects():
        await client.create(kind, standing)
    namespace = "default" if resource.namespaced else None
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    try:
        created = await client.request("POST", resource.path(namespace), whole)
        await client.update(resource, created)
    except ApiError as error:
        return error.code
    return 200
