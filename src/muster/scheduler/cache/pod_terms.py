"""Pod terms: pod affinity terms and the selectors of spread constraints, compiled to values that can be compared.

Terms that select the same namespaces and labels are equal, so all plugins and pods that use them share one pod count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.api.selectors import Requirement, all_satisfied, requirements
from muster.api.types import LabelSelector, Pod, PodAffinityTerm, TopologySpreadConstraint

Requirements = tuple[Requirement, ...]


class PodTerm(NamedTuple):
    """Selects pods by namespace and labels. `requirements` None selects no pod, empty requirements select every pod.

    A pod's namespace must be one of `namespaces` or match `namespace_requirements`.
    """

    namespaces: frozenset[str]
    namespace_requirements: Requirements | None
    requirements: Requirements | None

    def selects(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None) -> bool:
        if self.requirements is None:
            return False
        if namespace not in self.namespaces and (
            self.namespace_requirements is None or not all_satisfied(self.namespace_requirements, namespace_labels)
        ):
            return False
        return all_satisfied(self.requirements, labels)

    def keys(self) -> Iterable[str]:
        """The keys of pod labels that the term reads."""
        return (required.key for required in self.requirements or ())


def requirements_of(selector: LabelSelector | None) -> Requirements | None:
    """The requirements of a label selector in normal form; None for no selector or an unknown operator."""
    if selector is None:
        return None
    found = requirements(selector)
    if any(required.operator not in ("In", "NotIn", "Exists", "DoesNotExist") for required in found):
        return None
    return normalized(found)


def normalized(found: Iterable[Requirement]) -> Requirements:
    """Sorted and without duplicates, so that equal selections are equal values."""
    return tuple(sorted({Requirement(key, op, tuple(sorted(set(values)))) for key, op, values in found}))


def affinity_term(term: PodAffinityTerm, pod: Pod) -> PodTerm:
    """The pods that an affinity term of `pod` selects, with matchLabelKeys and mismatchLabelKeys resolved."""
    found = requirements_of(term.label_selector)
    labels = pod.metadata.labels or {}
    if found is not None:
        same = [Requirement(key, "In", (labels[key],)) for key in term.match_label_keys or () if key in labels]
        other = [Requirement(key, "NotIn", (labels[key],)) for key in term.mismatch_label_keys or () if key in labels]
        found = normalized((*found, *same, *other))
    namespaces = frozenset(term.namespaces or ())
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((pod.metadata.namespace,))
    return PodTerm(namespaces, requirements_of(term.namespace_selector), found)


def spread_term(constraint: TopologySpreadConstraint, pod: Pod) -> PodTerm:
    """The pods that a topologySpreadConstraint of `pod` counts, with matchLabelKeys resolved."""
    found = requirements_of(constraint.label_selector)
    labels = pod.metadata.labels or {}
    if found is not None:
        same = [Requirement(key, "In", (labels[key],)) for key in constraint.match_label_keys or () if key in labels]
        found = normalized((*found, *same))
    return PodTerm(frozenset((pod.metadata.namespace,)), None, found)
