"""Members that a PodGroup expects and that do not exist yet: their number and their pod template.

Some managers create the pods of a gang one after another: the leader first and its workers when it is ready, pod 0 of
a StatefulSet before pod 1. Whoever knows the owner writes on the PodGroup what will come, as the annotation
`scheduling.muster.dev/expected-members`; the scheduler then starts the first members only if there is room for all, and
holds the seats of the rest. The text is a list in JSON:

    [{"count": 3, "podTemplate": {"metadata": {"labels": {}}, "spec": {}}, "after": "ready"}]

`count` is how many members of that template the group has in all, those included that exist; `after` is what the
others wait for: that earlier ones are created, scheduled or ready. Nothing is held for members that come when others
are completed, whose room is free then; it is only said if they would not even fit into the empty cluster. Of a template
only what scheduling reads is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from muster.api import durations, quantity
from muster.api.decoding import decode_errors
from muster.api.errors import INVALID, NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID, FieldError
from muster.api.types import EXPECTED_DURATION, Labels, Leaf, PodAnnotations, PodSpec
from muster.api.validation import formats

EXPECTED_MEMBERS = "scheduling.muster.dev/expected-members"

CREATED, SCHEDULED, READY, COMPLETED = "created", "scheduled", "ready", "completed"
AFTER = (CREATED, SCHEDULED, READY, COMPLETED)

MOST_BYTES = 64 * 1024  # of the annotation; all annotations of an object together may have 256 KiB
MOST_TEMPLATES = 8
MOST_MEMBERS = 10_000  # of one group

PATH = f"metadata.annotations[{EXPECTED_MEMBERS}]"


class TemplateMeta(Leaf, frozen=True):
    """What a pod gets of its template's metadata, as far as scheduling reads it."""

    labels: Labels | None = None
    annotations: PodAnnotations | None = None


class ExpectedPodTemplate(Leaf, frozen=True):
    """The pods that will come."""

    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec = PodSpec()


class ExpectedMembers(Leaf, frozen=True, omit_defaults=False):
    """So many members of one template, those included that exist."""

    count: int
    pod_template: ExpectedPodTemplate
    after: str


class MalformedExpectation(ValueError):
    """The annotation cannot be read; `errors` name the fields."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


def encode(expected: Iterable[ExpectedMembers]) -> str:
    """The annotation's text; equal expectations give equal texts."""
    return msgspec.json.encode(list(expected), order="deterministic").decode()


def expected_of(
    template: Mapping[str, Any], count: int, after: str, path: str = "template"
) -> tuple[ExpectedMembers | None, list[FieldError]]:
    """An entry from the pod template of an owner as it is on the wire, or what is wrong with it."""
    return _entry({"count": count, "podTemplate": {**template}, "after": after}, "", template_path=path)


def decode(text: str, path: str = PATH) -> tuple[ExpectedMembers, ...]:
    """The members that an annotation lists; raises `MalformedExpectation` with every field that is wrong."""
    size = len(text.encode(errors="replace"))
    if size > MOST_BYTES:
        raise MalformedExpectation([FieldError(TOO_LONG, path, None, f"may not be more than {MOST_BYTES} bytes")])
    try:
        found: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MalformedExpectation([FieldError(INVALID, path, text[:80], f"must be JSON: {error}")]) from error
    if not isinstance(found, list):
        raise MalformedExpectation([FieldError(TYPE_INVALID, path, text[:80], "must be a list")])
    return _entries(cast("list[Any]", found), path)


def _entries(found: list[Any], path: str) -> tuple[ExpectedMembers, ...]:
    if len(found) > MOST_TEMPLATES:
        error = FieldError(TOO_MANY, path, len(found), f"must have at most {MOST_TEMPLATES} items")
        raise MalformedExpectation([error])
    entries: list[ExpectedMembers] = []
    errors: list[FieldError] = []
    for index, item in enumerate(found):
        entry, wrong = _entry(item, f"{path}[{index}]")
        errors += wrong
        if entry is not None:
            entries.append(entry)
    total = sum(entry.count for entry in entries)
    if total > MOST_MEMBERS:
        errors.append(FieldError(INVALID, path, total, f"must expect at most {MOST_MEMBERS} members"))
    if errors:
        raise MalformedExpectation(errors)
    return tuple(entries)


