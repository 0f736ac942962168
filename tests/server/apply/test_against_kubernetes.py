"""Patches, server-side apply, ownership and decoding errors, side by side with a real kube-apiserver.

Random Deployments are created, patched and applied to on the real server. Each step is also done here on the object
that the real server had before it, and must give the same outcome: the same values in the same order (the real server
adds defaults), the same owners of the same fields, the same conflicts in the same words.
"""

import importlib.util
import json
import random
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.server import fields, schema
from muster.server.apply import managed, merge
from muster.server.apply.object_schema import MessageSchema
from muster.server.json_bodies import decode_json
from muster.server.patch import json_patch, merge_patch, strategic

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
BINARIES = sorted((Path.home() / ".cache/muster/kube").glob("*/bin/kube-apiserver"))
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NOW = "2026-11-15T12:00:00Z"
NOT_COMPARED = frozenset({"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "status"})

DEPLOYMENT = schema.kind("apps", "v1", "Deployment")
POD = schema.kind("", "v1", "Pod")
assert DEPLOYMENT is not None
assert POD is not None


class Kubernetes:
    """Plain calls to the real server."""

    def __init__(self, server: str, token: str, ca: Path) -> None:
        self.server, self.token = server, token
        self.context = ssl.create_default_context(cafile=str(ca))

    def call(self, method: str, path: str, body: Any, content: str = "application/json") -> tuple[int, Any, list[str]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context) as answer:
                return answer.status, json.load(answer), answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error), []


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[Kubernetes]:
    if not BINARIES:
        pytest.skip("no kube-apiserver: run e2e/kube/build.sh first")
    spec = importlib.util.spec_from_file_location("real_cluster", ROOT / "e2e/kube/cluster.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    with module.RealCluster(BINARIES[-1].parent) as cluster:
        yield Kubernetes(cluster.server, cluster.token, cluster.ca_file)


# --- random configurations and patches ------------------------------------------------------------------


class Dice:
    """Random but repeatable parts of a Deployment, from few values so that they often collide."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def happens(self, chance: float) -> bool:
        return self.random.random() < chance

    def some(self, values: Any, most: int) -> list[Any]:
        return self.random.sample(list(values), self.random.randint(0, most))

    def container(self, name: str, whole: bool) -> dict[str, Any]:
        container: dict[str, Any] = {"name": name}
        if whole or self.happens(0.6):
            container["image"] = self.random.choice(["one", "two"])
        if self.happens(0.5):
            container["env"] = [{"name": key, "value": self.random.choice("12")} for key in self.some("XYZ", 3)]
        if self.happens(0.3):
            container["ports"] = [{"containerPort": port, "protocol": "TCP"} for port in self.some([80, 81, 82], 2)]
        if self.happens(0.3):
            container["command"] = self.some("pqr", 2)
        if self.happens(0.3):
            container["resources"] = {"limits": {"cpu": self.random.choice(["1", "2", "500m"])}}
        return container

    def deployment(self, name: str, whole: bool = True) -> dict[str, Any]:
        names = self.random.sample("abcd", self.random.randint(1, 3))
        pod: dict[str, Any] = {"containers": [self.container(each, whole) for each in names]}
        if self.happens(0.5):
            pod["tolerations"] = [{"key": key, "operator": "Exists"} for key in self.some("tu", 2)]
        if self.happens(0.5):
            pod["volumes"] = [{"name": volume, "emptyDir": {}} for volume in self.some("vw", 2)]
        if self.happens(0.3):
            pod["nodeSelector"] = {"zone": self.random.choice("12")}
        metadata: dict[str, Any] = {"name": name}
        if labels := self.some("lmn", 3):
            metadata["labels"] = {label: self.random.choice("12") for label in labels}
        if finalizers := self.some("fgh", 2):
            metadata["finalizers"] = [f"example.com/{finalizer}" for finalizer in finalizers]
        spec: dict[str, Any] = {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod},
        }
        if self.happens(0.7):
            spec["replicas"] = self.random.randint(0, 3)
        if self.happens(0.3):
            spec["paused"] = self.happens(0.5)
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}

    def patch(self, live: dict[str, Any]) -> dict[str, Any]:
        patch: dict[str, Any] = {"metadata": self._metadata_patch(), "spec": {}}
        pod = self._containers_patch([item["name"] for item in live["spec"]["template"]["spec"]["containers"]])
        if self.happens(0.3):
            pod["tolerations"] = [{"key": key, "operator": "Exists"} for key in self.some("tu", 2)]
        if self.happens(0.3):
            ways: list[dict[str, Any]] = [{"$patch": "delete"}, {"emptyDir": {}}]
            ways.append({"$retainKeys": ["name", "emptyDir"], "emptyDir": {}})
            pod["volumes"] = [{"name": volume, **self.random.choice(ways)} for volume in self.some("vw", 2)]
        if self.happens(0.2):
            pod["nodeSelector"] = self.random.choice([None, {"zone": "9"}, {"$patch": "replace", "rack": "1"}])
        if self.happens(0.3):
            ways = [{"$retainKeys": ["type"], "type": "Recreate"}, {"type": "RollingUpdate"}]
            ways.append({"rollingUpdate": {"maxSurge": self.random.choice([1, "50%"])}})
            patch["spec"]["strategy"] = self.random.choice([*ways, {"$patch": "replace", "type": "Recreate"}])
        if self.happens(0.2):
            patch["spec"]["replicas"] = self.random.choice([None, 0, 5])
        patch["spec"]["template"] = {"spec": pod}
        return patch

    def _metadata_patch(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        finalizers = [f"example.com/{name}" for name in self.random.sample("fgh", 3)]
        if self.happens(0.4):
            metadata["labels"] = {label: self.random.choice(["1", "2", None]) for label in self.some("lmn", 2)}
        if self.happens(0.3):
            metadata["finalizers"] = finalizers[: self.random.randint(0, 2)]
        elif self.happens(0.3):
            metadata["$setElementOrder/finalizers"] = finalizers
        elif self.happens(0.3):
            metadata["$deleteFromPrimitiveList/finalizers"] = finalizers[:1]
        return metadata

    def _containers_patch(self, names: list[str]) -> dict[str, Any]:
        items: list[dict[str, Any]] = []
        for name in self.some("abcd", 3):
            if name in names and self.happens(0.25):
                items.append({"name": name, "$patch": "delete"})
                continue
            container = self.container(name, whole=name not in names)
            if name in names and "env" in container and self.happens(0.3):
                free = [key for key in "XYZ" if key not in {each["name"] for each in container["env"]}]
                container["env"] += [{"name": key, "$patch": "delete"} for key in free[:1]]
            items.append(container)
        patch: dict[str, Any] = {"containers": items}
        if "$patch" not in json.dumps(items) and self.happens(0.5):
            order = [item["name"] for item in items]
            order += [name for name in self.some(names, len(names)) if name not in order]
            patch["$setElementOrder/containers"] = [{"name": name} for name in order]
        return patch


# --- comparing -----------------------------------------------------------------------------------------


def missing(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """What we have and the real server does not, or has otherwise. It may have more: defaults."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found: list[str] = []
        for key, value in ours.items():
            if key not in NOT_COMPARED and (key in theirs or value not in ({}, [], None, "")):
                found += missing(value, theirs.get(key), f"{path}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            each for at, pair in enumerate(zip(ours, theirs, strict=True)) for each in missing(*pair, f"{path}[{at}]")
        ]
    return [] if ours == theirs else [f"{path}: {ours!r} and not {theirs!r}"]


def undefaulted(obj: dict[str, Any]) -> list[Any]:
    """The parts that defaulting never touches: here both must be equal, not only contained."""
    pod = obj["spec"]["template"]["spec"]
    volumes = [each["name"] for each in pod.get("volumes") or []]
    containers = [
        [item["name"], *(item.get(key) or [] for key in ("env", "command", "ports"))] for item in pod["containers"]
    ]
    metadata = obj["metadata"]
    return [
        metadata.get("labels") or {},
        metadata.get("finalizers") or [],
        pod.get("tolerations") or [],
        pod.get("nodeSelector") or {},
        volumes,
        containers,
    ]


def owners(obj: dict[str, Any]) -> dict[Any, Any]:
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])
    }


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return fields.canonicalise(obj | {"metadata": metadata}, DEPLOYMENT)


