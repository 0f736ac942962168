"""Content negotiation: which form of answer a client asked for, and how its body becomes an object.

Answers are JSON (or YAML when only that is asked), as the object itself, as a Table, or as its metadata alone. A client
that prefers protobuf but takes JSON gets JSON; one that takes nothing we have gets 406.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import yaml

from muster.api.errors import not_acceptable
from muster.server.request import JSON, YAML, Response

_PRODUCED = (
    "only the following media types are accepted: application/json, application/yaml, "
    "application/json;as=Table;v=v1;g=meta.k8s.io, application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
)
_META_FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_META_VERSIONS = ("v1", "v1beta1")


class Form(NamedTuple):
    """The form of an answer: `shape` is empty for the object itself."""

    shape: str = ""
    version: str = "v1"
    yaml: bool = False

    @property
    def content_type(self) -> str:
        if self.shape:
            return f"{JSON};as={self.shape};v={self.version};g=meta.k8s.io"
        return YAML if self.yaml else JSON


PLAIN = Form()


class Wanted(NamedTuple):
    """One entry of an Accept header."""

    media: str
    params: dict[str, str]
    quality: float


@lru_cache(maxsize=256)
def accepted(header: str) -> tuple[Wanted, ...]:
    """The entries of an Accept header, the most wanted first."""
    found: list[Wanted] = []
    for clause in header.split(","):
        media, *rest = [part.strip() for part in clause.split(";")]
        if not media:
            continue
        params = dict(part.split("=", 1) for part in rest if "=" in part)
        quality = params.pop("q", "1")
        try:
            weight = float(quality)
        except ValueError:
            weight = 1.0
        found.append(Wanted(media.lower(), params, weight))
    return tuple(sorted(found, key=lambda wanted: -wanted.quality))


@lru_cache(maxsize=256)
def negotiate(header: str, transforms: bool = True) -> Form:
    """The form to answer in; 406 when there is none."""
    if not header or header == "application/json" or header == "*/*":
        return PLAIN
    for wanted in accepted(header):
        shape = wanted.params.get("as", "")
        if shape:
            fits = shape in _META_FORMS and wanted.params.get("g") == "meta.k8s.io"
            if transforms and fits and wanted.params.get("v") in _META_VERSIONS and wanted.media == JSON:
                return Form(shape, wanted.params["v"])
            continue
        if wanted.media in (JSON, "*/*", "application/*"):
            return PLAIN
        if wanted.media in (YAML, "application/x-yaml", "text/yaml"):
            return Form(yaml=True)
    raise not_acceptable(_PRODUCED)


def answer(status: int, body: bytes, form: Form = PLAIN) -> Response:
    """A finished answer in the negotiated form; `body` is JSON."""
    if form.yaml:
        text: str = yaml.dump(msgspec.json.decode(body), Dumper=yaml.CSafeDumper, sort_keys=False)
        return Response(status, text.encode(), YAML)
    return Response(status, body, form.content_type if form.shape else JSON)


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)
