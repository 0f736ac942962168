"""What the server does to the metadata of every object: names, generated fields, and the rules that hold for all kinds.

A client sets name, generateName, labels, annotations, ownerReferences and finalizers; everything else here is the
server's. On an update the server's fields are taken from the stored object whatever the client sent.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

from muster.api.errors import (
    FORBIDDEN,
    INVALID,
    REQUIRED,
    TOO_LONG,
    TYPE_INVALID,
    FieldError,
    bad_request,
)
from muster.api.validation import formats
from muster.api.validation.meta import validate_expected_duration
from muster.server.identifiers import Identifiers
from muster.server.resources.kind import Kind, Obj

GENERATE_ATTEMPTS = 8
_MAX_ANNOTATIONS = 256 * 1024
_KEPT_ON_UPDATE = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


def timestamp(now: float) -> str:
    """Seconds since the epoch in the form of every Kubernetes timestamp."""
    return _second(int(now // 1))


@lru_cache(maxsize=16)
def _second(now: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))


def of(obj: Obj) -> Obj:
    """The metadata of an object as a client sent it; 400 when it is not an object."""
    metadata: Any = obj.get("metadata")
    if metadata is None:
        metadata = {}
        obj["metadata"] = metadata
    if not isinstance(metadata, dict):
        raise bad_request("the object provided is unrecognized: metadata must be an object")
    for field in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        value: Any = metadata.get(field)
        if value is None:
            metadata.pop(field, None)
        elif not isinstance(value, str):
            raise bad_request(f"the object provided is unrecognized: metadata.{field} must be a string")
    return metadata


def begin(kind: Kind, obj: Obj, namespace: str, now: float, identifiers: Identifiers) -> None:
    """Give a new object what the server gives: uid, creationTimestamp, generation, namespace."""
    metadata = obj["metadata"]
    for field in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        metadata.pop(field, None)
    if kind.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = identifiers.uid(kind.table, metadata.get("namespace", ""), metadata.get("name", ""))
    metadata["creationTimestamp"] = timestamp(now)
    if kind.generation:
        metadata["generation"] = 1


def carry_over(kind: Kind, new: Obj, old: Obj) -> None:
    """Keep what clients may not change."""
    metadata, before = new["metadata"], old["metadata"]
    for field in _KEPT_ON_UPDATE:
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    metadata.pop("selfLink", None)
    metadata["resourceVersion"] = before["resourceVersion"]
    if kind.namespaced:
        metadata["namespace"] = before["namespace"]
    if "generateName" in before and "generateName" not in metadata:
        metadata["generateName"] = before["generateName"]


def keep_own_fields(changed: Obj, before: Obj) -> None:
    """Put back what no admission may change."""
    metadata, own = of(changed), before["metadata"]
    for field in (*_KEPT_ON_UPDATE, "name", "namespace", "resourceVersion", "managedFields"):
        if field in own:
            metadata[field] = own[field]
        else:
            metadata.pop(field, None)


def count_generation(kind: Kind, new: Obj, old: Obj) -> None:
    """Bump the generation when anything but metadata and status changed."""
    if not kind.generation:
        return
    changed = _desired(kind, new) != _desired(kind, old)
    new["metadata"]["generation"] = old["metadata"].get("generation", 1) + (1 if changed else 0)


def _desired(kind: Kind, obj: Obj) -> Obj:
    """What was asked for. The status of a custom kind without a status endpoint is a field like any other."""
    plain = kind.definition is not None and "status" not in kind.subresources
    left_out = ("metadata", "apiVersion", "kind") if plain else ("metadata", "status", "apiVersion", "kind")
    return {name: value for name, value in obj.items() if name not in left_out}


def validate(kind: Kind, obj: Obj, old: Obj | None) -> list[FieldError]:
    """The rules of metadata that hold for every kind."""
    metadata = obj["metadata"]
    errors: list[FieldError] = []
    if old is None:
        errors += _check_names(kind, metadata)
    errors += _check_labels(metadata)
    errors += _check_annotations(metadata)
    errors += _check_owners(metadata)
    errors += _check_finalizers(metadata, old["metadata"] if old is not None else None)
    return errors


def _check_names(kind: Kind, metadata: Obj) -> list[FieldError]:
    name: str = metadata.get("name", "")
    if not name:
        return [FieldError(REQUIRED, "metadata.name", detail="name or generateName is required")]
    return [FieldError(INVALID, "metadata.name", name, why) for why in _name_complaints(kind.name_rule, name)]


def _name_complaints(rule: str, name: str) -> list[str]:
    if rule == "label":
        return formats.dns_label(name)
    if rule == "path":
        return formats.path_segment(name)
    return formats.dns_subdomain(name)


def _check_labels(metadata: Obj) -> list[FieldError]:
    labels: Any = metadata.get("labels")
    if labels is None:
        return []
    if not isinstance(labels, dict):
        return [FieldError(TYPE_INVALID, "metadata.labels", labels, "must be an object of strings")]
    errors: list[FieldError] = []
    for key, value in labels.items():
        if isinstance(value, str) and _is_fine(key, value):
            continue
        errors += [FieldError(INVALID, "metadata.labels", key, why) for why in formats.qualified_name(key)]
        if not isinstance(value, str):
            errors.append(FieldError(TYPE_INVALID, "metadata.labels", value, "must be a string"))
            continue
        errors += [FieldError(INVALID, "metadata.labels", value, why) for why in formats.label_value(value)]
    return errors


@lru_cache(maxsize=4096)
def _is_fine(key: str, value: str) -> bool:
    """Whether a label keeps the rules. Most labels of an object are those of a thousand others."""
    return not formats.qualified_name(key) and not formats.label_value(value)


def _check_annotations(metadata: Obj) -> list[FieldError]:
    annotations: Any = metadata.get("annotations")
    if annotations is None:
        return []
    if not isinstance(annotations, dict):
        return [FieldError(TYPE_INVALID, "metadata.annotations", annotations, "must be an object of strings")]
    errors: list[FieldError] = []
    total = 0
    for key, value in annotations.items():
        errors += [FieldError(INVALID, "metadata.annotations", key, why) for why in formats.qualified_name(key.lower())]
        if not isinstance(value, str):
            errors.append(FieldError(TYPE_INVALID, "metadata.annotations", value, "must be a string"))
            continue
        total += len(key) + len(value)
    errors += validate_expected_duration(annotations)
    if total > _MAX_ANNOTATIONS:
        errors.append(
            FieldError(TOO_LONG, "metadata.annotations", detail=f"may not be more than {_MAX_ANNOTATIONS} bytes")
        )
    return errors


def _check_owners(metadata: Obj) -> list[FieldError]:
    owners: Any = metadata.get("ownerReferences")
    if owners is None:
        return []
    if not isinstance(owners, list):
        return [FieldError(TYPE_INVALID, "metadata.ownerReferences", owners, "must be a list")]
    errors: list[FieldError] = []
    controllers: list[Any] = []
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        if not isinstance(owner, dict):
            errors.append(FieldError(TYPE_INVALID, path, owner, "must be an object"))
            continue
        for field, words in (("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")):
            if not owner.get(field):
                errors.append(
                    FieldError(INVALID, f"{path}.{field}", owner.get(field, ""), f"{words} must not be empty")
                )
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        first, second = controllers[0].get("kind"), controllers[1].get("kind")
        why = f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        errors.append(FieldError(INVALID, "metadata.ownerReferences", owners, why))
    return errors


def _check_finalizers(metadata: Obj, before: Obj | None) -> list[FieldError]:
    finalizers: Any = metadata.get("finalizers")
    if finalizers is None:
        return []
    if not isinstance(finalizers, list) or not all(isinstance(entry, str) for entry in finalizers):
        return [FieldError(TYPE_INVALID, "metadata.finalizers", finalizers, "must be a list of strings")]
    errors: list[FieldError] = []
    for entry in finalizers:
        errors += [FieldError(INVALID, "metadata.finalizers", entry, why) for why in formats.qualified_name(entry)]
    if FOREGROUND in finalizers and ORPHAN in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(FieldError(INVALID, "metadata.finalizers", finalizers, why))
    if before is not None and "deletionTimestamp" in before:
        extra = sorted(set(finalizers) - set(before.get("finalizers") or ()))
        if extra:
            listed = ", ".join(f'"{entry}"' for entry in extra)
            why = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            errors.append(FieldError(FORBIDDEN, "metadata.finalizers", detail=why))
    return errors
