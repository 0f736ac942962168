"""PATCH: applies a patch to the stored object in the requested version, and writes the result like any other update."""

from __future__ import annotations

from typing import Any

from muster.api.errors import ApiError, bad_request, conflict, unsupported_media_type
from muster.server import apply, bodies, codec, fields, json_bodies, metadata, schema, yaml_bodies
from muster.server.backend import Backend
from muster.server.call import Call
from muster.server.object_writer import MODIFIED, Make, ObjectWriter, Outcome
from muster.server.patch import json_patch, merge_patch, strategic
from muster.server.request import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from muster.server.resources.kind import Obj

_RACES = 4

_APPLY_TYPES = {JSON_PATCH: json_patch.apply, MERGE_PATCH: merge_patch.apply, STRATEGIC_PATCH: strategic.apply}
_ACCEPTED = (
    "the body of the request was in an unknown format - accepted media types include: "
    f"{JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}, {APPLY_PATCH}"
)


class ObjectPatcher:
    """Carries out PATCH of one object."""

    def __init__(self, backend: Backend, writer: ObjectWriter) -> None:
        self._backend = backend
        self._writer = writer

    async def patch(self, call: Call) -> Outcome:
        """Patch the main resource or its status."""
        is_apply = bodies.media_type(call.request) == APPLY_PATCH
        apply.check_options(call.request.arg("fieldManager"), call.request.flag("force"), is_apply=is_apply)
        if is_apply:
            return await self._apply(call)
        return await self._writer.change(call, self._make(call), subresource=call.path.subresource)

    # Server-side apply

    async def _apply(self, call: Call) -> Outcome:
        call.applied = True
        config, repeated = _configuration(call)

        def make(stored: Obj) -> Obj:
            merged = self._merged(call, codec.to_version(call.kind, call.view.version, stored), config, repeated)
            return codec.to_storage(call.kind, call.view.version, merged)

        for _ in range(_RACES):
            try:
                return await self._writer.change(call, make, subresource=call.path.subresource)
            except ApiError as error:
                if error.code != 404 or call.path.subresource:
                    raise
            try:
                return await self._create(call, config, repeated)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
        raise conflict(call.kind.group, call.kind.plural, call.name, MODIFIED)

    async def _create(self, call: Call, config: Obj, repeated: list[str]) -> Outcome:
        uid = metadata.of(config).get("uid", "")
        if uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(call.kind.group, call.kind.plural, call.name, why)
        return await self._writer.create(call, self._merged(call, None, config, repeated))

    def _merged(self, call: Call, live: Obj | None, config: Obj, repeated: list[str]) -> Obj:
        merged = apply.merge(
            live,
            config,
            call.view.schema,
            manager=call.request.arg("fieldManager"),
            api_version=call.view.api_version,
            now=metadata.timestamp(self._backend.clock()),
            force=call.request.flag("force"),
            subresource=call.path.subresource,
        )
        return bodies.checked(call, codec.copy(merged), repeated, patched=True)

    def _make(self, call: Call) -> Make:
        patch, repeated = read_patch(call)

        def make(stored: Obj) -> Obj:
            current = codec.to_version(call.kind, call.view.version, stored)
            changed = apply_patch(call, current, patch, repeated)
            return codec.to_storage(call.kind, call.view.version, changed)

        return make


def _configuration(call: Call) -> tuple[Obj, list[str]]:
    """What is applied, YAML or, as kubectl sends it, JSON; and the fields it repeats."""
    body = call.request.body
    is_json = body.lstrip()[:1] == b"{"
    value, repeated = json_bodies.decode_json(body) if is_json else _from_yaml(call, body)
    if not isinstance(value, dict):
        raise bad_request("error decoding patch: an apply configuration must be an object")
    bodies.expect(value, call.view.api_version, call.kind.kind)
    meta = metadata.of(value)
    if meta.setdefault("name", call.name) != call.name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({call.name})")
    return value, repeated


def _from_yaml(call: Call, body: bytes) -> tuple[Any, list[str]]:
    value, wrong = yaml_bodies.decode(body)
    mode = bodies.field_validation(call.request)
    if wrong and mode == fields.STRICT:
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {wrong}")
    if wrong and mode == fields.WARN:
        call.warnings.append(f"error converting YAML to JSON: {wrong}")
    return value, []


def read_patch(call: Call) -> tuple[Any, list[str]]:
    """The patch document and the fields it repeats; 415 for a content type that is no patch."""
    if bodies.media_type(call.request) not in _APPLY_TYPES:
        raise unsupported_media_type(_ACCEPTED)
    return json_bodies.decode_json(call.request.body)


def patched(call: Call, current: Obj, patch: Any, message: schema.Message | None) -> Obj:
    """The object after the patch; it shares nothing with the one before."""
    changed: Any = _APPLY_TYPES[bodies.media_type(call.request)](current, patch, message)
    if not isinstance(changed, dict):
        raise bad_request("the patch leaves no object")
    return codec.copy(changed)


def apply_patch(call: Call, current: Obj, patch: Any, repeated: list[str]) -> Obj:
    """The patched object, checked against its schema."""
    changed = patched(call, current, patch, call.view.schema.message)
    bodies.expect(changed, call.view.api_version, call.kind.kind)
    return bodies.checked(call, changed, repeated, patched=True)
