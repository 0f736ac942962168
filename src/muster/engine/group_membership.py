"""How a pod names its group on this server: by `spec.schedulingGroup`, by a label, or not at all.

Where the API has no `spec.schedulingGroup`, the label `scheduling.muster.dev/pod-group` stands for it. It is
read when the pod is first seen; labels can change and membership cannot, so a later change is reported
and otherwise ignored.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from muster.api.types import Pod, SchedulingGroup
from muster.engine.api_discovery import CRDS, NONE

LABEL = "scheduling.muster.dev/pod-group"

LabelChanged = Callable[[Pod, str], None]  # the pod, and what was ignored


class ByField:
    """The native API: `spec.schedulingGroup`."""

    def __call__(self, pod: Pod) -> Pod:
        return pod

    def forget(self, uid: str) -> None:
        """Nothing is remembered."""


class Ungrouped(ByField):
    """Groups are switched off or not served: the field is kept on the object and means nothing."""

    def __call__(self, pod: Pod) -> Pod:
        return pod if pod.spec.scheduling_group is None else _with_group(pod, "")


class ByLabel(ByField):
    """CRDs: the label as it was when the pod was first seen."""

    def __init__(self, label_changed: LabelChanged) -> None:
        self._first: dict[str, str] = {}
        self._changed: set[str] = set()
        self._label_changed = label_changed

    def __call__(self, pod: Pod) -> Pod:
        uid = pod.metadata.uid
        label = (pod.metadata.labels or {}).get(LABEL, "")
        first = self._first.setdefault(uid, label)
        if label == first:
            self._changed.discard(uid)
        elif uid not in self._changed:
            self._changed.add(uid)
            was, now = (f'"{name}"' if name else "no group" for name in (first, label))
            self._label_changed(pod, f"the label {LABEL} changed from {was} to {now}: the pod stays in {was}")
        return _with_group(pod, first)

    def forget(self, uid: str) -> None:
        self._first.pop(uid, None)
        self._changed.discard(uid)


def membership(groups: str, label_changed: LabelChanged) -> ByField:
    """How pods name their groups where groups are served this way."""
    if groups == CRDS:
        return ByLabel(label_changed)
    return Ungrouped() if groups == NONE else ByField()


def _with_group(pod: Pod, name: str) -> Pod:
    group = SchedulingGroup(name) if name else None
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_group=group))
