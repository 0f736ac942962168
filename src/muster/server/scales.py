"""The scale of a workload: autoscaling/v1 Scale, read from and written to its replica count."""

from __future__ import annotations

from functools import partial
from typing import Any

from muster.api.errors import INVALID, FieldError, bad_request, conflict, invalid
from muster.server import bodies, codec, fields, media, metadata, schema
from muster.server.call import Call
from muster.server.object_patcher import patched, read_patch
from muster.server.object_writer import MODIFIED, ObjectWriter
from muster.server.request import Response
from muster.server.resources.columns import at, selector_text
from muster.server.resources.kind import AdmissionForm, Kind, Obj, Posted
from muster.server.store.records import Record

_GROUP, _VERSION, _KIND = "autoscaling", "v1", "Scale"
_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class Scales:
    """GET, PUT and PATCH of /scale."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    def show(self, call: Call, record: Record) -> Response:
        return media.answer(200, media.encode(scale_of(call.kind, codec.load(call.kind, record))), call.form)

    async def update(self, call: Call) -> Response:
        wanted, warnings = bodies.decode_as(call.request, _GROUP, _VERSION, _KIND)
        call.warnings += warnings
        return await self._apply(call, lambda current: wanted)

    async def patch(self, call: Call) -> Response:
        patch, repeated = read_patch(call)
        message = schema.kind(_GROUP, _VERSION, _KIND)

        def change(current: Obj) -> Obj:
            changed = patched(call, current, patch, message)
            if message is None:
                return changed
            mode = bodies.field_validation(call.request)
            result, warnings = fields.decode(changed, message, mode, repeated, patched=True)
            call.warnings += warnings
            return result

        return await self._apply(call, change)

    async def _apply(self, call: Call, change: Any) -> Response:
        def make(stored: Obj) -> Obj:
            current = scale_of(call.kind, stored)
            wanted: Obj = change(current)
            version = metadata.of(wanted).get("resourceVersion", "")
            if version and version != current["metadata"]["resourceVersion"]:
                raise conflict(call.kind.group, call.kind.plural, call.name, MODIFIED)
            _set_replicas(call.kind, stored, _replicas(call, wanted))
            return stored

        kind = call.kind
        call.admission_form = AdmissionForm(
            Posted(_GROUP, _VERSION, _KIND), partial(scale_of, kind), partial(_rescaled, call)
        )
        outcome = await self._writer.change(call, make)
        return media.answer(200, media.encode(scale_of(call.kind, outcome.obj)), call.form)


def scale_of(kind: Kind, obj: Obj) -> Obj:
    """The Scale that shows a workload. A custom kind says where its counts are."""
    meta: Obj = obj["metadata"]
    if kind.definition is not None and kind.definition.scale is not None:
        paths = kind.definition.scale
        replicas: int = at(obj, *paths.spec_replicas) or 0
        status: Obj = {"replicas": at(obj, *paths.status_replicas) or 0}
        selector: str = (at(obj, *paths.selector) if paths.selector else "") or "<none>"
    else:
        replicas = (obj.get("spec") or {}).get("replicas", 1)
        status = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
        selector = selector_text((obj.get("spec") or {}).get("selector"))
    if selector != "<none>":
        status["selector"] = selector
    return {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/{_VERSION}",
        "metadata": {name: meta[name] for name in _SHOWN_METADATA if name in meta},
        "spec": {"replicas": replicas},
        "status": status,
    }


def _rescaled(call: Call, obj: Obj, scale: Obj) -> Obj:
    """The workload with the replicas that admission left on its scale."""
    _set_replicas(call.kind, obj, _replicas(call, scale))
    return obj


def _set_replicas(kind: Kind, obj: Obj, replicas: int) -> None:
    scale = kind.definition.scale if kind.definition is not None else None
    path = scale.spec_replicas if scale is not None else ("spec", "replicas")
    for step in path[:-1]:
        obj = obj.setdefault(step, {})
    obj[path[-1]] = replicas


def _replicas(call: Call, wanted: Obj) -> int:
    spec: Any = wanted.get("spec") or {}
    if not isinstance(spec, dict):
        raise bad_request("spec must be an object")
    replicas: Any = spec.get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bad_request("spec.replicas must be an integer")
    if replicas < 0:
        wrong = FieldError(INVALID, "spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid(_GROUP, _KIND, call.name, [wrong])
    return replicas
