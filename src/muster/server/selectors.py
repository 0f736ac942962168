"""Label and field selectors of lists, watches and collection deletes, compiled once a request."""

from __future__ import annotations

from collections.abc import Callable

from muster.api import selectors
from muster.api.errors import bad_request
from muster.server import codec
from muster.server.request import Request
from muster.server.resources.kind import Kind
from muster.server.store.records import Record

Match = Callable[[Record], bool]


def selector(kind: Kind, request: Request, name: str = "") -> Match | None:
    """Whether a record is selected; None when all are. `name` narrows to one object."""
    tests: list[Match] = []
    labels = request.arg("labelSelector")
    if labels:
        tests.append(_labels(labels))
    fields = request.arg("fieldSelector")
    if fields:
        tests.extend(_fields(kind, fields))
    if name:
        tests.append(lambda record: record.key[1] == name)
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda record: all(test(record) for test in tests)


def _labels(text: str) -> Match:
    try:
        conditions = selectors.parse_labels(text)
    except ValueError as wrong:
        raise bad_request(str(wrong)) from None
    return lambda record: selectors.all_satisfied(conditions, codec.labels_of(record))


def _fields(kind: Kind, text: str) -> list[Match]:
    try:
        conditions = selectors.parse_fields(text)
    except ValueError as wrong:
        raise bad_request(str(wrong)) from None
    return [_field(kind, condition) for condition in conditions]


def _field(kind: Kind, condition: selectors.FieldRequirement) -> Match:
    name, equal, wanted = condition
    if name == "metadata.name":
        return lambda record: (record.key[1] == wanted) is equal
    if name == "metadata.namespace":
        return lambda record: (record.key[0] == wanted) is equal
    names = list(kind.selectable)
    if name not in names:
        raise bad_request(
            f'Unable to find "{kind.api_version(kind.versions[0])}, Resource={kind.plural}" that match label selector '
            f'"", field selector "{name}{"=" if equal else "!="}{wanted}": field label not supported: {name}'
        )
    at = names.index(name)
    return lambda record: (codec.fields_of(kind, record)[at] == wanted) is equal
