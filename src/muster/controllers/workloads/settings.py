"""What the controller of workloads is told: for which schedulers, and where groups are served."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, WORKLOADS, Resource

UNKNOWN_AFTER = 30.0


@dataclass(frozen=True, slots=True)
class WorkloadSettings:
    """`discovers`: the kinds of others are looked for again and again; else the manager's collections tell of them."""

    schedulers: tuple[str, ...]
    pod_groups: Resource = POD_GROUPS
    composites: Resource | None = COMPOSITE_POD_GROUPS
    workloads: Resource | None = WORKLOADS
    discovers: bool = False
    unknown_after: float = UNKNOWN_AFTER  # how long pods wait for a group that nobody explains


def settings_for(
    schedulers: tuple[str, ...], served: tuple[Resource, ...], *, discovers: bool
) -> WorkloadSettings | None:
    """The settings where the server has these group kinds; None where it has none."""
    by_kind = {each.kind: each for each in served}
    if POD_GROUPS.kind not in by_kind:
        return None
    return WorkloadSettings(
        schedulers,
        by_kind[POD_GROUPS.kind],
        by_kind.get(COMPOSITE_POD_GROUPS.kind),
        by_kind.get(WORKLOADS.kind),
        discovers,
    )
