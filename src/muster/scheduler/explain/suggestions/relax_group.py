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
    groups = [request for request in _nodes(question.request) if request.topology]
    short = {shortage.group for shortage in question.shortages}
    groups.sort(key=lambda request: request.key not in short)
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
    for coarser in [*_coarser_keys(question.state, key)[:MOST_KEYS], None]:
        if question.fits(_retopologised(question.state, question.request, groups, coarser)):
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


def _nodes(request: GroupRequest) -> Iterator[GroupRequest]:
    yield request
    for child in request.children if isinstance(request, CompositeRequest) else ():
        yield from _nodes(child)


def _coarser_keys(state: SchedulerState, key: str) -> list[str]:
    """Labels whose domains are unions of this label's domains, the narrowest first."""
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


def _retopologised(
    state: SchedulerState, request: GroupRequest, groups: set[EntityKey], other: str | None
) -> GroupRequest:
    if request.key in groups:
        domains = domains_of(state.forest.groups[request.key], other, state.domain_of) if other else ()
        request = replace(request, topology=other, domains=domains)
    if isinstance(request, PodGroupRequest):
        return request
    return replace(request, children=tuple(_retopologised(state, child, groups, other) for child in request.children))


# --- minimums --------------------------------------------------------------------------------------


def lower_minimums(question: ChangeTrial) -> Iterator[Suggestion]:
    """A smaller minimum of one group, as large as fits: first of the groups that were short."""
    short = {shortage.group for shortage in question.shortages}
    groups = [request for request in _nodes(question.request) if request.key.kind != "Pod"]
    groups.sort(key=lambda request: request.key not in short)
    for group in groups[: 2 * MOST_GROUPS]:
        at_least = group.bound + 1 if isinstance(group, PodGroupRequest) else 1
        found = question.largest(
            at_least, group.minimum - 1, lambda k, key=group.key: _with_minimum(question.request, key, k)
        )
        if found is not None:
            field = "minCount" if isinstance(group, PodGroupRequest) else "minGroupCount"
            text = f"lower {field} of {group.key.name} from {group.minimum} to {found}"
            yield Suggestion("lower-minimum", text, {"kind": group.key.kind, "group": group.key.name, field: found})


def _with_minimum(request: GroupRequest, key: EntityKey, minimum: int) -> GroupRequest:
    if request.key == key:
        return replace(request, minimum=minimum)
    if isinstance(request, PodGroupRequest):
        return request
    return replace(request, children=tuple(_with_minimum(child, key, minimum) for child in request.children))
