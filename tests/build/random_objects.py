"""Random nodes, pods, namespaces and services, drawn from a seeded generator."""

from __future__ import annotations

from random import Random
from typing import Any

from muster.api.types import Namespace, Node, Pod, Service
from tests.build.objects import HOSTNAME, TOPOLOGY_ZONE, of

RACK = "rack"
NAMESPACES = ("red", "blue")
APPS = ("web", "db")


def random_node(draw: Random, number: int) -> Node:
    name = f"n{number}"
    labels = {HOSTNAME: name}
    if draw.random() < 0.8:
        labels[TOPOLOGY_ZONE] = draw.choice(("z1", "z2", "z3"))
    if draw.random() < 0.6:
        labels[RACK] = draw.choice(("1", "2", "30"))
    room: dict[str, Any] = {
        "cpu": draw.choice(("0", "2", "4", "4500m")),
        "memory": draw.choice(("4Gi", "8Gi", "7777M")),
    }
    room["pods"] = draw.choice(("1", "3", "10", "110"))
    if draw.random() < 0.3:
        room["example.com/gpu"] = draw.choice(("1", "4"))
    images = [{"names": [image], "sizeBytes": size} for image, size in _IMAGES.items() if draw.random() < 0.4]
    return of(
        Node,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "unschedulable": draw.random() < 0.1,
                "taints": [t for t in _TAINTS if draw.random() < 0.15],
            },
            "status": {"allocatable": room, "images": images},
        },
    )


_IMAGES = {"app": 300_000_000, "registry:5000/tool": 900_000_000, "base:v1": 50_000_000}
_TAINTS = (
    {"key": "dedicated", "value": "ml", "effect": "NoSchedule"},
    {"key": "slow", "value": "", "effect": "PreferNoSchedule"},
    {"key": "old", "value": "yes", "effect": "PreferNoSchedule"},
    {"key": "gone", "value": "", "effect": "NoExecute"},
)
_TOLERATIONS = (
    {"key": "dedicated", "operator": "Exists"},
    {"key": "slow", "operator": "Exists", "effect": "PreferNoSchedule"},
    {"operator": "Exists"},
    {"key": "old", "value": "no"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
)


def random_pod(draw: Random, name: str, node: str = "", *, rules: float = 0.3) -> Pod:
    """A pod with some requests and, each with the given chance, rules about nodes and other pods."""
    labels = {"app": draw.choice(APPS)} if draw.random() < 0.9 else {}
    if draw.random() < 0.5:
        labels["version"] = draw.choice(("1", "2"))
    labels["unique"] = name
    spec: dict[str, Any] = {"nodeName": node, "containers": [_container(draw) for _ in range(draw.choice((1, 1, 2)))]}
    if draw.random() < 0.2:
        spec["initContainers"] = [_container(draw), _container(draw) | {"restartPolicy": "Always"}, _container(draw)]
    if draw.random() < 0.1:
        spec["overhead"] = {"cpu": "50m", "memory": "10Mi"}
    if draw.random() < rules:
        spec["tolerations"] = [t for t in _TOLERATIONS if draw.random() < 0.3]
    if draw.random() < rules * 0.5:
        spec["nodeSelector"] = {TOPOLOGY_ZONE: draw.choice(("z1", "z2"))}
    affinity: dict[str, Any] = {}
    if draw.random() < rules:
        affinity["nodeAffinity"] = _node_affinity(draw)
    if draw.random() < rules:
        affinity["podAffinity"] = _pod_terms(draw)
    if draw.random() < rules:
        affinity["podAntiAffinity"] = _pod_terms(draw)
    if affinity:
        spec["affinity"] = affinity
    if draw.random() < rules:
        spec["topologySpreadConstraints"] = [_spread(draw) for _ in range(draw.choice((1, 2)))]
    meta: dict[str, Any] = {"name": name, "namespace": draw.choice(NAMESPACES), "uid": name, "labels": labels}
    if node and draw.random() < 0.15:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    phase = draw.choice(("Running", "Running", "Running", "Succeeded")) if node else "Pending"
    return of(Pod, {"metadata": meta, "spec": spec, "status": {"phase": phase}})


def _container(draw: Random) -> dict[str, Any]:
    requests: dict[str, Any] = {}
    if draw.random() < 0.8:
        requests["cpu"] = draw.choice(("100m", "250m", "1", "0"))
    if draw.random() < 0.7:
        requests["memory"] = draw.choice(("64Mi", "1Gi", "300M"))
    if draw.random() < 0.1:
        requests["example.com/gpu"] = "1"
    found: dict[str, Any] = {"name": "c", "image": draw.choice((*_IMAGES, "registry:5000/tool:latest"))}
    found["resources"] = {"requests": requests}
    if draw.random() < 0.1:
        port: dict[str, Any] = {"containerPort": 80, "hostPort": draw.choice((80, 81))}
        port["hostIP"] = draw.choice(("", "10.0.0.1", "10.0.0.2"))
        found["ports"] = [port]
    return found


def _selector(draw: Random) -> dict[str, Any]:
    kind = draw.random()
    if kind < 0.7:
        return {"matchLabels": {"app": draw.choice(APPS)}}
    if kind < 0.85:
        return {"matchExpressions": [{"key": "version", "operator": draw.choice(("Exists", "DoesNotExist"))}]}
    return {} if kind < 0.9 else {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}


def _term(draw: Random) -> dict[str, Any]:
    term: dict[str, Any] = {
        "topologyKey": draw.choice((HOSTNAME, TOPOLOGY_ZONE, RACK)),
        "labelSelector": _selector(draw),
    }
    if draw.random() < 0.2:
        term["namespaces"] = [draw.choice(NAMESPACES)]
    if draw.random() < 0.2:
        term["namespaceSelector"] = draw.choice(({}, {"matchLabels": {"team": "a"}}))
    if draw.random() < 0.2:
        term["matchLabelKeys"] = ["version"]
    if draw.random() < 0.1:
        term["mismatchLabelKeys"] = ["app"]
    return term


def _pod_terms(draw: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if draw.random() < 0.5:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = [_term(draw) for _ in range(draw.choice((1, 1, 2)))]
    if draw.random() < 0.7:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw.choice((1, 10, 100)), "podAffinityTerm": _term(draw)} for _ in range(draw.choice((1, 2)))
        ]
    return found


