"""Topology that is implied by affinity: members who must be near each other lie in one domain.

If all members of a leaf either require the company of one and the same pod of the leaf, or of their own
kind, and nobody outside the leaf could provide it, then the leaf lies in one domain of the term's key,
as if it had asked for it. Knowing this, counting can find or refute such a leaf.
"""

from __future__ import annotations

from dataclasses import replace

from muster.api.selectors import matches
from muster.api.types import Pod, PodAffinityTerm
from muster.scheduler.planning.goal import BranchGoal, Goal, LeafGoal, all_leaves
from muster.scheduler.planning.partial_placement import PartialPlacement


class ImpliedTopology:
    """A goal with the implied domains made explicit. `origin` leads back to the groups of the real goal."""

    def __init__(self, seating: PartialPlacement, goal: Goal) -> None:
        self.seating = seating
        self.root = goal
        self.origin: dict[int, Goal | None] = {}
        self.found = False
        self.goal = self._explicit(goal)

    def _explicit(self, goal: Goal) -> Goal:
        if isinstance(goal, LeafGoal):
            return self._leaf(goal)
        children = tuple(self._explicit(child) for child in goal.open)
        copy = replace(goal, open=children, signature=("implied", goal.signature))
        self.origin[id(copy)] = goal
        return copy

    def _leaf(self, leaf: LeafGoal) -> Goal:
        self.origin[id(leaf)] = leaf
        wrapped: Goal = leaf
        for key in self._keys(leaf):
            self.found = True
            signature = ("implied", key, wrapped.signature)
            wrapped = BranchGoal(leaf.key, 1, 0, (wrapped,), (), key, None, signature)
            self.origin[id(wrapped)] = None
        return wrapped

    def _keys(self, leaf: LeafGoal) -> list[str]:
        """The keys of which the leaf must lie in one domain."""
        pods = [(self.seating.shapes[lot.shape].pod, lot.count) for lot in leaf.lots]
        terms = list(dict.fromkeys(repr(term) for pod, _ in pods for term in _terms(pod)))
        by_text = {repr(term): (term, pod) for pod, _ in pods for term in _terms(pod)}
        return [by_text[text][0].topology_key for text in terms if self._binds(leaf, pods, *by_text[text])]

    def _binds(self, leaf: LeafGoal, pods: list[tuple[Pod, int]], term: PodAffinityTerm, owner: Pod) -> bool:
        if term.namespaces or term.namespace_selector or term.match_label_keys or term.mismatch_label_keys:
            return False
        seekers = [(pod, count) for pod, count in pods if _terms(pod) == (term,)]
        friends = [(pod, count) for pod, count in pods if _selects(term, owner, pod)]
        if any((pod, count) not in seekers and (pod, count) not in friends for pod, count in pods):
            return False
        own_kind = all(pair in seekers for pair in friends) and all(pair in friends for pair in seekers)
        one_friend = not any(pair in seekers for pair in friends) and sum(count for _, count in friends) == 1
        return (own_kind or one_friend) and not self._company_elsewhere(leaf, term, owner)

    def _company_elsewhere(self, leaf: LeafGoal, term: PodAffinityTerm, owner: Pod) -> bool:
        """Whether a running pod, or a member of another leaf, is meant by the term as well."""
        shapes, trial = self.seating.shapes, self.seating.trial
        for other in all_leaves(self.root):
            if other is not leaf and any(_selects(term, owner, shapes[lot.shape].pod) for lot in other.lots):
                return True
        if self.seating.count:  # pods of this plan sit already: any of them could be meant
            return True
        running = trial.cluster.pods.items()
        return any(uid not in trial.evicted and _selects(term, owner, entry.pod) for uid, entry in running)


def _terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    side = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def _selects(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    same = owner.metadata.namespace == other.metadata.namespace
    return same and matches(term.label_selector, other.metadata.labels)
