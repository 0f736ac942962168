"""Topology constraints that follow from required pod affinity.

If every pod of a PodGroup either requires to be near one particular pod of the group, or near pods of its own shape,
and no pod outside the group matches the term, then the whole group is in one domain of the term's topology key, as if
it had a topology constraint with that key. With the constraint made explicit, counting can place or refute such a
group.
"""

from __future__ import annotations

from muster.api.selectors import matches
from muster.api.types import Pod, PodAffinityTerm
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest, admissible_leaves
from muster.scheduler.planning.partial_placement import PartialPlacement


class ImpliedTopology:
    """A request with the implied constraints made explicit; `original` leads back to the groups of the real one."""

    def __init__(self, placement: PartialPlacement, request: GroupRequest) -> None:
        self.placement = placement
        self.root = request
        self.found = False
        self.request = self._explicit(request)

    @staticmethod
    def original(request: GroupRequest) -> GroupRequest | None:
        """The group that a group of the explicit request stands for; None for a constraint that was added."""
        return request if isinstance(request, PodGroupRequest) else request.variant_of

    def _explicit(self, request: GroupRequest) -> GroupRequest:
        if isinstance(request, PodGroupRequest):
            return self._constrained(request)
        return request.with_need(request.need, tuple(self._explicit(child) for child in request.open))

    def _constrained(self, leaf: PodGroupRequest) -> GroupRequest:
        """The PodGroup as the only child of a composite for each implied constraint."""
        request: GroupRequest = leaf
        for key in self._keys(leaf):
            self.found = True
            request = CompositeRequest(leaf.key, 1, (request,), key)
        return request

    def _keys(self, leaf: PodGroupRequest) -> list[str]:
        """The label keys of which the PodGroup must be in one domain."""
        pods = [(identical.shape.pod, identical.count) for identical in leaf.identical]
        terms = list(dict.fromkeys(repr(term) for pod, _ in pods for term in _terms(pod)))
        by_text = {repr(term): (term, pod) for pod, _ in pods for term in _terms(pod)}
        return [by_text[text][0].topology_key for text in terms if self._constrains(leaf, pods, *by_text[text])]

    def _constrains(
        self, leaf: PodGroupRequest, pods: list[tuple[Pod, int]], term: PodAffinityTerm, owner: Pod
    ) -> bool:
        if term.namespaces or term.namespace_selector or term.match_label_keys or term.mismatch_label_keys:
            return False
        requiring = [(pod, count) for pod, count in pods if _terms(pod) == (term,)]
        matching = [(pod, count) for pod, count in pods if _selects(term, owner, pod)]
        if any((pod, count) not in requiring and (pod, count) not in matching for pod, count in pods):
            return False
        own_shape = all(pair in requiring for pair in matching) and all(pair in matching for pair in requiring)
        one_pod = not any(pair in requiring for pair in matching) and sum(count for _, count in matching) == 1
        return (own_shape or one_pod) and not self._matched_elsewhere(leaf, term, owner)

    def _matched_elsewhere(self, leaf: PodGroupRequest, term: PodAffinityTerm, owner: Pod) -> bool:
        """Whether a running pod, or a pod of another PodGroup, matches the term as well."""
        for other in admissible_leaves(self.root):
            if other is not leaf and any(_selects(term, owner, pods.shape.pod) for pods in other.identical):
                return True
        if self.placement.count:  # any of the pods that this plan placed already could match
            return True
        trial = self.placement.trial
        running = trial.cluster.pods.items()
        return any(uid not in trial.evicted and _selects(term, owner, entry.pod) for uid, entry in running)


def _terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    side = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def _selects(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    same = owner.metadata.namespace == other.metadata.namespace
    return same and matches(term.label_selector, other.metadata.labels)