def owned_after(old: Any, new: dict[str, Any], manager: str) -> dict[Any, Any]:
    entries = managed.update(old, bare(new), MessageSchema(DEPLOYMENT), manager=manager, api_version="apps/v1", now=NOW)
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def created(kubernetes: Kubernetes, config: dict[str, Any]) -> dict[str, Any]:
    code, live, _ = kubernetes.call("POST", f"{DEPLOYMENTS}?fieldManager=creator", config)
    assert code == 201, live
    return live


@pytest.mark.parametrize("seed", range(40))
def test_strategic_patches_and_their_owners_are_the_same(kubernetes: Kubernetes, seed: int):
    dice = Dice(seed)
    live = created(kubernetes, dice.deployment(f"patched-{seed}"))
    assert owned_after(None, live, "creator") == owners(live)
    for _ in range(5):
        patch = dice.patch(live)
        query = "?fieldManager=patcher&fieldValidation=Ignore"
        content = "application/strategic-merge-patch+json"
        code, real, _ = kubernetes.call("PATCH", f"{DEPLOYMENTS}/patched-{seed}{query}", patch, content)
        if code == 422:  # valid as a patch, but the Deployment it gives is not
            continue
        assert code == 200, real
        ours = fields.canonicalise(strategic.apply(live, patch, DEPLOYMENT), DEPLOYMENT)
        assert missing(ours, real) == []
        assert undefaulted(ours) == undefaulted(real)
        assert owned_after(fields.canonicalise(live, DEPLOYMENT), real, "patcher") == owners(real)
        live = real


