"""Converts events between core/v1, in which they are stored, and events.k8s.io/v1.

The two name the same facts differently: involvedObject and regarding, message and note, reportingComponent and
reportingController; firstTimestamp, lastTimestamp and count of core/v1 are deprecated fields of events.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Callable

from muster.server.resources.columns import at
from muster.server.resources.kind import AlternateVersion, Obj

_CORE_TO_EVENTS = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_EVENTS_TO_CORE = {new: old for old, new in _CORE_TO_EVENTS.items()}


def _renamed(obj: Obj, names: dict[str, str], api_version: str) -> Obj:
    shown = {names.get(name, name): value for name, value in obj.items()}
    shown["apiVersion"] = api_version
    return shown


def to_core(obj: Obj) -> Obj:
    """An event of events.k8s.io/v1 as it is stored."""
    stored = _renamed(obj, _EVENTS_TO_CORE, "v1")
    stored.setdefault("involvedObject", {})
    return stored


def to_events(obj: Obj) -> Obj:
    """A stored event as events.k8s.io/v1 shows it."""
    shown = _renamed(obj, _CORE_TO_EVENTS, "events.k8s.io/v1")
    shown.setdefault("eventTime", None)
    # A reporter that writes core/v1 says who it is in `source` only.
    if not shown.get("reportingController"):
        component = at(shown, "deprecatedSource", "component")
        if component:
            shown["reportingController"] = component
    return shown


EVENTS_V1 = AlternateVersion(table="events", api_version="v1", to_storage=to_core, to_version=to_events)

# (name in core/v1, name in events.k8s.io/v1, where it is stored)
_FIELDS = (
    ("involvedObject.kind", "regarding.kind", ("involvedObject", "kind")),
    ("involvedObject.namespace", "regarding.namespace", ("involvedObject", "namespace")),
    ("involvedObject.name", "regarding.name", ("involvedObject", "name")),
    ("involvedObject.uid", "regarding.uid", ("involvedObject", "uid")),
    ("involvedObject.apiVersion", "regarding.apiVersion", ("involvedObject", "apiVersion")),
    ("involvedObject.resourceVersion", "regarding.resourceVersion", ("involvedObject", "resourceVersion")),
    ("involvedObject.fieldPath", "regarding.fieldPath", ("involvedObject", "fieldPath")),
    ("reason", "reason", ("reason",)),
    ("reportingComponent", "reportingController", ("reportingComponent",)),
    ("source", "deprecatedSource", ("source", "component")),
    ("type", "type", ("type",)),
)


def _reader(path: tuple[str, ...]) -> Callable[[Obj], str]:
    return lambda obj: str(at(obj, *path) or "")


CORE_FIELDS = {name: _reader(path) for name, _, path in _FIELDS}
EVENTS_FIELDS = {name: _reader(path) for _, name, path in _FIELDS}
