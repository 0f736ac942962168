"""Definitions and objects beside a real kube-apiserver: the same are taken, and refused for the same fields."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.core.core_api import Api
from tests.server.custom_resources.cases import DEFINITIONS, OBJECTS, of_field
from tests.server.custom_resources.custom_api import DEFINITIONS as PATH
from tests.server.custom_resources.custom_api import GROUP, a_definition, a_widget

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
BINARIES = sorted((Path.home() / ".cache/muster/kube").glob("*/bin/kube-apiserver"))
# What Go prints of its own structs, or in the order of its maps.
WORDS_DIFFER = {
    "unknown list type",
    "bad pattern",
    "two storage versions",
    "no storage version",
    "the same version twice",
    "rule about nothing",
}


class Kubernetes:
    """Plain calls to the real server."""

    def __init__(self, server: str, token: str, ca: Path) -> None:
        self.server, self.token = server, token
        self.context = ssl.create_default_context(cafile=str(ca))

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode()
                return error.code, json.loads(text) if text.startswith("{") else {"message": text}


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


def causes(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    details = answer.get("details") or {}
    return sorted({(each["field"], each["reason"], each["message"]) for each in details.get("causes") or ()})


def fields(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(field, reason) for field, reason, _ in causes(answer)]


def test_definitions_are_taken_and_refused_alike(kubernetes: Kubernetes) -> None:
    differences: list[str] = []
    for index, (name, (versions, more)) in enumerate(DEFINITIONS.items()):
        plural = f"widgets{index}"
        names = {**more.get("names", {}), "plural": plural}
        names.setdefault("kind", f"Widget{index}")
        spec = {**{key: value for key, value in more.items() if key != "names"}, "names": names}
        definition = a_definition(*versions, plural=plural, kind=names["kind"], **spec)
        real_code, real = kubernetes.call("POST", PATH, definition)
        ours = asyncio.run(_posted(definition))
        same = fields(real) == fields(ours.body) if name in WORDS_DIFFER else causes(real) == causes(ours.body)
        if real_code != ours.code or not same:
            differences.append(f"{name}:\n  real {real_code} {causes(real)}\n  ours {ours.code} {causes(ours.body)}")
    assert not differences, "\n".join(differences)


async def _posted(definition: dict[str, Any]) -> Any:
    return await (await Api().start()).post(PATH, definition)


def test_objects_are_taken_and_refused_alike(kubernetes: Kubernetes) -> None:
    differences: list[str] = []
    for index, (name, (schema, values)) in enumerate(OBJECTS.items()):
        plural, kind = f"things{index}", f"Thing{index}"
        definition = a_definition(*of_field(schema), plural=plural, kind=kind)
        code, real = kubernetes.call("POST", PATH, definition)
        assert code == 201, f"{name}: {real['message']}"
        objects = [a_widget(f"o{at}", kind=kind, spec={"f": value}) for at, value in enumerate(values)]
        ours = asyncio.run(_all_posted(definition, plural, objects))
        for value, obj, mine in zip(values, objects, ours, strict=True):
            code, real = _created(kubernetes, f"/apis/{GROUP}/v1/namespaces/default/{plural}", obj)
            same = real.get("spec") == mine.body.get("spec") if code == 201 else causes(real) == causes(mine.body)
            if code != mine.code or not same:
                shown = real.get("spec") if code == 201 else causes(real) or real
                seen = mine.body.get("spec") if mine.code == 201 else causes(mine.body) or mine.body
                differences.append(f"{name} {value!r}:\n  real {code} {shown}\n  ours {mine.code} {seen}")
    assert not differences, "\n".join(differences)


async def _all_posted(definition: dict[str, Any], plural: str, objects: list[dict[str, Any]]) -> list[Any]:
    api = await Api().start()
    made = await api.post(PATH, definition)
    assert made.code == 201, made.text
    return [await api.post(f"/apis/{GROUP}/v1/namespaces/default/{plural}", each) for each in objects]


def _created(kubernetes: Kubernetes, path: str, obj: dict[str, Any]) -> tuple[int, Any]:
    """Create as soon as the real server has begun to serve the kind."""
    for _ in range(100):
        code, answer = kubernetes.call("POST", path, obj)
        if code != 404:
            return code, answer
        time.sleep(0.1)
    raise AssertionError(f"{path} is not served")