@pytest.mark.parametrize("seed", range(40))
def test_applies_their_owners_and_their_conflicts_are_the_same(kubernetes: Kubernetes, seed: int):
    dice = Dice(1000 + seed)
    live = created(kubernetes, dice.deployment(f"applied-{seed}"))
    for _ in range(8):
        manager, force = dice.random.choice(["alice", "bob", "kubectl"]), dice.happens(0.6)
        config = dice.deployment(f"applied-{seed}", whole=dice.happens(0.8))
        if dice.happens(0.2):
            del config["spec"]
        query = f"?fieldManager={manager}&force={str(force).lower()}"
        content = "application/apply-patch+yaml"
        code, real, _ = kubernetes.call("PATCH", f"{DEPLOYMENTS}/applied-{seed}{query}", config, content)
        try:
            ours: Any = merge(
                fields.canonicalise(live, DEPLOYMENT),
                config,
                MessageSchema(DEPLOYMENT),
                manager=manager,
                api_version="apps/v1",
                now=NOW,
                force=force,
            )
        except ApiError as error:
            ours = error
        if code == 409:
            assert isinstance(ours, ApiError), real["message"]
            assert sorted(map(str, ours.details["causes"])) == sorted(map(str, real["details"]["causes"]))
            assert len(real["details"]["causes"]) > 1 or ours.message == real["message"]
        elif code == 200:
            assert isinstance(ours, dict), ours
            result = fields.canonicalise(ours, DEPLOYMENT)
            assert missing(result, real) == []
            assert undefaulted(result) == undefaulted(real)
            assert owners(ours) == owners(real)
            live = real


def json_operations(dice: Dice) -> list[dict[str, Any]]:
    lists = ["/spec/template/spec/containers/0/args", "/metadata/finalizers"]
    maps = ["/metadata/annotations", "/spec/template/metadata/labels", "/metadata/labels"]

    def path() -> str:
        if dice.happens(0.5):
            return f"{dice.random.choice(lists)}/{dice.random.choice(['0', '1', '2', '-', '-1', '9', 'x', '01'])}"
        return f"{dice.random.choice(maps)}/{dice.random.choice(['a', 'b', 'example.com~1c'])}"

    operations: list[dict[str, Any]] = []
    for _ in range(dice.random.randint(1, 4)):
        name = dice.random.choice(["add", "add", "replace", "remove", "test", "move", "copy"])
        operation: dict[str, Any] = {"op": name, "path": path()}
        if name in ("move", "copy"):
            operation["from"] = path()
        elif name != "remove":
            operation["value"] = f"example.com/{dice.random.choice('123')}"
        operations.append(operation)
    return operations


