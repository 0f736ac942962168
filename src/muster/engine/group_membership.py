"""How a pod names its group on this server: by `spec.schedulingGroup`, by a label, by what it is, or not at all.

Where the API has no `spec.schedulingGroup`, the label `scheduling.muster.dev/pod-group` stands for it. It is
read when the pod is first seen; labels can change and membership cannot, so a later change is reported
and otherwise ignored.

Where groups are made for workloads, a pod of one of our schedulers that names no group is in the leaf that the rules of
`muster.api.membership` give it, again as it is first seen. Nothing is written on the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from muster.api.membership import facts_of_meta, leaf_of
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


class ByWorkload(ByField):
    """The native API; a pod of these schedulers that names no group is in that of its workload."""

    def __init__(self, derived_for: Collection[str]) -> None:
        self._derived_for = frozenset(derived_for)
        self._first: dict[str, str] = {}

    def __call__(self, pod: Pod) -> Pod:
        if pod.spec.scheduling_group is not None or pod.spec.scheduler_name not in self._derived_for:
            return pod
        uid = pod.metadata.uid
        name = self._first.get(uid)
        if name is None:
            name = self._first[uid] = leaf_of(facts_of_meta(pod.metadata))
        return _with_group(pod, name) if name else pod

    def forget(self, uid: str) -> None:
        self._first.pop(uid, None)


class Ungrouped(ByField):
    """Groups are switched off or not served: the field is kept on the object and means nothing."""

    def __call__(self, pod: Pod) -> Pod:
        return pod if pod.spec.scheduling_group is None else _with_group(pod, "")


class ByLabel(ByField):
    """CRDs: the label as it was when the pod was first seen, else the workload of a pod of these schedulers."""

    def __init__(self, label_changed: LabelChanged, derived_for: Collection[str] = ()) -> None:
        self._first: dict[str, str] = {}
        self._derived: dict[str, str] = {}  # groups of pods without the label
        self._changed: set[str] = set()
        self._label_changed = label_changed
        self._derived_for = frozenset(derived_for)

    def __call__(self, pod: Pod) -> Pod:
        uid = pod.metadata.uid
        label = (pod.metadata.labels or {}).get(LABEL, "")
        first = self._first.get(uid)
        if first is None:
            first = self._first[uid] = label
            if not label and pod.spec.scheduler_name in self._derived_for:
                self._derived[uid] = leaf_of(facts_of_meta(pod.metadata))
        if label == first:
            self._changed.discard(uid)
        elif uid not in self._changed:
            self._changed.add(uid)
            was, now = (f'"{name}"' if name else "no group" for name in (first, label))
            self._label_changed(pod, f"the label {LABEL} changed from {was} to {now}: the pod stays in {was}")
        return _with_group(pod, first or self._derived.get(uid, ""))

    def forget(self, uid: str) -> None:
        self._first.pop(uid, None)
        self._derived.pop(uid, None)
        self._changed.discard(uid)


def membership(groups: str, label_changed: LabelChanged, derived_for: Collection[str] = ()) -> ByField:
    """How pods name their groups where groups are served this way.

    `derived_for`: the schedulers whose pods are in the group of their workload where they name none.
    """
    if groups == CRDS:
        return ByLabel(label_changed, derived_for)
    if groups == NONE:
        return Ungrouped()
    return ByWorkload(derived_for) if derived_for else ByField()


def _with_group(pod: Pod, name: str) -> Pod:
    group = SchedulingGroup(name) if name else None
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_group=group))
