"""Request bodies: from bytes of some content type to an object of the expected kind.

Whatever a client sends, the worst answer is 400 or 415: nothing here lets a malformed body reach the hooks.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.api.errors import NOT_SUPPORTED, FieldError, bad_request, invalid, unsupported_media_type
from muster.server import fields, json_bodies, protobuf, schema, yaml_bodies
from muster.server.call import Call
from muster.server.request import JSON, PROTOBUF, YAML, Request
from muster.server.resources.kind import Obj

YAML_TYPES = (YAML, "application/x-yaml", "text/yaml")
_ACCEPTED = (
    f"the body of the request was in an unknown format - accepted media types include: {JSON}, {YAML}, {PROTOBUF}"
)


def media_type(request: Request) -> str:
    """The body's content type without parameters; a body without one is JSON."""
    return request.headers.get("content-type", "").split(";", 1)[0].strip().lower() or JSON


def decode(request: Request, default: tuple[str, str, str] | None = None) -> tuple[Obj, list[str]]:
    """The body as an object, whatever its kind, and the fields it repeats."""
    media = media_type(request)
    repeated: list[str] = []
    if media == JSON or media == "*/*":
        value, repeated = json_bodies.decode_json(request.body)
    elif media == PROTOBUF:
        value = protobuf.decode(request.body, default)
    elif media in YAML_TYPES:
        value, wrong = yaml_bodies.decode(request.body)
        repeated = [fields.BodyFault(wrong)] if wrong else []
    else:
        raise unsupported_media_type(_ACCEPTED)
    if not isinstance(value, dict):
        raise bad_request("the object provided is unrecognized: the body must be an object")
    return value, repeated


def decode_object(call: Call) -> Obj:
    """The body as an object of the call's kind and version, in the form Go would write it."""
    kind, version = call.kind, call.view.version
    obj, repeated = decode(call.request, (kind.group, version, kind.kind))
    expect(obj, call.view.api_version, kind.kind)
    return checked(call, obj, repeated)


def checked(call: Call, obj: Obj, repeated: Iterable[str] = (), *, patched: bool = False) -> Obj:
    """The object with its fields checked against the kind's schema, as `fieldValidation` says."""
    result, warnings = call.view.schema.decode(obj, field_validation(call.request), repeated, patched=patched)
    call.warnings += warnings
    return result


def decode_as(request: Request, group: str, version: str, kind: str) -> tuple[Obj, list[str]]:
    """The body as an object of a kind that is posted to a subresource (Binding, Eviction, Scale ...)."""
    obj, repeated = decode(request, (group, version, kind))
    expect(obj, f"{group}/{version}" if group else version, kind)
    message = schema.kind(group, version, kind)
    if message is None:
        return obj, []
    return fields.decode(obj, message, field_validation(request), repeated)


def field_validation(request: Request) -> str:
    mode = request.arg("fieldValidation") or fields.WARN
    if mode not in (fields.STRICT, fields.WARN, fields.IGNORE):
        wrong = FieldError(NOT_SUPPORTED, "fieldValidation", mode, 'supported values: "Ignore", "Strict", "Warn"')
        raise invalid("meta.k8s.io", "CreateOptions", "", [wrong])
    return mode


def expect(obj: Obj, api_version: str, kind: str) -> None:
    """400 unless the object says (or leaves out) this apiVersion and kind."""
    given_kind, given_version = obj.get("kind") or kind, obj.get("apiVersion") or api_version
    if given_version != api_version and given_kind == kind:
        raise bad_request(
            f"the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )
    if given_kind != kind:
        raise bad_request(
            f'{given_kind} in version "{given_version}" cannot be handled as a {kind}: '
            f"the object provided is unrecognized (must be of type {kind})"
        )
    obj["kind"], obj["apiVersion"] = kind, api_version
