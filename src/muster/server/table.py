"""Server-side printing: objects as rows of a Table, or as their metadata alone."""

from __future__ import annotations

import re
from typing import Any

from muster.api.errors import bad_request
from muster.server import codec
from muster.server.backend import Backend
from muster.server.call import Call
from muster.server.frames import INITIAL_EVENTS_END
from muster.server.object_lister import Page
from muster.server.resources.columns import AGE, NAME
from muster.server.resources.kind import Column, Obj
from muster.server.store.records import Record
from muster.server.watch import Event

_DEFAULT_COLUMNS = (NAME, AGE)


class Counts:
    """What table cells ask beyond their own object, counted once a request."""

    def __init__(self, backend: Backend) -> None:
        self.now = backend.clock()
        self._backend = backend
        self._members: dict[tuple[str, str], tuple[int, int]] | None = None
        self._children: dict[tuple[str, str], int] | None = None

    def members(self, namespace: str, group: str) -> tuple[int, int]:
        if self._members is None:
            self._members = self._count_members()
        return self._members.get((namespace, group), (0, 0))

    def children(self, namespace: str, composite: str) -> int:
        if self._children is None:
            self._children = self._count_children()
        return self._children.get((namespace, composite), 0)

    def _count_members(self) -> dict[tuple[str, str], tuple[int, int]]:
        pods = self._backend.registry.kind("", "pods")
        if pods is None:
            return {}
        names = list(pods.selectable)
        node, group = names.index("spec.nodeName"), names.index("spec.schedulingGroup.podGroupName")
        counts: dict[tuple[str, str], tuple[int, int]] = {}
        for record in self._backend.store.table(pods.table).records.values():
            fields = codec.fields_of(pods, record)
            if fields[group]:
                key = (record.key[0], fields[group])
                bound, known = counts.get(key, (0, 0))
                counts[key] = (bound + (1 if fields[node] else 0), known + 1)
        return counts

    def _count_children(self) -> dict[tuple[str, str], int]:
        counts: dict[tuple[str, str], int] = {}
        for plural in ("podgroups", "compositepodgroups"):
            for obj in self._backend.reader.list(plural, "scheduling.k8s.io"):
                parent = (obj.get("spec") or {}).get("parentCompositePodGroupName")
                if parent:
                    key = (obj["metadata"]["namespace"], parent)
                    counts[key] = counts.get(key, 0) + 1
        return counts


class Printer:
    """Turns records into the form that a call asked for."""

    def __init__(self, backend: Backend, call: Call) -> None:
        self._call = call
        self._columns: tuple[Column, ...] = call.kind.columns or _DEFAULT_COLUMNS
        self._counts = Counts(backend)
        self._backend = backend
        self._include = call.request.arg("includeObject") or "Metadata"
        if self._include not in ("Metadata", "Object", "None"):
            raise bad_request(f'invalid value for includeObject: "{self._include}"')
        self._headed = False

    def page(self, page: Page) -> Obj:
        """A list as one Table, or as a list of partial objects."""
        meta: Obj = {"resourceVersion": str(page.revision)}
        if page.token:
            meta["continue"] = page.token
            if page.remaining is not None:
                meta["remainingItemCount"] = page.remaining
        if self._call.form.shape == "Table":
            return self._table(meta, [self._row(record) for record in page.records], headed=True)
        items = [self._partial(record) for record in page.records]
        return {"kind": "PartialObjectMetadataList", "apiVersion": self._meta_version, "metadata": meta, "items": items}

    def one(self, record: Record) -> Obj:
        """One object in the asked form."""
        if self._call.form.shape == "Table":
            return self._table({"resourceVersion": str(record.revision)}, [self._row(record)], headed=True)
        return self._partial(record)

    def event(self, event: Event) -> Obj:
        """The object of a watch event; only the first Table of a watch has column definitions."""
        if event.record is None:
            return self._bookmark_table(event)
        if self._call.form.shape != "Table":
            return self._partial(event.record)
        self._counts = Counts(self._backend)
        headed, self._headed = not self._headed, True
        return self._table({"resourceVersion": str(event.revision)}, [self._row(event.record)], headed=headed)

    def _bookmark_table(self, event: Event) -> Obj:
        meta: Obj = {"resourceVersion": str(event.revision), "creationTimestamp": None}
        if event.initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        blank = {"kind": self._call.kind.kind, "apiVersion": self._call.view.api_version, "metadata": meta}
        row = {"cells": [], "object": blank}
        return self._table({"resourceVersion": str(event.revision)}, [row], headed=False)

    @property
    def _meta_version(self) -> str:
        return f"meta.k8s.io/{self._call.form.version}"

    def _table(self, meta: Obj, rows: list[Obj], headed: bool) -> Obj:
        table: Obj = {"kind": "Table", "apiVersion": self._meta_version, "metadata": meta}
        table["columnDefinitions"] = [_definition(column) for column in self._columns] if headed else []
        table["rows"] = rows
        return table

    def _row(self, record: Record) -> Obj:
        obj = codec.load(self._call.kind, record)
        row: Obj = {"cells": [_cell(column, obj, self._counts) for column in self._columns]}
        if self._include == "Object":
            row["object"] = codec.to_version(self._call.kind, self._call.view.version, obj)
        elif self._include == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": self._meta_version,
                "metadata": obj["metadata"],
            }
        return row

    def _partial(self, record: Record) -> Obj:
        obj = codec.load(self._call.kind, record)
        return {"kind": "PartialObjectMetadata", "apiVersion": self._meta_version, "metadata": obj["metadata"]}


def _cell(column: Column, obj: Obj, counts: Counts) -> Any:
    value = column.cell(obj, counts)
    return re.sub(r"[\r\n]+", " ", value) if isinstance(value, str) else value


def _definition(column: Column) -> Obj:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": 1 if column.wide else 0,
    }
