"""Rules between pods, judged from the objects: affinity, anti-affinity both ways, hard spreading.

Seats are looked at in the order in which they were taken, because required affinity is a rule about
the moment: the first pod of a group that wants its own company has nobody to join yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from muster.api.selectors import first_untolerated, matches, node_matches
from muster.api.types import Node, Pod, PodAffinityTerm, TopologySpreadConstraint
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import CarriedTerm

PodOnNode = tuple[Pod, Node]


def anti_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    side = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def affinity_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    side = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def spread_terms(pod: Pod) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(c for c in pod.spec.topology_spread_constraints or () if c.when_unsatisfiable == "DoNotSchedule")


class RunningPods:
    """The pods that run already, for questions between pods."""

    def __init__(self, cluster: Cluster, evicted: frozenset[str]) -> None:
        self.cluster = cluster
        self.evicted = evicted

    def running(self) -> Iterator[PodOnNode]:
        nodes, names = self.cluster.node_objects, self.cluster.names
        for uid, entry in self.cluster.pods.items():
            if entry.slot >= 0 and uid not in self.evicted:
                yield entry.pod, nodes[names[entry.slot]]

    def repelling(self, near: Collection[int] | None = None, others: Iterable[Pod] = ()) -> Iterator[PodOnNode]:
        """The running pods that keep others away: all, or those in one domain with the slots of `near`.

        The cluster's tallies only say on which nodes to look; the pods there are judged by themselves.
        """
        slots: set[int] = set()
        homes = {pod.metadata.namespace for pod in others}
        for what, tally in self.cluster.pod_counts.carried():
            if not isinstance(what, CarriedTerm) or what.kind != "anti" or not tally.total:
                continue
            if near is not None and what.term.namespace_requirements is None and homes.isdisjoint(what.term.namespaces):
                continue
            there = tally.column[: self.cluster.size] > 0
            if near is not None:
                values = self.cluster.labels(what.topology)
                shared = np.zeros(int(values.max(initial=0)) + 1, dtype=bool)
                shared[values[list(near)]] = True
                there &= shared[values] & (values > 0)
            slots.update(there.nonzero()[0].tolist())
        for slot in sorted(slots):
            node = self.cluster.node_objects[self.cluster.names[slot]]
            for entry in self.cluster.pods_on(slot):
                if entry.pod.metadata.uid not in self.evicted and anti_terms(entry.pod):
                    yield entry.pod, node

    def selects(self, term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        """Whether a term of `owner` means `other`."""
        if not self._in_reach(term, owner, other.metadata.namespace):
            return False
        labels, own = other.metadata.labels or {}, owner.metadata.labels or {}
        for key in term.match_label_keys or ():
            if key in own and labels.get(key) != own[key]:
                return False
        for key in term.mismatch_label_keys or ():
            if key in own and labels.get(key) == own[key]:
                return False
        return matches(term.label_selector, labels)

    def _in_reach(self, term: PodAffinityTerm, owner: Pod, namespace: str) -> bool:
        if not term.namespaces and term.namespace_selector is None:
            return namespace == owner.metadata.namespace
        if namespace in (term.namespaces or ()):
            return True
        labels = self.cluster.pod_counts.namespaces.get(namespace)
        return term.namespace_selector is not None and matches(term.namespace_selector, labels)


def same_domain(key: str, one: Node, other: Node) -> bool:
    value = (one.metadata.labels or {}).get(key)
    return value is not None and value == (other.metadata.labels or {}).get(key)


def between_pods(
    company: RunningPods, seats: Sequence[PodOnNode], kinds: Mapping[int, Pod], guards: Sequence[PodOnNode]
) -> str | None:
    """The first breach of a rule between pods, in words.

    `kinds` are the distinct pods of the seats, `guards` the running pods nearby that keep others away.
    """
    fault = _kept_away(company, seats, kinds, guards)
    if fault is None and any(anti_terms(pod) for pod in kinds.values()):
        fault = _keeping_away(company, seats)
    if fault is None and any(affinity_terms(pod) for pod in kinds.values()):
        fault = _joined(company, seats)
    if fault is None and any(spread_terms(pod) for pod in kinds.values()):
        fault = _spread(company, seats)
    return fault


def _kept_away(
    company: RunningPods, seats: Sequence[PodOnNode], kinds: Mapping[int, Pod], guards: Sequence[PodOnNode]
) -> str | None:
    """A running pod does not want one of the new ones near."""
    for pod, node in guards:
        for term in anti_terms(pod):
            unwanted = {key for key, kind in kinds.items() if company.selects(term, pod, kind)}
            if not unwanted:
                continue
            for new, where in seats:
                if id(new) in unwanted and same_domain(term.topology_key, node, where):
                    return f"{new.metadata.name} on {where.metadata.name} is kept away by {pod.metadata.name}"
    return None


def _keeping_away(company: RunningPods, seats: Sequence[PodOnNode]) -> str | None:
    """A new pod does not want a running or another new one near."""
    running = list(company.running())
    taken: dict[tuple[str, str, int], Counter[str]] = {}
    for index, (pod, node) in enumerate(seats):
        for at, term in enumerate(anti_terms(pod)):
            value = (node.metadata.labels or {}).get(term.topology_key)
            if value is None:
                continue
            key = (str(id(pod)), term.topology_key, at)
            if key not in taken:
                taken[key] = _counts(company, term, pod, running, seats)
            itself = 1 if company.selects(term, pod, pod) else 0
            if taken[key][value] > itself:
                return f"{pod.metadata.name} in seat {index} on {node.metadata.name} is too near to a pod it avoids"
    return None


def _counts(
    company: RunningPods, term: PodAffinityTerm, owner: Pod, running: Sequence[PodOnNode], seats: Sequence[PodOnNode]
) -> Counter[str]:
    """How many pods a term means, per value of its topology key."""
    found: Counter[str] = Counter()
    for other, node in (*running, *seats):
        value = (node.metadata.labels or {}).get(term.topology_key)
        if value is not None and company.selects(term, owner, other):
            found[value] += 1
    return found


def _joined(company: RunningPods, seats: Sequence[PodOnNode]) -> str | None:
    """Every new pod that needs company finds it where it goes, at the moment it goes there."""
    running = list(company.running())
    wanted = {id(pod): pod for pod, _ in seats if affinity_terms(pod)}
    near: dict[int, list[Counter[str]]] = {}
    anywhere: dict[int, int] = {}
    for key, pod in wanted.items():
        friends = [(other, node) for other, node in running if _friend(company, pod, other)]
        near[key] = [
            Counter((node.metadata.labels or {}).get(term.topology_key, "") for _, node in friends)
            for term in affinity_terms(pod)
        ]
        anywhere[key] = sum(sum(1 for v in c.elements() if v) for c in near[key])
    for pod, node in seats:
        key, labels = id(pod), node.metadata.labels or {}
        if key in wanted:
            values = [labels.get(term.topology_key) for term in affinity_terms(pod)]
            if any(value is None for value in values):
                return f"{pod.metadata.name} on {node.metadata.name} lacks the label its affinity speaks of"
            alone = not anywhere[key] and _friend(company, pod, pod)
            if not alone and any(not near[key][at][value or ""] for at, value in enumerate(values)):
                return f"{pod.metadata.name} on {node.metadata.name} is not near the pods it needs"
        for other, seeker in wanted.items():
            if _friend(company, seeker, pod):
                for at, term in enumerate(affinity_terms(seeker)):
                    value = labels.get(term.topology_key)
                    if value:
                        near[other][at][value] += 1
                        anywhere[other] += 1
    return None


def _friend(company: RunningPods, seeker: Pod, other: Pod) -> bool:
    """Whether a pod is meant by all terms at once."""
    return all(company.selects(term, seeker, other) for term in affinity_terms(seeker))


def _spread(company: RunningPods, seats: Sequence[PodOnNode]) -> str | None:
    """No domain that took a new pod is more than the allowed skew above the emptiest."""
    running = [(pod, node) for pod, node in company.running() if pod.metadata.deletion_timestamp is None]
    judged: set[tuple[int, str]] = set()
    for pod, node in seats:
        for at, rule in enumerate(spread_terms(pod)):
            value = (node.metadata.labels or {}).get(rule.topology_key)
            if value is None:
                return f"{pod.metadata.name} on {node.metadata.name} lacks the label {rule.topology_key}"
            if (id(pod), f"{at}/{value}") in judged:
                continue
            judged.add((id(pod), f"{at}/{value}"))
            counts = _spread_counts(company, pod, rule, running, seats)
            least = 0 if len(counts) < (rule.min_domains or 1) else min(counts.values(), default=0)
            if counts.get(value, 0) - least > rule.max_skew:
                return f"{pod.metadata.name} on {node.metadata.name} is spread too unevenly over {rule.topology_key}"
    return None


def _spread_counts(
    company: RunningPods,
    pod: Pod,
    rule: TopologySpreadConstraint,
    running: Sequence[PodOnNode],
    seats: Sequence[PodOnNode],
) -> dict[str, int]:
    """Matching pods per eligible domain."""
    keys = [c.topology_key for c in spread_terms(pod)]
    eligible: set[str] = set()
    counts: dict[str, int] = {}
    for name, node in company.cluster.node_objects.items():
        labels = node.metadata.labels or {}
        if all(key in labels for key in keys) and _counted_node(pod, rule, node):
            eligible.add(name)
            counts.setdefault(labels[rule.topology_key], 0)
    own = pod.metadata.labels or {}
    for other, node in (*running, *seats):
        labels = other.metadata.labels or {}
        same = all(labels.get(key) == own[key] for key in rule.match_label_keys or () if key in own)
        if node.metadata.name in eligible and other.metadata.namespace == pod.metadata.namespace and same:
            counts[(node.metadata.labels or {})[rule.topology_key]] += matches(rule.label_selector, labels)
    return counts


def _counted_node(pod: Pod, rule: TopologySpreadConstraint, node: Node) -> bool:
    if (rule.node_taints_policy or "Ignore") == "Honor" and first_untolerated(node.spec.taints, pod.spec.tolerations):
        return False
    if (rule.node_affinity_policy or "Honor") != "Honor":
        return True
    labels = node.metadata.labels or {}
    if any(labels.get(key) != wanted for key, wanted in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or node_matches(required, node.metadata.name, labels)
