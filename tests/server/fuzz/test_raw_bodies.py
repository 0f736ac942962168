"""Protobuf, patches and bytes without meaning, at every door that takes a body."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hostile_world import World, collection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_requests import NUMBERS, WORDS
from protobuf_messages import body as protobuf_body
from tests.build.examples import examples

from muster.server import schema
from muster.server.request import PROTOBUF
from muster.server.resources.kind import Kind
from muster.server.schema import Field, Message

FUZZ = settings(deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**48)
SCALARS = (*WORDS, *NUMBERS, None, True)
FITTING: dict[str, tuple[Any, ...]] = {
    "string": ("a", "c", "victim", "Always", "100m", "app"),
    "int32": (0, 1, 80, 300),
    "int64": (0, 1, 80, 300),
    "bool": (True, False),
    "quantity": ("1", "100m", "1Gi", 2),
    "time": ("2026-01-01T00:00:00Z", None),
    "microtime": ("2026-01-01T00:00:00.000000Z", None),
    "intorstring": (1, "50%", "http"),
    "bytes": ("dmFsdWU=",),
    "raw": ({}, {"a": 1}, None),
}
CONTENTS = ("application/json", "application/yaml", PROTOBUF, "application/json-patch+json", "text/plain", "*/*", "")
DIRECTIVES = ("replace", "merge", "delete", "junk", 1, None)


def chosen(world: World, rng: random.Random) -> tuple[Kind, str, Message]:
    kind = rng.choice(world.kinds)
    version = rng.choice(kind.versions)
    message = schema.kind(kind.group, version, kind.kind)
    assert message is not None
    return kind, version, message


def send_protobuf(world: World, seed: int) -> None:
    rng = random.Random(seed)
    kind, version, message = chosen(world, rng)
    body = protobuf_body(message, kind.api_version(version), rng)
    if rng.random() < 0.7:
        world.ask("POST", collection(kind, version), body, PROTOBUF)
    else:
        world.ask("PUT", f"{collection(kind, version)}/victim", body, PROTOBUF)


def strategic(message: Message, rng: random.Random, depth: int) -> dict[str, Any]:
    """A strategic merge patch with the directives where they belong, and where they do not."""
    fields = list(message.fields.values())
    if not fields:
        return {}
    patch = {field.name: strategic_value(field, rng, depth) for field in rng.sample(fields, min(len(fields), 3))}
    if rng.random() < 0.15:
        patch["$patch"] = rng.choice(DIRECTIVES)
    if rng.random() < 0.15:
        patch["$retainKeys"] = rng.choice([["a"], [field.name for field in fields[:2]], "a", [1], None])
    if rng.random() < 0.2:
        name = rng.choice(fields).name
        patch[f"$setElementOrder/{name}"] = rng.choice([["a"], [{"name": "a"}], [{}], [1, "a"], "a", None])
    if rng.random() < 0.2:
        patch[f"$deleteFromPrimitiveList/{rng.choice(fields).name}"] = rng.choice([["a"], [1], "a", None, [{}]])
    return patch


def strategic_value(field: Field, rng: random.Random, depth: int) -> Any:
    message = field.message
    if message is None or depth == 0 or rng.random() < 0.05:
        scalar = rng.choice(SCALARS if rng.random() < 0.1 else FITTING.get(field.type, ({}, None)))
        return [scalar] if field.shape == "list" else {"a": scalar} if field.shape == "map" else scalar
    if field.shape == "list":
        items: list[Any] = [strategic(message, rng, depth - 1) for _ in range(rng.randrange(3))]
        for item in items:
            if field.merge_key and rng.random() < 0.8:
                item[field.merge_key] = rng.choice(("a", "c", "victim", 80, None))
            if rng.random() < 0.2:
                item["$patch"] = rng.choice(DIRECTIVES)
        return items
    return strategic(message, rng, depth - 1)


def send_patch(world: World, seed: int) -> None:
    rng = random.Random(seed)
    kind, version, message = chosen(world, rng)
    if kind.answer is not None:
        return
    place = f"{collection(kind, version)}/victim"
    if rng.random() < 0.3:
        place += f"/{rng.choice(('status', 'scale', 'finalize'))}"
    media = rng.choice(
        ("strategic-merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml", "merge-patch+json")
    )
    patch = strategic(message, rng, 4)
    patch["metadata"] = {"labels": {"a": "b"}, "name": "victim"} if rng.random() < 0.8 else patch.get("metadata")
    for name in ("kind", "apiVersion"):
        patch.pop(name, None)
    if media == "apply-patch+yaml":
        patch |= {"kind": kind.kind, "apiVersion": kind.api_version(version)}
    query = {"fieldManager": rng.choice(("a", "b")), "force": rng.choice(("true", "false"))}
    world.ask("PATCH", place, msgspec.json.encode(patch), f"application/{media}", query)


@settings(FUZZ, max_examples=examples(500))
@given(seed=SEEDS)
def test_protobuf_bodies(world: World, seed: int) -> None:
    send_protobuf(world, seed)


@settings(FUZZ, max_examples=examples(500))
@given(seed=SEEDS)
def test_patches_with_directives(world: World, seed: int) -> None:
    send_patch(world, seed)


@settings(FUZZ, max_examples=examples(300))
@given(
    body=st.binary(max_size=120),
    prefix=st.sampled_from([b"", b"k8s\x00", b"{", b"[", b"- ", b"{'a':", b"%TAG", b'{"metadata":']),
    content=st.sampled_from(CONTENTS),
    seed=SEEDS,
)
def test_bytes_without_meaning(world: World, body: bytes, prefix: bytes, content: str, seed: int) -> None:
    rng = random.Random(seed)
    kind, version, _ = chosen(world, rng)
    method = rng.choice(("POST", "PUT", "PATCH", "DELETE"))
    place = collection(kind, version) if method == "POST" else f"{collection(kind, version)}/missing"
    world.ask(method, place, prefix + body, content)


@settings(FUZZ, max_examples=examples(200))
@given(
    path=st.lists(
        st.sampled_from(
            ["api", "apis", "v1", "apps", "namespaces", "default", "pods", "victim", "status", "watch", "log"]
        )
        | st.text(max_size=8),
        max_size=8,
    ),
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "é"]),
    query=st.dictionaries(st.text(max_size=8) | st.just("watch"), st.text(max_size=8) | st.just("1"), max_size=2),
    accept=st.text(max_size=30),
)
def test_paths_and_headers_of_any_form(world: World, path: list[str], method: str, query: Any, accept: str) -> None:
    if method == "DELETE":
        query = {**query, "dryRun": "All"}
    world.ask(method, "/" + "/".join(path), b"", "application/json", query, accept)


@pytest.mark.slow
@settings(FUZZ, max_examples=examples(20_000))
@given(seed=SEEDS)
def test_very_many_protobuf_bodies_and_patches(world: World, seed: int) -> None:
    send_protobuf(world, seed)
    send_patch(world, seed)