def _entry(item: Any, path: str, template_path: str = "") -> tuple[ExpectedMembers | None, list[FieldError]]:
    if not isinstance(item, dict):
        return None, [FieldError(TYPE_INVALID, path, item, "must be an object")]
    fields = cast("dict[str, Any]", item)
    known = ("count", "podTemplate", "after")
    errors = [
        FieldError(NOT_SUPPORTED, f"{path}.{name}", name, f"supported values: {', '.join(known)}")
        for name in fields
        if name not in known
    ]
    count, after = fields.get("count"), fields.get("after")
    if isinstance(count, bool) or not isinstance(count, int):
        errors.append(FieldError(TYPE_INVALID, _at(path, "count"), count, "must be a whole number"))
    elif not 1 <= count <= MOST_MEMBERS:
        errors.append(FieldError(INVALID, _at(path, "count"), count, f"must be between 1 and {MOST_MEMBERS}"))
    if after not in AFTER:
        allowed = ", ".join(f'"{one}"' for one in AFTER)
        errors.append(FieldError(NOT_SUPPORTED, _at(path, "after"), after, f"supported values: {allowed}"))
    template, wrong = _template(fields.get("podTemplate"), template_path or _at(path, "podTemplate"))
    errors += wrong
    if errors or template is None:
        return None, errors
    return ExpectedMembers(cast("int", count), template, cast("str", after)), []


def _template(found: Any, path: str) -> tuple[ExpectedPodTemplate | None, list[FieldError]]:
    if not isinstance(found, dict):
        missing = found is None
        kind, detail = (REQUIRED, "") if missing else (TYPE_INVALID, "must be an object")
        return None, [FieldError(kind, path, found, detail)]
    fields = cast("dict[str, Any]", found)
    metadata: Any = fields.get("metadata", {})
    spec: Any = fields.get("spec")
    if not isinstance(spec, dict):
        kind, detail = (REQUIRED, "") if spec is None else (TYPE_INVALID, "must be an object")
        return None, [FieldError(kind, f"{path}.spec", spec, detail)]
    errors = [error._replace(field=f"{path}.spec.{error.field}") for error in decode_errors(spec, "PodSpec")]
    errors += _metadata_errors(metadata, f"{path}.metadata")
    if errors:
        return None, errors
    try:
        template = msgspec.convert({"metadata": metadata or {}, "spec": spec}, ExpectedPodTemplate)
    except msgspec.ValidationError as error:
        detail, _, where = str(error).partition(" - at `$")
        return None, [FieldError(REQUIRED, path + where.rstrip("`"), None, detail)]
    wrong = list(_spec_errors(template.spec, f"{path}.spec"))
    return (None, wrong) if wrong else (template, [])


def _metadata_errors(metadata: Any, path: str) -> Iterator[FieldError]:
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        yield FieldError(TYPE_INVALID, path, metadata, "must be an object")
        return
    for name in ("labels", "annotations"):
        found = cast("dict[str, Any]", metadata).get(name)
        if found is None:
            continue
        if not isinstance(found, dict):
            yield FieldError(TYPE_INVALID, f"{path}.{name}", found, "must be an object")
            continue
        for key, value in cast("dict[str, Any]", found).items():
            if not isinstance(value, str):
                yield FieldError(TYPE_INVALID, f"{path}.{name}[{key}]", value, "must be a string")
            elif name == "labels":
                yield from (FieldError(INVALID, f"{path}.labels", value, text) for text in formats.label_value(value))
            elif key == EXPECTED_DURATION and not durations.is_duration(value):
                yield FieldError(INVALID, f"{path}.annotations[{key}]", value, durations.MALFORMED)


def _spec_errors(spec: PodSpec, path: str) -> Iterator[FieldError]:
    """What an API server would refuse in a pod and the scheduler could not work with."""
    if spec.node_name:
        yield FieldError(INVALID, f"{path}.nodeName", spec.node_name, "must be empty: the pods are still to be placed")
    for where, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            resources = container.resources
            if resources is not None:
                at = f"{path}.{where}[{index}].resources"
                yield from _quantity_errors(resources.requests, f"{at}.requests")
                yield from _quantity_errors(resources.limits, f"{at}.limits")
    if spec.resources is not None:
        yield from _quantity_errors(spec.resources.requests, f"{path}.resources.requests")
        yield from _quantity_errors(spec.resources.limits, f"{path}.resources.limits")
    yield from _quantity_errors(spec.overhead, f"{path}.overhead")
    for index, constraint in enumerate(spec.topology_spread_constraints or ()):
        at = f"{path}.topologySpreadConstraints[{index}]"
        if constraint.max_skew < 1:
            yield FieldError(INVALID, f"{at}.maxSkew", constraint.max_skew, "must be greater than zero")
        if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            allowed = 'supported values: "DoNotSchedule", "ScheduleAnyway"'
            yield FieldError(NOT_SUPPORTED, f"{at}.whenUnsatisfiable", constraint.when_unsatisfiable, allowed)


def _quantity_errors(amounts: Mapping[str, Any] | None, path: str) -> Iterator[FieldError]:
    for name, amount in (amounts or {}).items():
        try:
            negative = quantity.parse(amount).nanos < 0
        except ValueError as error:
            yield FieldError(INVALID, f"{path}[{name}]", amount, str(error))
            continue
        if negative:
            yield FieldError(INVALID, f"{path}[{name}]", amount, "must be greater than or equal to 0")


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