@pytest.mark.parametrize("seed", range(10))
def test_json_and_merge_patches_are_the_same(kubernetes: Kubernetes, seed: int):
    dice = Dice(2000 + seed)
    config = dice.deployment(f"edited-{seed}")
    config["metadata"] |= {"annotations": {"a": "1"}, "labels": {"b": "1"}, "finalizers": ["example.com/1"]}
    config["spec"]["template"]["spec"]["containers"][0]["args"] = ["example.com/1", "example.com/2"]
    live = created(kubernetes, config)
    where = f"{DEPLOYMENTS}/edited-{seed}?dryRun=All"
    for _ in range(30):
        operations = json_operations(dice)
        code, real, _ = kubernetes.call("PATCH", where, operations, "application/json-patch+json")
        if code in (400, 422) and not real["message"].startswith("Deployment.apps"):
            with pytest.raises(ApiError) as caught:
                fields.decode(json_patch.apply(live, operations), DEPLOYMENT, patched=True)
            assert caught.value.code == code, operations
        elif code == 200:
            ours = fields.canonicalise(json_patch.apply(live, operations), DEPLOYMENT)
            assert missing(ours, real) == [], operations
    for _ in range(10):
        merging = {
            "metadata": {"labels": {"b": dice.random.choice([None, "2"])}},
            "spec": {"replicas": dice.random.choice([None, 4])},
        }
        code, real, _ = kubernetes.call("PATCH", where, merging, "application/merge-patch+json")
        assert code == 200
        assert missing(fields.canonicalise(merge_patch.apply(live, merging), DEPLOYMENT), real) == []


def pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}


def container(**more: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "x", **more}])


BODIES: list[Any] = [
    pod(x=1),
    pod(containers=[{"name": "c", "image": "x", "y": {}}], z=2),
    pod(priority="a"),
    pod(priority=1.5),
    pod(priority=2**40),
    pod(containers={}),
    pod(containers="x"),
    pod(containers=[1]),
    pod(nodeSelector={"a": 1}),
    pod(nodeSelector=[]),
    pod(hostNetwork="yes"),
    pod(overhead={"cpu": "x"}),
    pod(overhead={"cpu": True}),
    pod(overhead="a"),
    pod(restartPolicy=5),
    pod(restartPolicy=None),
    pod(terminationGracePeriodSeconds=3.0),
    pod() | {"metadata": {"name": 1}},
    pod() | {"metadata": []},
    pod() | {"metadata": {"name": "p", "labels": {"a": {}}}},
    pod() | {"metadata": {"name": "p", "creationTimestamp": "x"}},
    pod() | {"metadata": {"name": "p", "creationTimestamp": 5}},
    pod() | {"spec": "x"},
    container(ports=[{"containerPort": "80"}]),
    container(livenessProbe={"httpGet": {"port": 1.5}}),
    container(livenessProbe={"httpGet": {"port": {}}}),
    container(command="ls"),
    container(command=[1]),
    container(args=[None]),
    container(resources={"limits": {"cpu": 1.5, "memory": 1e3}}),
    container(resources={"limits": {"cpu": "0.5", "memory": "1024Ki"}}),
    b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","name":"q"},"spec":{"containers":[{"name":"c","image":"x"}]}}',
    b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},'
    b'"spec":{"foo":1,"containers":[{"name":"c","image":"x"}],"foo":2}}',
]


@pytest.mark.parametrize("mode", ["Strict", "Warn"])
def test_bodies_are_decoded_or_refused_in_the_same_words(kubernetes: Kubernetes, mode: str):
    for body in BODIES:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        path = f"/api/v1/namespaces/default/pods?dryRun=All&fieldValidation={mode}"
        code, real, warned = kubernetes.call("POST", path, raw)
        obj, repeated = decode_json(raw)
        if code == 400:
            with pytest.raises(ApiError) as caught:
                fields.decode(obj, POD, mode, repeated)
            assert caught.value.message == real["message"], raw
        else:
            assert code == 201, (raw, real)
            ours, warnings = fields.decode(obj, POD, mode, repeated)
            assert missing(ours, real) == []
            assert [text.split(" ", 2)[2] for text in warned] == [json.dumps(text) for text in warnings]
