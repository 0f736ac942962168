"""Which pods a rule means: affinity terms and spread selectors compiled to values that can be compared.

A `Term` says everything about the pods it selects: namespaces, a namespace selector, label conditions.
Two rules that mean the same pods have equal terms and share one tally.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.api.selectors import Requirement, all_satisfied, requirements
from muster.api.types import LabelSelector, Pod, PodAffinityTerm, TopologySpreadConstraint

Conditions = tuple[Requirement, ...]


class PodTerm(NamedTuple):
    """The pods that are meant. Without `conditions` (None) no pod is; empty conditions mean every pod."""

    namespaces: frozenset[str]
    namespace_conditions: Conditions | None
    conditions: Conditions | None

    def selects(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None) -> bool:
        if self.conditions is None:
            return False
        if namespace not in self.namespaces and (
            self.namespace_conditions is None or not all_satisfied(self.namespace_conditions, namespace_labels)
        ):
            return False
        return all_satisfied(self.conditions, labels)

    def keys(self) -> Iterable[str]:
        """The label keys of pods that the term looks at."""
        return (condition.key for condition in self.conditions or ())


def conditions_of(selector: LabelSelector | None) -> Conditions | None:
    """A label selector in a form that is equal when it means the same; None where it can match nothing."""
    if selector is None:
        return None
    found = requirements(selector)
    if any(wanted.operator not in ("In", "NotIn", "Exists", "DoesNotExist") for wanted in found):
        return None
    return normal(found)


def normal(conditions: Iterable[Requirement]) -> Conditions:
    return tuple(sorted({Requirement(key, op, tuple(sorted(set(values)))) for key, op, values in conditions}))


def affinity_term(term: PodAffinityTerm, pod: Pod) -> PodTerm:
    """The pods an affinity term of `pod` means, with its match and mismatch label keys filled in."""
    conditions = conditions_of(term.label_selector)
    labels = pod.metadata.labels or {}
    if conditions is not None:
        same = [Requirement(key, "In", (labels[key],)) for key in term.match_label_keys or () if key in labels]
        other = [Requirement(key, "NotIn", (labels[key],)) for key in term.mismatch_label_keys or () if key in labels]
        conditions = normal((*conditions, *same, *other))
    namespaces = frozenset(term.namespaces or ())
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((pod.metadata.namespace,))
    return PodTerm(namespaces, conditions_of(term.namespace_selector), conditions)


def spread_term(constraint: TopologySpreadConstraint, pod: Pod) -> PodTerm:
    """The pods a spread constraint of `pod` counts."""
    conditions = conditions_of(constraint.label_selector)
    labels = pod.metadata.labels or {}
    if conditions is not None:
        same = [Requirement(key, "In", (labels[key],)) for key in constraint.match_label_keys or () if key in labels]
        conditions = normal((*conditions, *same))
    return PodTerm(frozenset((pod.metadata.namespace,)), None, conditions)
