"""Changes of groups: a wider topology constraint, or a smaller minimum.

A constraint is fixed when the group is created; whether a minimum is, depends on the server.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muster.scheduler.cycle.evaluate import domains_of
from muster.scheduler.explain.explanation import Suggestion
from muster.scheduler.explain.suggestions.change_trial import ChangeTrial
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, groups, rebuilt
from muster.scheduler.state.scheduler_state import SchedulerState

MOST_GROUPS = 4
MOST_KEYS = 4
HOSTNAME = "kubernetes.io/hostname"


# --- topology --------------------------------------------------------------------------------------


def widen_topology(trial: ChangeTrial) -> Iterator[Suggestion]:
    """A coarser label key for a topology constraint, or none: for one group if that is enough."""
    constrained = [group for group in groups(trial.request) if group.topology]
    short = {shortage.group for shortage in trial.shortages}
    constrained.sort(key=lambda group: group.key not in short)
    found = False
    for group in constrained[:MOST_GROUPS]:
        for suggestion in _widened(trial, group.topology, {group.key}):
            found = True
            yield suggestion
    if found or len(constrained) < 2:
        return
    for key in sorted({group.topology for group in constrained}):
        yield from _widened(trial, key, {group.key for group in constrained if group.topology == key})


def _widened(trial: ChangeTrial, key: str, keys: set[EntityKey]) -> Iterator[Suggestion]:
    for coarser in [*_coarser_keys(trial.state, key)[:MOST_KEYS], ""]:
        if trial.fits(_with_topology(trial.state, trial.request, keys, coarser)):
            names = sorted(each.name for each in keys)
            whose = names[0] if len(names) == 1 else f"all {len(names)} groups that have it"
            text = (
                f"widen the constraint of {whose} from {key} to {coarser}"
                if coarser
                else f"drop the constraint of {whose} on {key}"
            )
            details: dict[str, str | int] = {"groups": ",".join(names), "from": key, "to": coarser}
            anew = ",".join(names)
            text += f": {'it' if len(names) == 1 else 'they'} must be made anew with it"
            yield Suggestion("widen-topology", text, details, anew)
            return


def _coarser_keys(state: SchedulerState, key: str) -> list[str]:
    """Label keys whose domains are unions of this key's domains, the narrowest first."""
    fine = state.cluster.labels(key)
    keys = {k for node in state.cluster.node_objects.values() for k in node.metadata.labels or {}}
    found: list[tuple[bool, int, str]] = []
    for other in sorted(keys - {key, HOSTNAME}):
        coarse = state.cluster.labels(other)
        has_both = (fine > 0) & (coarse > 0)
        pairs = np.unique(np.stack([fine[has_both], coarse[has_both]]), axis=1)
        domains = len(np.unique(pairs[1]))
        if pairs.shape[1] == len(np.unique(pairs[0])) > domains >= 1:
            found.append((other.partition("/")[0] != key.partition("/")[0], -domains, other))
    return [other for _, _, other in sorted(found)]


def _with_topology(state: SchedulerState, request: GroupRequest, keys: set[EntityKey], topology: str) -> GroupRequest:
    def change(group: GroupRequest) -> GroupRequest:
        if group.key not in keys:
            return group
        domains = domains_of(state.forest.groups[group.key], topology, state.domain_of) if topology else ()
        return group.with_topology(topology, domains)

    return rebuilt(request, change)


# --- minimums --------------------------------------------------------------------------------------


def lower_minimums(trial: ChangeTrial) -> Iterator[Suggestion]:
    """A smaller minimum of one group, as large as fits: first of the groups that were short."""
    short = {shortage.group for shortage in trial.shortages}
    candidates = [group for group in groups(trial.request) if group.key.kind != "Pod"]
    candidates.sort(key=lambda group: group.key not in short)
    for group in candidates[: 2 * MOST_GROUPS]:
        at_least = group.bound + 1 if isinstance(group, PodGroupRequest) else 1
        found = trial.largest(
            at_least, group.minimum - 1, lambda k, key=group.key: _with_minimum(trial.request, key, k)
        )
        if found is not None:
            field = "minCount" if isinstance(group, PodGroupRequest) else "minGroupCount"
            text = f"lower {field} of {group.key.name} from {group.minimum} to {found}"
            anew = "" if field in trial.changeable else group.key.name
            text += ": it must be made anew, the server does not let the number change" if anew else ""
            details: dict[str, str | int] = {"kind": group.key.kind, "group": group.key.name, field: found}
            yield Suggestion("lower-minimum", text, details, anew)


def _with_minimum(request: GroupRequest, key: EntityKey, minimum: int) -> GroupRequest:
    return rebuilt(request, lambda group: group.with_minimum(minimum) if group.key == key else group)
