"""Protobuf bodies decode to the JSON that the same client would have sent."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import ApiError
from muster.server import protobuf

GOLDENS = Path(__file__).parents[4] / "shared/testdata/api"
FILES = sorted([*GOLDENS.glob("*.pb"), *GOLDENS.glob("v1.36/*.pb")])


def attempt(body: bytes) -> Any:
    """What the body decodes to, or the ApiError it raises."""
    try:
        return protobuf.decode(body)
    except ApiError as error:
        return error


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def chunk(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value % 2**64)


def envelope(api_version: str, kind: str, raw: bytes, *more: bytes) -> bytes:
    types = chunk(1, api_version.encode()) + chunk(2, kind.encode())
    return protobuf.MAGIC + chunk(1, types) + chunk(2, raw) + b"".join(more)


META = chunk(1, chunk(1, b"p"))


@pytest.mark.skipif(not FILES, reason="the golden files of the shared test data are not here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_golden_body_decodes_to_its_json(path: Path):
    assert protobuf.decode(path.read_bytes()) == json.loads(path.with_suffix(".json").read_text())


def test_the_envelope_names_the_kind():
    assert protobuf.decode(envelope("v1", "Namespace", META)) == {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": "p"},
        "spec": {},
        "status": {},
    }


def test_a_body_without_a_kind_is_read_as_the_kind_the_endpoint_expects():
    body = protobuf.MAGIC + chunk(2, number(1, 5))

    decoded = protobuf.decode(body, default=("", "v1", "DeleteOptions"))

    assert decoded == {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5}


def test_negative_numbers_keep_their_sign():
    spec = chunk(2, number(25, -5))

    assert protobuf.decode(envelope("v1", "Pod", META + spec))["spec"]["priority"] == -5


def test_json_inside_the_envelope_is_taken_as_it_is():
    body = envelope("v1", "Pod", b'{"kind":"Pod"}', chunk(4, b"application/json"))

    assert protobuf.decode(body) == {"kind": "Pod"}


def test_schemas_of_definitions_hold_one_of_several_things():
    """`items` is a schema or a list of them, `additionalProperties` a schema or a flag."""
    text, number_ = chunk(5, b"string"), chunk(5, b"number")

    def definition(*fields: bytes) -> bytes:
        validation = chunk(1, b"".join(fields))
        return chunk(2, chunk(7, chunk(4, validation)))

    def shown(*fields: bytes) -> Any:
        body = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition(*fields))
        return protobuf.decode(body)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    assert shown(chunk(24, chunk(1, text))) == {"items": {"type": "string"}}
    listed = chunk(2, text) + chunk(2, number_)
    assert shown(chunk(24, listed)) == {"items": [{"type": "string"}, {"type": "number"}]}
    assert shown(chunk(30, number(1, 1) + chunk(2, text))) == {"additionalProperties": {"type": "string"}}
    assert shown(chunk(30, number(1, 1))) == {"additionalProperties": True}
    assert shown(chunk(30, b"")) == {"additionalProperties": False}
    dependency = chunk(1, b"a") + chunk(2, chunk(2, b"b") + chunk(2, b"c"))
    assert shown(chunk(32, dependency)) == {"dependencies": {"a": ["b", "c"]}}
    assert shown(chunk(8, chunk(1, b'"x"')), chunk(20, chunk(1, b"1"))) == {"default": "x", "enum": [1]}
    with pytest.raises(ApiError):
        shown(chunk(30, chunk(1, b"x")))


def test_fields_the_tables_do_not_know_are_skipped():
    assert protobuf.decode(envelope("v1", "Namespace", META + chunk(900, b"x") + number(901, 1)))["metadata"] == {
        "name": "p"
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{}", "expected prefix [107 56 115 0]"),
        (envelope("v9", "Pod", b""), 'no kind "Pod" is registered for version "v9"'),
        (envelope("v1", "Pod", b"\x0a\xff"), "a varint is cut short"),
        (envelope("v1", "Pod", b"\x0a\x7f"), "longer than the message"),
        (envelope("v1", "Pod", b"\x00"), "field number 0"),
        (envelope("v1", "Pod", b"\x0b"), "wire type 3"),
        (envelope("v1", "Pod", b"\xff" * 12), "a varint is cut short"),
        (envelope("v1", "Pod", META, chunk(3, b"gzip")), "content encoding"),
    ],
)
def test_a_malformed_body_is_a_bad_request(body: bytes, words: str):
    with pytest.raises(ApiError) as caught:
        protobuf.decode(body)
    assert caught.value.code == 400
    assert words in caught.value.message


def test_a_bomb_of_tiny_messages_is_refused():
    spec = chunk(2, chunk(2, b"") * (protobuf.MAX_MESSAGES + 1))

    with pytest.raises(ApiError, match="too many parts"):
        protobuf.decode(envelope("v1", "Pod", spec))


def test_nesting_is_limited():
    template = b""
    for _ in range(200):
        template = chunk(9, template)

    with pytest.raises(ApiError, match=r"too deeply|cut short"):
        protobuf.decode(envelope("scheduling.k8s.io/v1alpha3", "Workload", chunk(2, chunk(3, template))))


@given(st.binary(max_size=200), st.sampled_from(["Pod", "Event", "Job", "PodGroup", "DeleteOptions"]))
def test_noise_is_decoded_or_refused_but_never_breaks_the_decoder(noise: bytes, kind: str):
    group = {"Job": "batch/v1", "PodGroup": "scheduling.k8s.io/v1beta1"}.get(kind, "v1")
    for body in (noise, protobuf.MAGIC + noise, envelope(group, kind, noise)):
        result = attempt(body)
        assert not isinstance(result, ApiError) or result.code == 400


@given(st.data())
def test_a_damaged_golden_is_decoded_or_refused_but_never_breaks_the_decoder(data: st.DataObject):
    whole = FILES[data.draw(st.integers(0, len(FILES) - 1))].read_bytes() if FILES else envelope("v1", "Pod", META)
    body = bytearray(whole[: data.draw(st.integers(5, len(whole)))])
    for _ in range(data.draw(st.integers(0, 4))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    result = attempt(bytes(body))

    assert not isinstance(result, ApiError) or result.code == 400