def _node_term(draw: Random) -> dict[str, Any]:
    expressions = [
        {"key": TOPOLOGY_ZONE, "operator": "In", "values": ["z1", "z3"]},
        {"key": RACK, "operator": "Gt", "values": ["1"]},
        {"key": RACK, "operator": "DoesNotExist"},
        {"key": TOPOLOGY_ZONE, "operator": "NotIn", "values": ["z2"]},
        {"key": HOSTNAME, "operator": "Exists"},
    ]
    return {"matchExpressions": draw.sample(expressions, draw.choice((0, 1, 1, 2)))}


def _node_affinity(draw: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if draw.random() < 0.4:
        terms = [_node_term(draw) for _ in range(draw.choice((1, 2)))]
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if draw.random() < 0.7:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw.choice((1, 7, 50)), "preference": _node_term(draw)} for _ in range(2)
        ]
    return found


def _spread(draw: Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "maxSkew": draw.choice((1, 2)),
        "topologyKey": draw.choice((HOSTNAME, TOPOLOGY_ZONE, RACK)),
        "whenUnsatisfiable": draw.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _selector(draw),
    }
    if found["whenUnsatisfiable"] == "DoNotSchedule" and draw.random() < 0.3:
        found["minDomains"] = draw.choice((2, 4))
    if draw.random() < 0.3:
        found["nodeAffinityPolicy"] = draw.choice(("Honor", "Ignore"))
    if draw.random() < 0.3:
        found["nodeTaintsPolicy"] = draw.choice(("Honor", "Ignore"))
    if draw.random() < 0.2:
        found["matchLabelKeys"] = ["version"]
    return found


def random_namespaces(draw: Random) -> list[Namespace]:
    return [of(Namespace, {"metadata": {"name": n, "labels": {"team": draw.choice("ab")}}}) for n in NAMESPACES]


def random_services(draw: Random) -> list[Service]:
    found = []
    for i in range(draw.choice((0, 1, 2))):
        wanted = draw.choice(({"app": "web"}, {"app": "db", "version": "1"}))
        body = {"metadata": {"name": f"s{i}", "namespace": draw.choice(NAMESPACES)}, "spec": {"selector": wanted}}
        found.append(of(Service, body))
    return found
