"""Which leaves the pods of a cluster name, and for which workload: counted, so that each is known from its first pod
to its last.

Pure. A pod counts while it has not ended; what it names is read when it is first seen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.api.membership import Facts, LeafRule, WorkloadKey, facts_of_meta, leaf_name, rule_for
from muster.controllers.objects import PodView


class LeafKey(NamedTuple):
    namespace: str
    name: str


class OwnerKey(NamedTuple):
    """A workload object, by what pods say of it."""

    namespace: str
    workload: WorkloadKey


@dataclass(slots=True)
class SeenLeaf:
    """A leaf that pods name."""

    rule: LeafRule
    owner: OwnerKey | None
    pods: dict[str, Facts] = field(default_factory=dict[str, Facts])  # by name, those that have not ended

    @property
    def facts(self) -> Facts:
        return next(iter(self.pods.values()))


class SeenLeaves:
    """All leaves that pods of these schedulers name by what they are."""

    def __init__(self, schedulers: Collection[str]) -> None:
        self._schedulers = frozenset(schedulers)
        self._leaves: dict[LeafKey, SeenLeaf] = {}
        self._of_pod: dict[tuple[str, str], tuple[str, LeafKey | None]] = {}  # uid and leaf, by namespace and name
        self._of_owner: dict[OwnerKey, set[LeafKey]] = {}

    def __contains__(self, leaf: LeafKey) -> bool:
        return leaf in self._leaves

    def get(self, leaf: LeafKey) -> SeenLeaf | None:
        return self._leaves.get(leaf)

    def count(self, leaf: LeafKey) -> int:
        found = self._leaves.get(leaf)
        return len(found.pods) if found is not None else 0

    def of(self, owner: OwnerKey) -> Mapping[str, Facts]:
        """The leaves of a workload, each with one of its pods."""
        return {leaf.name: self._leaves[leaf].facts for leaf in self._of_owner.get(owner, ())}

    def named_by(self, namespace: str, name: str) -> LeafKey | None:
        """The leaf of a pod that is counted."""
        known = self._of_pod.get((namespace, name))
        return known[1] if known is not None else None

    def change(self, old: PodView | None, new: PodView | None) -> LeafKey | None:
        """Take in a pod as it was and as it is; the leaf whose count has changed, if one has."""
        pod = new if new is not None else old
        assert pod is not None
        place = (pod.metadata.namespace, pod.metadata.name)
        known = self._of_pod.get(place)
        left: LeafKey | None = None
        if known is not None and (new is None or new.finished or known[0] != new.metadata.uid):
            left = self._remove(place, known[1])
            known = None
        if new is None or new.finished or known is not None:
            return left
        return self._add(place, new) or left

    def _add(self, place: tuple[str, str], pod: PodView) -> LeafKey | None:
        facts, leaf = facts_of_meta(pod.metadata), None
        rule = rule_for(facts) if pod.spec.scheduler_name in self._schedulers else None
        name = leaf_name(rule, facts) if rule is not None else ""
        group = pod.spec.scheduling_group
        if rule is not None and rule.is_ours and name and (group is None or group.pod_group_name == name):
            leaf = LeafKey(place[0], name)
            found = self._leaves.get(leaf)
            if found is None:
                workload = rule.workload_of(facts)
                owner = OwnerKey(place[0], workload) if workload is not None else None
                found = self._leaves[leaf] = SeenLeaf(rule, owner)
                if owner is not None:
                    self._of_owner.setdefault(owner, set()).add(leaf)
            found.pods[place[1]] = facts
        self._of_pod[place] = (pod.metadata.uid, leaf)
        return leaf

    def _remove(self, place: tuple[str, str], leaf: LeafKey | None) -> LeafKey | None:
        del self._of_pod[place]
        if leaf is None:
            return None
        found = self._leaves[leaf]
        found.pods.pop(place[1], None)
        if not found.pods:
            del self._leaves[leaf]
            if found.owner is not None:
                leaves = self._of_owner[found.owner]
                leaves.discard(leaf)
                if not leaves:
                    del self._of_owner[found.owner]
        return leaf
