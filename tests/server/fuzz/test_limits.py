"""Bodies that ask for too much are refused, quickly."""

from __future__ import annotations

import base64
import time
from typing import Any

import msgspec
import pytest
from hostile_world import World

from muster.server.request import Response

MAPS = "/api/v1/namespaces/default/configmaps"
VICTIM = f"{MAPS}/victim"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"

YAML_BOMBS = {
    "aliases": b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
    "deep in blocks": b"- " * 100_000,
    "deep in brackets": b"[" * 100_000,
    "deep in questions": b"? " * 100_000,
    "very many items": b"a: [" + b"1," * 1_000_000 + b"1]",
    "very many keys": b"\n".join(b"a%d: 1" % index for index in range(250_000)),
    "a tag that makes objects": b"!!python/object:os.system {}",
    "a number of a million digits": b"a: " + b"1" * 1_000_000,
    "a number out of range": b"a: !!float 1:1:1e999",
}


def asked(world: World, method: str, path: str, body: Any, content: str = "application/json") -> Response:
    began = time.perf_counter()
    answer = world.ask(method, path, body, content, {"fieldManager": "f"} if method == "PATCH" else None)
    assert time.perf_counter() - began < 30  # a bomb would take minutes; a busy machine takes seconds
    assert answer is not None
    return answer


@pytest.mark.parametrize("name", YAML_BOMBS)
@pytest.mark.parametrize("apply", [False, True], ids=["posted", "applied"])
def test_yaml_that_would_explode(world: World, name: str, apply: bool) -> None:
    method, path = ("PATCH", VICTIM) if apply else ("POST", MAPS)
    content = "application/apply-patch+yaml" if apply else "application/yaml"

    assert asked(world, method, path, YAML_BOMBS[name], content).status == 400


def test_a_number_to_the_base_sixty_is_a_string(world: World) -> None:
    body = b"metadata: {name: sixty}\ndata: {time: 12" + b":30" * 100_000 + b"}"

    assert asked(world, "POST", MAPS, body, "application/yaml").status == 201


@pytest.mark.parametrize(
    "content", ["application/json", "application/yaml", MERGE_PATCH, "application/apply-patch+yaml"]
)
def test_json_nested_two_hundred_deep(world: World, content: str) -> None:
    patch = "patch" in content
    body = b'{"data":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001

    assert asked(world, "PATCH" if patch else "POST", VICTIM if patch else MAPS, body, content).status == 400


def test_a_patch_of_more_than_ten_thousand_operations(world: World) -> None:
    operations = [{"op": "test", "path": "/metadata/name", "value": "victim"}] * 10_000

    assert asked(world, "PATCH", VICTIM, operations, JSON_PATCH).status == 200
    assert asked(world, "PATCH", VICTIM, operations + operations[:1], JSON_PATCH).status == 413


def test_a_patch_that_copies_itself_over_and_over(world: World) -> None:
    operations: list[Any] = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
    operations += [{"op": "copy", "from": "/data", "path": f"/data/c{index}"} for index in range(60)]

    assert asked(world, "PATCH", VICTIM, operations, JSON_PATCH).status == 422


def test_annotations_of_more_than_256_kib(world: World) -> None:
    body = {"metadata": {"annotations": {"a": "x" * 300_000}}}

    assert asked(world, "PATCH", VICTIM, msgspec.json.encode(body), MERGE_PATCH).status == 422


@pytest.mark.parametrize("limit", ["9223372036854775808", "-9999999999999999999", "1" * 40, "١"])
def test_a_limit_that_is_no_number_of_64_bits(world: World, limit: str) -> None:
    answer = world.ask("GET", MAPS, query={"limit": limit})

    assert answer is not None
    assert answer.status in (200, 400)


def test_a_continue_token_from_the_future(world: World) -> None:
    token = base64.urlsafe_b64encode(b'{"rv":999999999999,"start":["default","a"]}').decode()
    answer = world.ask("GET", MAPS, query={"continue": token, "limit": "1"})

    assert answer is not None
    assert answer.status == 400


@pytest.mark.parametrize(
    "selector", ["a in (" + "b," * 100_000 + "b)", "a=b," * 50_000 + "a=b", "(" * 100_000, "!" * 9999]
)
def test_selectors_of_any_size(world: World, selector: str) -> None:
    began = time.perf_counter()
    world.ask("GET", MAPS, query={"labelSelector": selector})
    world.ask("GET", MAPS, query={"fieldSelector": selector})

    assert time.perf_counter() - began < 30  # a bomb would take minutes; a busy machine takes seconds
