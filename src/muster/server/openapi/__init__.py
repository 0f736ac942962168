"""OpenAPI v3: an index, and one document for each served group-version; and OpenAPI v2: one document about all.

kubectl finds out from these documents what it may send (`fieldValidation`), how lists merge, and what `explain` shows.
Older clients read v2, most of them as protobuf. Documents are made on first use and kept as bytes until the served
kinds change. The hash in a document's address is also its ETag and
covers everything it is made of, so that clients may keep it for ever.
"""

from __future__ import annotations

import asyncio
import hashlib
from importlib.resources import files

import msgspec

from muster import __version__
from muster.api import openapi as group_kinds
from muster.api.errors import not_acceptable
from muster.server import schema
from muster.server.backend import RemoteApis
from muster.server.openapi import swagger, swagger_protobuf, texts
from muster.server.openapi.paths import Paths
from muster.server.openapi.schemas import Schemas
from muster.server.registry import Registry
from muster.server.request import JSON, Request, Response
from muster.server.resources.kind import Kind

__all__ = ["OpenApi"]

ROOT = "/openapi/v3"
ROOT_V2 = "/openapi/v2"
PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_FOR_EVER = "public, max-age=31536000, immutable"
_encode = msgspec.json.Encoder(order="sorted").encode


class OpenApi:
    """The documents of one registry."""

    def __init__(self, registry: Registry, remote: RemoteApis | None = None) -> None:
        self._registry = registry
        self._remote = remote
        self._generation = 0
        self._versions: dict[str, tuple[str, str]] = {}
        self._hashes: dict[str, str] = {}
        self._documents: dict[str, tuple[str, bytes]] = {}  # with the hash they are of
        self._swagger: dict[str, tuple[str, bytes]] = {}  # OpenAPI v2 by media type, with the hash it is of
        self._follow()

    def _follow(self) -> None:
        """Look again at what is served, if that has changed. Documents whose hash is the same stay."""
        if self._generation == self._registry.generation:
            return
        self._generation = self._registry.generation
        self._versions = {
            (f"apis/{group}/{version}" if group else f"api/{version}"): (group, version)
            for group, versions in self._registry.groups().items()
            for version in versions
        }
        self._hashes.clear()

    def answer(self, request: Request) -> Response | None:
        """The index or a document; None for any other path."""
        self._follow()
        path = request.path.rstrip("/")
        if request.method not in ("GET", "HEAD") or not path.startswith(ROOT):
            return None
        name = path.removeprefix(ROOT).strip("/")
        if name and name not in self._versions:
            return None
        _check_accept(request.headers.get("accept", ""))
        return self._document(name, request) if name else Response(200, self._index())

    async def swagger(self, request: Request) -> Response | None:
        """The one document of OpenAPI v2, as JSON or protobuf; None for any other path."""
        if request.method not in ("GET", "HEAD") or request.path.rstrip("/") != ROOT_V2:
            return None
        self._follow()
        accept = request.headers.get("accept", "")
        form = PROTOBUF_V2 if "proto-openapi.spec.v2" in accept else JSON
        current = hashlib.sha256("".join(map(self._hash, sorted(self._versions))).encode()).hexdigest().upper()
        headers = {"ETag": f'"{current}"', "Vary": "Accept", "Cache-Control": "no-cache, private"}
        if current in request.headers.get("if-none-match", ""):
            return Response(304, headers=headers)
        known, body = self._swagger.get(form, ("", b""))
        if known != current:
            # Takes a second: in a thread, so that other requests are answered meanwhile.
            documents = [self.document(name) for name in sorted(self._versions)]
            body = await asyncio.to_thread(_swagger_body, documents, form)
            self._swagger[form] = (current, body)
        return Response(200, body, form, headers)

    def document(self, name: str) -> bytes:
        """One document by its place in the index, such as `apis/apps/v1`. KeyError where there is none."""
        current = self._hash(name)
        known, document = self._documents.get(name, ("", b""))
        if known != current:
            document = _encode(self._made(*self._versions[name]))
            self._documents[name] = (current, document)
        return document

    def _index(self) -> bytes:
        pages = {
            name: {"serverRelativeURL": f"{ROOT}/{name}?hash={self._hash(name)}"} for name in sorted(self._versions)
        }
        for each in self._remote.versions() if self._remote is not None else ():
            if each.fresh:  # its own server gives the document
                name = f"apis/{each.group}/{each.version}"
                pages[name] = {"serverRelativeURL": f"{ROOT}/{name}"}
        return _encode({"paths": pages})

    def _document(self, name: str, request: Request) -> Response:
        current = self._hash(name)
        asked = request.arg("hash")
        headers = {"ETag": f'"{current}"', "Vary": "Accept"}
        if asked and asked != current:
            return Response(301, headers={"Location": f"{ROOT}/{name}?hash={current}"})
        headers["Cache-Control"] = _FOR_EVER if asked else "no-cache, private"
        if current in request.headers.get("if-none-match", ""):
            return Response(304, headers=headers)
        return Response(200, self.document(name), headers=headers)

    def _made(self, group: str, version: str) -> object:
        schemas = Schemas(version)
        paths = Paths(group, version, schemas)
        for kind in self._registry.in_version(group, version):
            message = schema.kind(kind.group, version, kind.kind)
            if message is not None and kind.definition is None:
                schemas.add(message)
            paths.add(kind)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Muster", "version": __version__},
            "paths": paths.items,
            "components": {
                "schemas": schemas.found,
                "securitySchemes": {"BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"}},
            },
        }

    def _hash(self, name: str) -> str:
        """Computed from what a document is made of, so that the index can be served without making any document."""
        found = self._hashes.get(name)
        if found is None:
            group, version = self._versions[name]
            kinds = [_essence(kind) for kind in self._registry.in_version(group, version)]
            digest = hashlib.sha256(_tables_digest())
            digest.update(_encode([name, __version__, kinds, group_kinds.schemas(version)]))
            found = self._hashes[name] = digest.hexdigest().upper()
        return found


def _swagger_body(documents: list[bytes], form: str) -> bytes:
    made = swagger.swagger(map(msgspec.json.decode, documents), "Muster", __version__)
    return swagger_protobuf.encode(made) if form == PROTOBUF_V2 else _encode(made)


def _essence(kind: Kind) -> list[object]:
    serving = {name: list(verbs) for name, verbs in kind.serving.items()}
    custom = kind.definition.openapi if kind.definition is not None else None
    return [kind.kind, kind.plural, kind.namespaced, list(kind.verbs), list(kind.subresources), serving, custom]


def _tables_digest() -> bytes:
    tables = files("muster.server.schema").joinpath("tables.json").read_bytes()
    return hashlib.sha256(tables + _encode([texts.KINDS, texts.FIELDS, texts.MESSAGES])).digest()


def _check_accept(accept: str) -> None:
    wanted = [part.split(";", 1)[0].strip() for part in accept.split(",") if part.strip()]
    if wanted and not any(each in (JSON, "application/*", "*/*") for each in wanted):
        raise not_acceptable(f"only the following media types are accepted: {JSON}")
