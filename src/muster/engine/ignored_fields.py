"""The fields of groups that the scheduler is not shown, because the gate they belong to is off.

The stored object keeps them: who switches the gate on again finds everything as it was. What is hidden here is also
missing in the decision log, so that a replay needs no gates for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from muster.api.gates import COMPOSITE, PREEMPTION_POLICY, TOPOLOGY, FeatureGates

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
