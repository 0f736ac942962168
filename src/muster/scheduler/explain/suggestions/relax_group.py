"""An easier demand: a wider domain, or a smaller minimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from muster.scheduler.cycle.evaluate import domains_of
from muster.scheduler.explain.explanation import Suggestion
from muster.scheduler.explain.suggestions.change_trial import ChangeTrial
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest
from muster.scheduler.state.scheduler_state import SchedulerState

MOST_GROUPS = 4


MOST_KEYS = 4


HOSTNAME = "kubernetes.io/hostname"


# --- topology --------------------------------------------------------------------------------------


def widen_topology(question: ChangeTrial) -> Iterator[Suggestion]:
    """A coarser label in place of the one that is too narrow, or none: of one group if that is enough."""
    groups = [demand for demand in _nodes(question.demand) if demand.topology]
    short = {shortage.group for shortage in question.shortages}
    groups.sort(key=lambda demand: demand.key not in short)
    found = False
    for group in groups[:MOST_GROUPS]:
        for suggestion in _widened(question, group.topology or "", {group.key}):
            found = True
            yield suggestion
    if found or len(groups) < 2:
        return
    for key in sorted({group.topology or "" for group in groups}):
        yield from _widened(question, key, {group.key for group in groups if group.topology == key})


def _widened(question: ChangeTrial, key: str, groups: set[EntityKey]) -> Iterator[Suggestion]:
    for coarser in [*_coarser_keys(question.world, key)[:MOST_KEYS], None]:
        if question.fits(_retopologised(question.world, question.demand, groups, coarser)):
            names = sorted(group.name for group in groups)
            whose = names[0] if len(names) == 1 else f"all {len(names)} groups that have it"
            text = (
                f"widen the constraint of {whose} from {key} to {coarser}"
                if coarser
                else f"drop the constraint of {whose} on {key}"
            )
            details: dict[str, str | int] = {"groups": ",".join(names), "from": key, "to": coarser or ""}
            yield Suggestion("widen-topology", text, details)
            return


def _nodes(demand: GroupRequest) -> Iterator[GroupRequest]:
    yield demand
    for child in demand.children if isinstance(demand, CompositeRequest) else ():
        yield from _nodes(child)


def _coarser_keys(world: SchedulerState, key: str) -> list[str]:
    """Labels whose domains are unions of this label's domains, the narrowest first."""
    fine = world.cluster.labels(key)
    keys = {k for node in world.cluster.node_objects.values() for k in node.metadata.labels or {}}
    found: list[tuple[bool, int, str]] = []
    for other in sorted(keys - {key, HOSTNAME}):
        coarse = world.cluster.labels(other)
        has_both = (fine > 0) & (coarse > 0)
        pairs = np.unique(np.stack([fine[has_both], coarse[has_both]]), axis=1)
        domains = len(np.unique(pairs[1]))
        if pairs.shape[1] == len(np.unique(pairs[0])) > domains >= 1:
            found.append((other.partition("/")[0] != key.partition("/")[0], -domains, other))
    return [other for _, _, other in sorted(found)]


def _retopologised(
    world: SchedulerState, demand: GroupRequest, groups: set[EntityKey], other: str | None
) -> GroupRequest:
    if demand.key in groups:
        domains = domains_of(world.forest.groups[demand.key], other, world.domain_of) if other else ()
        demand = replace(demand, topology=other, domains=domains)
    if isinstance(demand, PodGroupRequest):
        return demand
    return replace(demand, children=tuple(_retopologised(world, child, groups, other) for child in demand.children))


# --- minimums --------------------------------------------------------------------------------------


def lower_minimums(question: ChangeTrial) -> Iterator[Suggestion]:
    """A smaller minimum of one group, as large as fits: first of the groups that were short."""
    short = {shortage.group for shortage in question.shortages}
    groups = [demand for demand in _nodes(question.demand) if demand.key.kind != "Pod"]
    groups.sort(key=lambda demand: demand.key not in short)
    for group in groups[: 2 * MOST_GROUPS]:
        at_least = group.bound + 1 if isinstance(group, PodGroupRequest) else 1
        found = question.largest(
            at_least, group.minimum - 1, lambda k, key=group.key: _with_minimum(question.demand, key, k)
        )
        if found is not None:
            field = "minCount" if isinstance(group, PodGroupRequest) else "minGroupCount"
            text = f"lower {field} of {group.key.name} from {group.minimum} to {found}"
            yield Suggestion("lower-minimum", text, {"kind": group.key.kind, "group": group.key.name, field: found})


def _with_minimum(demand: GroupRequest, key: EntityKey, minimum: int) -> GroupRequest:
    if demand.key == key:
        return replace(demand, minimum=minimum)
    if isinstance(demand, PodGroupRequest):
        return demand
    return replace(demand, children=tuple(_with_minimum(child, key, minimum) for child in demand.children))
