"""The groups and fields of groups that the scheduler is not shown, because the gate they belong to is off.

The stored object keeps them: who switches the gate on again finds everything as it was. What is hidden here is also
missing in the decision log, so that a replay needs no gates for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from muster.api.gates import COMPOSITE, GANG_SCHEDULING, PREEMPTION_POLICY, TOPOLOGY, FeatureGates
from muster.scheduler.interface.events import ObjectUpdated

_GATED = {
    COMPOSITE: "parent_composite_pod_group_name",  # without trees, a child is a group of its own
    TOPOLOGY: "scheduling_constraints",
    PREEMPTION_POLICY: "preemption_policy",
}


def hide_gated_fields(gates: FeatureGates) -> Callable[[Any], Any] | None:
    """What is done to a PodGroup or CompositePodGroup before the scheduler sees it; None if nothing is hidden."""
    hidden = dict.fromkeys(field for gate, field in _GATED.items() if not gates.enabled(gate))
    if not hidden:
        return None

    def without(group: Any) -> Any:
        spec = group.spec
        if all(getattr(spec, field) is None for field in hidden):
            return group
        return msgspec.structs.replace(group, spec=msgspec.structs.replace(spec, **hidden))

    return without


def visible_events(events: Iterable[ObjectUpdated], gates: FeatureGates) -> Iterator[ObjectUpdated]:
    """Of the objects of a whole cluster, those that a scheduler with these gates is shown, as it is shown them."""
    ignored = _ignored_kinds(gates)
    hide = hide_gated_fields(gates)
    for event in events:
        if event.kind not in ignored:
            is_group = event.kind in ("PodGroup", "CompositePodGroup")
            yield ObjectUpdated(event.kind, hide(event.object)) if hide is not None and is_group else event


def _ignored_kinds(gates: FeatureGates) -> tuple[str, ...]:
    if not gates.enabled(GANG_SCHEDULING):
        return ("PodGroup", "CompositePodGroup", "Workload")
    return () if gates.enabled(COMPOSITE) else ("CompositePodGroup",)
