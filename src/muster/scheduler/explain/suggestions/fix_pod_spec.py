"""Changes of pod specs: a label that no node has replaced by one like it, and a taint tolerated."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from muster.api import types
from muster.scheduler.explain.explanation import Suggestion
from muster.scheduler.explain.suggestions.change_trial import ChangeTrial
from muster.scheduler.explain.suggestions.more_capacity import OUT_OF_SERVICE
from muster.scheduler.placement.request import GroupRequest, PendingPod, PodGroupRequest, rebuilt, shapes_of
from muster.scheduler.runtime.profile import profile_of
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.messages import count_text

MOST_OF_A_KIND = 2
MOST_ALIKE = 3
ALIKE = 0.8  # similarity ratio (difflib) from which on label keys count as alike
Taint = tuple[str, str, str]
Label = tuple[str, str]


# --- labels ----------------------------------------------------------------------------------------


def fix_selectors(trial: ChangeTrial) -> Iterator[Suggestion]:
    """A selector for a label that exists on no node, where a similar label exists."""
    state = trial.state
    for key, value in sorted(_asked_for(trial.request)):
        if _nodes_with(state, (key, value)):
            continue
        for other in _alike(state, (key, value)):
            request = _with_pods(state, trial.request, _Reselect((key, value), other))
            if trial.fits(request):
                nodes = _nodes_with(state, other)
                yield Suggestion(
                    "fix-selector",
                    f"select another label: {key}={value} exists on no node, {other[0]}={other[1]} on {nodes}; "
                    "its pods must be made anew with it",
                    {"label": f"{key}={value}", "instead": f"{other[0]}={other[1]}", "nodes": nodes},
                    "pods",
                )
                break


def _asked_for(request: GroupRequest) -> set[Label]:
    """The labels that pods require of their node."""
    found: set[Label] = set()
    for shape in shapes_of(request).values():
        spec = shape.pod.spec
        found |= set((spec.node_selector or {}).items())
        for term in _terms(spec):
            for each in term.match_expressions or ():
                if each.operator == "In" and len(each.values or ()) == 1:
                    found.add((each.key, (each.values or ("",))[0]))
    return found


def _terms(spec: types.PodSpec) -> tuple[types.NodeSelectorTerm, ...]:
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    required = node.required_during_scheduling_ignored_during_execution if node is not None else None
    return tuple(required.node_selector_terms or ()) if required is not None else ()


def _nodes_with(state: SchedulerState, label: Label) -> int:
    number = state.cluster.label_id(*label)
    column = state.cluster.labels(label[0])
    return int(((column == number) & state.cluster.alive[: len(column)]).sum()) if number else 0


def _alike(state: SchedulerState, label: Label) -> list[Label]:
    """Labels that may have been meant: the same letters, then other values of the key, then keys like it."""
    key, value = label
    same_key = [(key, other) for other in _values(state, key)]
    same_key.sort(key=lambda found: (found[1].lower() != value.lower(), -_nodes_with(state, found), found))
    keys = {k for node in state.cluster.node_objects.values() for k in node.metadata.labels or {}} - {key}
    near = [k for k in sorted(keys) if difflib.SequenceMatcher(None, k.lower(), key.lower()).ratio() >= ALIKE]
    other_key = [(k, other) for k in near for other in _values(state, k) if other.lower() == value.lower()]
    return (same_key[:MOST_ALIKE] + other_key)[: 2 * MOST_ALIKE]


def _values(state: SchedulerState, key: str) -> list[str]:
    column = state.cluster.labels(key)
    numbers = np.unique(column[state.cluster.alive[: len(column)]])
    return [state.cluster.label_value(key, int(number)) for number in numbers if number]


class _Reselect:
    """Another label in place of one, wherever the pod requires it."""

    def __init__(self, label: Label, other: Label) -> None:
        self.label, self.other = label, other

    def __call__(self, spec: types.PodSpec) -> types.PodSpec:
        selector = dict(self.other if item == self.label else item for item in (spec.node_selector or {}).items())
        spec = msgspec.structs.replace(spec, node_selector=selector)
        if not _terms(spec):
            return spec
        assert spec.affinity is not None
        assert spec.affinity.node_affinity is not None
        required = types.NodeSelector(tuple(self._term(term) for term in _terms(spec)))
        node = msgspec.structs.replace(
            spec.affinity.node_affinity, required_during_scheduling_ignored_during_execution=required
        )
        return msgspec.structs.replace(spec, affinity=msgspec.structs.replace(spec.affinity, node_affinity=node))

    def _term(self, term: types.NodeSelectorTerm) -> types.NodeSelectorTerm:
        changed = tuple(
            msgspec.structs.replace(each, key=self.other[0], values=(self.other[1],))
            if (each.key, *(each.values or ())) == self.label
            else each
            for each in term.match_expressions or ()
        )
        return msgspec.structs.replace(term, match_expressions=changed)


# --- taints ----------------------------------------------------------------------------------------


def tolerate_taints(trial: ChangeTrial) -> Iterator[Suggestion]:
    """A taint without which the pods would fit."""
    state = trial.state
    nodes: dict[Taint, int] = {}
    for node in state.cluster.node_objects.values():
        for taint in node.spec.taints or ():
            if taint.effect in ("NoSchedule", "NoExecute") and taint.key not in OUT_OF_SERVICE:
                found = (taint.key, taint.value or "", taint.effect)
                nodes[found] = nodes.get(found, 0) + 1
    given = 0
    for (key, value, effect), count in sorted(nodes.items(), key=lambda item: (-item[1], item[0])):
        toleration = types.Toleration(key=key, operator="Equal", value=value, effect=effect)
        request = _with_pods(state, trial.request, _Tolerate(toleration))
        if given < MOST_OF_A_KIND and trial.fits(request):
            given += 1
            text = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
            yield Suggestion(
                "tolerate-taint",
                f"let its pods tolerate the taint {text}, which {count_text(count, 'node')} "
                f"{'has' if count == 1 else 'have'}",
                {"taint": text, "key": key, "value": value, "effect": effect, "nodes": count},
            )


class _Tolerate:
    """The toleration added to a pod."""

    def __init__(self, toleration: types.Toleration) -> None:
        self.toleration = toleration

    def __call__(self, spec: types.PodSpec) -> types.PodSpec:
        return msgspec.structs.replace(spec, tolerations=(*(spec.tolerations or ()), self.toleration))


# --- changed pods ----------------------------------------------------------------------------------


def _with_pods(
    state: SchedulerState, request: GroupRequest, change: Callable[[types.PodSpec], types.PodSpec]
) -> GroupRequest:
    """The request with every pod changed."""

    def changed(member: PendingPod) -> PendingPod:
        pod = member.shape.pod
        other = msgspec.structs.replace(pod, spec=change(pod.spec))
        return msgspec.structs.replace(member, shape=state.evaluator.shape(other, profile_of(member.shape)))

    def with_pods(group: GroupRequest) -> GroupRequest:
        return group.with_members(tuple(map(changed, group.members))) if isinstance(group, PodGroupRequest) else group

    return rebuilt(request, with_pods)
