"""The rules of `metadata` that can be judged from a manifest alone: names, namespace, labels, annotations."""

from __future__ import annotations

from muster.api import durations
from muster.api.errors import FORBIDDEN, INVALID, REQUIRED, TOO_LONG, TYPE_INVALID, FieldError
from muster.api.types import EXPECTED_DURATION
from muster.api.validation import fields, formats
from muster.api.validation.fields import Errors, Obj

MAX_ANNOTATIONS = 256 * 1024


def validate(obj: Obj, *, namespaced: bool = True) -> Errors:
    """Every error in the metadata of a manifest. A missing namespace is fine here: the client fills it in."""
    metadata = obj.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return [FieldError(TYPE_INVALID, "metadata", None, "must be an object")]
    meta = fields.as_object(metadata)
    return _name(meta) + _namespace(meta, namespaced) + _labels(meta) + _annotations(meta)


def _name(meta: Obj) -> Errors:
    name, prefix = fields.as_text(meta.get("name")), fields.as_text(meta.get("generateName"))
    if name:
        return [FieldError(INVALID, "metadata.name", name, text) for text in formats.dns_subdomain(name)]
    if prefix:
        # The random suffix that follows makes up for a dash at the end.
        complaints = formats.dns_subdomain(f"{prefix}x")
        return [FieldError(INVALID, "metadata.generateName", prefix, text) for text in complaints]
    return [FieldError(REQUIRED, "metadata.name", None, "name or generateName is required")]


def _namespace(meta: Obj, namespaced: bool) -> Errors:
    namespace = fields.as_text(meta.get("namespace"))
    if namespace and not namespaced:
        return [FieldError(FORBIDDEN, "metadata.namespace", None, "not allowed on this type")]
    complaints = formats.dns_label(namespace) if namespace else []
    return [FieldError(INVALID, "metadata.namespace", namespace, text) for text in complaints]


def _labels(meta: Obj) -> Errors:
    errors: Errors = []
    for key, value in fields.as_object(meta.get("labels")).items():
        errors += [FieldError(INVALID, "metadata.labels", key, text) for text in formats.qualified_name(key)]
        if isinstance(value, str):
            errors += [FieldError(INVALID, "metadata.labels", value, text) for text in formats.label_value(value)]
        else:
            errors.append(FieldError(TYPE_INVALID, f"metadata.labels[{key}]", value, "must be a string"))
    return errors


def _annotations(meta: Obj) -> Errors:
    errors: Errors = []
    size = 0
    for key, value in fields.as_object(meta.get("annotations")).items():
        complaints = formats.qualified_name(key.lower())
        errors += [FieldError(INVALID, "metadata.annotations", key, text) for text in complaints]
        if isinstance(value, str):
            size += len(key) + len(value.encode(errors="replace"))
        else:
            errors.append(FieldError(TYPE_INVALID, f"metadata.annotations[{key}]", value, "must be a string"))
    errors += validate_expected_duration(meta.get("annotations"))
    if size > MAX_ANNOTATIONS:
        errors.append(
            FieldError(TOO_LONG, "metadata.annotations", None, f"may not be more than {MAX_ANNOTATIONS} bytes")
        )
    return errors


def validate_expected_duration(annotations: object, path: str = "metadata.annotations") -> Errors:
    """The annotation that says how long a pod runs."""
    found = fields.as_object(annotations).get(EXPECTED_DURATION)
    if not isinstance(found, str) or durations.is_duration(found):
        return []
    return [FieldError(INVALID, f"{path}[{EXPECTED_DURATION}]", found, durations.MALFORMED)]
