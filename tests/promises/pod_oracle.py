"""A naive scheduler for one pod: objects in, plain loops, one node and one pod at a time.

It is written to be obviously right, not fast, and shares nothing with the columns except the API's
own notions (quantities, selectors, tolerations).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from muster.api import quantity, selectors
from muster.api.types import (
    Affinity,
    Container,
    LabelSelector,
    LabelSelectorRequirement,
    Namespace,
    Node,
    Pod,
    PodAffinityTerm,
    Service,
    TopologySpreadConstraint,
)

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MIB = 1024 * 1024


@dataclass
class World:
    nodes: list[Node]
    pods: list[Pod]
    namespaces: list[Namespace] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    hard_weight: int = 1

    def on(self, node: Node) -> list[Pod]:
        return [p for p in self.pods if p.spec.node_name == node.metadata.name and p.status.phase not in _DONE]

    def running(self) -> Iterable[tuple[Node, Pod]]:
        return ((node, pod) for node in self.nodes for pod in self.on(node))


_DONE = ("Succeeded", "Failed")


def labels_of(thing: Any) -> dict[str, str]:
    return thing.metadata.labels or {}


# --- amounts ----------------------------------------------------------------------------------------


def container_amount(container: Container, resource: str, filled: bool) -> int:
    requests = (container.resources.requests if container.resources else None) or {}
    if resource not in requests:
        return {"cpu": 100, "memory": 200 * MIB}.get(resource, 0) if filled else 0
    return quantity.milli(requests[resource]) if resource == "cpu" else quantity.value(requests[resource])


def pod_amount(pod: Pod, resource: str, filled: bool = False) -> int:
    apps = sum(container_amount(c, resource, filled) for c in pod.spec.containers or ())
    sidecars = peak = 0
    for container in pod.spec.init_containers or ():
        size = container_amount(container, resource, filled)
        if container.restart_policy == "Always":
            sidecars += size
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + size)
    total = max(apps + sidecars, peak)
    overhead = (pod.spec.overhead or {}).get(resource)
    if overhead is not None:
        total += quantity.milli(overhead) if resource == "cpu" else quantity.value(overhead)
    return total


def resources_of(pod: Pod) -> list[str]:
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    names = {r for c in containers for r in ((c.resources.requests if c.resources else None) or {})}
    return sorted(names | {*(pod.spec.overhead or {})})


def allocatable(node: Node, resource: str) -> int:
    found = (node.status.allocatable or {}).get(resource, "0")
    return quantity.milli(found) if resource == "cpu" else quantity.value(found)


def used(world: World, node: Node, resource: str, filled: bool = False) -> int:
    return sum(pod_amount(pod, resource, filled) for pod in world.on(node))


# --- filters ----------------------------------------------------------------------------------------


def refusal(pod: Pod, node: Node, world: World) -> list[str]:
    """The reasons of the first rule that refuses the node; none if it takes the pod."""
    for rule in (_unschedulable, _taints, _affinity, _ports, _fit, _spread, _pod_affinity):
        reasons = rule(pod, node, world)
        if reasons:
            return reasons
    return []


FINAL = (
    "node(s) were unschedulable",
    "node(s) had untolerated taint(s)",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't match pod affinity rules",
)


def final(pod: Pod, node: Node, reasons: list[str]) -> bool:
    """Whether no eviction from the node could help against these reasons."""
    lacking = [r.removeprefix("Insufficient ") for r in reasons if r.startswith("Insufficient ")]
    beyond = any(pod_amount(pod, resource) > allocatable(node, resource) for resource in lacking)
    return beyond or any(reason in FINAL for reason in reasons)


def _unschedulable(pod: Pod, node: Node, world: World) -> list[str]:
    for t in pod.spec.tolerations or ():
        meant = t.key in ("", "node.kubernetes.io/unschedulable") and t.effect in ("", "NoSchedule")
        if meant and (t.operator == "Exists" or (t.key and t.value == "")):
            return []
    return ["node(s) were unschedulable"] if node.spec.unschedulable else []


def _taints(pod: Pod, node: Node, world: World) -> list[str]:
    bad = selectors.first_untolerated(node.spec.taints, pod.spec.tolerations)
    return ["node(s) had untolerated taint(s)"] if bad else []


def chooses(pod: Pod, node: Node) -> bool:
    for key, value in (pod.spec.node_selector or {}).items():
        if labels_of(node).get(key) != value:
            return False
    wishes = (pod.spec.affinity or Affinity()).node_affinity
    required = wishes.required_during_scheduling_ignored_during_execution if wishes else None
    return required is None or selectors.node_matches(required, node.metadata.name, labels_of(node))


def _affinity(pod: Pod, node: Node, world: World) -> list[str]:
    return [] if chooses(pod, node) else ["node(s) didn't match Pod's node affinity/selector"]


def _host_ports(pod: Pod) -> list[tuple[str, str, int]]:
    sidecars = [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
    ports = [p for c in (*(pod.spec.containers or ()), *sidecars) for p in c.ports or () if p.host_port]
    return [(p.host_ip or "0.0.0.0", p.protocol or "TCP", p.host_port) for p in ports]


def _ports(pod: Pod, node: Node, world: World) -> list[str]:
    for other in world.on(node):
        for ip, protocol, number in _host_ports(pod):
            for other_ip, other_protocol, other_number in _host_ports(other):
                same = (protocol, number) == (other_protocol, other_number)
                if same and (ip == other_ip or "0.0.0.0" in (ip, other_ip)):
                    return ["node(s) didn't have free ports for the requested pod ports"]
    return []


def _fit(pod: Pod, node: Node, world: World) -> list[str]:
    reasons: list[str] = []
    if len(world.on(node)) + 1 > allocatable(node, "pods"):
        reasons.append("Too many pods")
    for resource in resources_of(pod):
        wanted = pod_amount(pod, resource)
        if wanted and wanted > allocatable(node, resource) - used(world, node, resource):
            reasons.append(f"Insufficient {resource}")
    return reasons


def _merged(
    selector: LabelSelector | None, pod: Pod, same: Iterable[str], other: Iterable[str]
) -> LabelSelector | None:
    if selector is None:
        return None
    has = labels_of(pod)
    more = [LabelSelectorRequirement(k, "In", (has[k],)) for k in same if k in has]
    more += [LabelSelectorRequirement(k, "NotIn", (has[k],)) for k in other if k in has]
    return LabelSelector(selector.match_labels, (*(selector.match_expressions or ()), *more))


def term_selects(term: PodAffinityTerm, owner: Pod, other: Pod, world: World) -> bool:
    selector = _merged(term.label_selector, owner, term.match_label_keys or (), term.mismatch_label_keys or ())
    if not selectors.matches(selector, labels_of(other)):
        return False
    namespace = other.metadata.namespace
    if not term.namespaces and term.namespace_selector is None:
        return namespace == owner.metadata.namespace
    found = next((labels_of(n) for n in world.namespaces if n.metadata.name == namespace), {})
    by_selector = term.namespace_selector is not None and selectors.matches(term.namespace_selector, found)
    return namespace in (term.namespaces or ()) or by_selector


def _required(pod: Pod, which: str) -> tuple[PodAffinityTerm, ...]:
    side = getattr(pod.spec.affinity or Affinity(), which)
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def _preferred(pod: Pod, which: str) -> tuple[Any, ...]:
    side = getattr(pod.spec.affinity or Affinity(), which)
    return (side.preferred_during_scheduling_ignored_during_execution if side else None) or ()


def _same_domain(a: Node, b: Node, key: str) -> bool:
    return key in labels_of(a) and labels_of(a).get(key) == labels_of(b).get(key)


def _pod_affinity(pod: Pod, node: Node, world: World) -> list[str]:
    terms = _required(pod, "pod_affinity")
    friends = [
        (place, other) for place, other in world.running() if all(term_selects(t, pod, other, world) for t in terms)
    ]
    labelled = all(t.topology_key in labels_of(node) for t in terms)
    near = all(any(_same_domain(node, place, t.topology_key) for place, _ in friends) for t in terms)
    seen = any(t.topology_key in labels_of(place) for t in terms for place, _ in friends)
    first = not seen and all(term_selects(t, pod, pod, world) for t in terms)
    if terms and not (labelled and (near or first)):
        return ["node(s) didn't match pod affinity rules"]
    for term in _required(pod, "pod_anti_affinity"):
        for place, other in world.running():
            if term_selects(term, pod, other, world) and _same_domain(node, place, term.topology_key):
                return ["node(s) didn't match pod anti-affinity rules"]
    for place, other in world.running():
        for term in _required(other, "pod_anti_affinity"):
            if term_selects(term, other, pod, world) and _same_domain(node, place, term.topology_key):
                return ["node(s) didn't satisfy existing pods anti-affinity rules"]
    return []


def _counts_for(rule: TopologySpreadConstraint, pod: Pod, other: Pod) -> bool:
    if other.metadata.namespace != pod.metadata.namespace or other.metadata.deletion_timestamp:
        return False
    selector = _merged(rule.label_selector, pod, rule.match_label_keys or (), ())
    return selectors.matches(selector, labels_of(other))


def _included(rule: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    if rule.node_affinity_policy != "Ignore" and not chooses(pod, node):
        return False
    return rule.node_taints_policy != "Honor" or not _taints(pod, node, World([], []))


def _spread(pod: Pod, node: Node, world: World) -> list[str]:
    rules = [r for r in pod.spec.topology_spread_constraints or () if r.when_unsatisfiable == "DoNotSchedule"]
    for rule in rules:
        key = rule.topology_key
        if key not in labels_of(node):
            return ["node(s) didn't match pod topology spread constraints (missing required label)"]
        counts: dict[str, int] = {}
        for place in world.nodes:
            if all(r.topology_key in labels_of(place) for r in rules) and _included(rule, pod, place):
                value = labels_of(place)[key]
                counts[value] = counts.get(value, 0) + sum(_counts_for(rule, pod, p) for p in world.on(place))
        least = min(counts.values()) if len(counts) >= (rule.min_domains or 1) else 0
        own = int(_counts_for(rule, pod, pod))
        if counts.get(labels_of(node)[key], 0) + own - least > rule.max_skew:
            return ["node(s) didn't match pod topology spread constraints"]
    return []


# --- scores -----------------------------------------------------------------------------------------


def totals(pod: Pod, nodes: list[Node], world: World) -> dict[str, int]:
    """The weighted total of every feasible node."""
    found = {node.metadata.name: 0 for node in nodes}
    rules = (
        (_taint_scores, 3),
        (_affinity_scores, 2),
        (_least_allocated, 1),
        (_spread_scores, 2),
        (_pod_affinity_scores, 2),
        (_balanced, 1),
        (_images, 1),
    )
    for rule, weight in rules:
        for node, score in zip(nodes, rule(pod, nodes, world), strict=True):
            assert 0 <= score <= 100
            found[node.metadata.name] += weight * score
    return found


def _scaled(raw: list[int], backwards: bool) -> list[int]:
    top = max(raw, default=0)
    scores = [100 * r // top if top else 0 for r in raw]
    return [100 - s for s in scores] if backwards else scores


def _taint_scores(pod: Pod, nodes: list[Node], world: World) -> list[int]:
    soft = [t for t in pod.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    raw = [
        sum(
            t.effect == "PreferNoSchedule" and not any(selectors.tolerates(s, t) for s in soft)
            for t in node.spec.taints or ()
        )
        for node in nodes
    ]
    return _scaled(raw, True)


def _affinity_scores(pod: Pod, nodes: list[Node], world: World) -> list[int]:
    wishes = _preferred(pod, "node_affinity")
    raw = [
        sum(w.weight for w in wishes if selectors.term_matches(w.preference, n.metadata.name, labels_of(n)))
        for n in nodes
    ]
    return _scaled(raw, False)


def _least_allocated(pod: Pod, nodes: list[Node], world: World) -> list[int]:
    scores: list[int] = []
    for node in nodes:
        rates: list[int] = []
        for resource in ("cpu", "memory"):
            room = allocatable(node, resource)
            wanted = used(world, node, resource, True) + pod_amount(pod, resource, True)
            if room:
                rates.append((room - wanted) * 100 // room if wanted <= room else 0)
        scores.append(sum(rates) // len(rates) if rates else 0)
    return scores


def _evenness(shares: list[float]) -> int:
    deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    return int((1 - deviation) * 100)


def _balanced(pod: Pod, nodes: list[Node], world: World) -> list[int]:
    if not pod_amount(pod, "cpu") and not pod_amount(pod, "memory"):
        return [0] * len(nodes)
    scores: list[int] = []
    for node in nodes:
        rooms = [(r, allocatable(node, r)) for r in ("cpu", "memory") if allocatable(node, r)]
        before = [min(1.0, used(world, node, r) / room) for r, room in rooms]
        after = [min(1.0, (used(world, node, r) + pod_amount(pod, r)) / room) for r, room in rooms]
        scores.append(50 + (50 + _evenness(after) - _evenness(before)) // 2)
    return scores


def _named(image: str) -> str:
    return image if ":" in image.rsplit("/", 1)[-1] else image + ":latest"


def _images(pod: Pod, nodes: list[Node], world: World) -> list[int]:
    wanted = [_named(c.image) for c in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))]

    def size(node: Node, image: str) -> int:
        held = [i.size_bytes for i in node.status.images or () if image in map(_named, i.names or ())]
        return held[0] if held else 0

    scores: list[int] = []
    for node in nodes:
        total = 0
        for image in wanted:
            holders = sum(size(other, image) > 0 for other in world.nodes)
            total += int(size(node, image) * (holders / len(world.nodes)))
        most = 1000 * MIB * len(wanted)
        scores.append(100 * (min(max(total, 23 * MIB), most) - 23 * MIB) // (most - 23 * MIB))
    return scores


def _default_selector(pod: Pod, world: World) -> LabelSelector | None:
    merged: dict[str, str] = {}
    for service in world.services:
        wanted = service.spec.selector or {}
        here = service.metadata.namespace == pod.metadata.namespace
        if here and all(labels_of(pod).get(k) == v for k, v in wanted.items()):
            merged |= wanted
    return LabelSelector(match_labels=merged) if merged else None


def _spread_scores(pod: Pod, nodes: list[Node], world: World) -> list[int]:
    own = pod.spec.topology_spread_constraints or ()
    rules = [r for r in own if r.when_unsatisfiable == "ScheduleAnyway"]
    if not own:
        selector = _default_selector(pod, world)
        if selector is not None:
            rules = [
                TopologySpreadConstraint(3, HOST, "ScheduleAnyway", selector),
                TopologySpreadConstraint(5, ZONE, "ScheduleAnyway", selector),
            ]
    if not rules:
        return [0] * len(nodes)

    def complete(node: Node) -> bool:
        return not own or all(r.topology_key in labels_of(node) for r in rules)

    kept = [n for n in nodes if complete(n)]
    raw: dict[str, int] = {}
    for node in kept:
        total = 0.0
        for rule in rules:
            key = rule.topology_key
            if key not in labels_of(node):
                continue
            if key == HOST:
                size, places = len(kept), [node]
            else:
                size = len({labels_of(n).get(key, "") for n in kept})
                places = [
                    n for n in world.nodes if _same_domain(n, node, key) and complete(n) and _included(rule, pod, n)
                ]
            count = sum(_counts_for(rule, pod, p) for place in places for p in world.on(place))
            total += count * math.log(size + 2) + (rule.max_skew - 1)
        raw[node.metadata.name] = math.floor(total + 0.5)
    highest, lowest = max(raw.values(), default=0), min(raw.values(), default=0)
    scores = {n: 100 * (highest + lowest - r) // highest if highest else 100 for n, r in raw.items()}
    return [scores.get(n.metadata.name, 0) for n in nodes]


def _pod_affinity_scores(pod: Pod, nodes: list[Node], world: World) -> list[int]:
    raw = [_closeness(pod, node, world) for node in nodes]
    lowest, highest = min(raw, default=0), max(raw, default=0)
    if lowest == highest:
        return [0] * len(nodes)
    return [int(100 * ((r - lowest) / (highest - lowest))) for r in raw]


def _closeness(pod: Pod, node: Node, world: World) -> int:
    total = 0
    for place, other in world.running():
        for which, sign in (("pod_affinity", 1), ("pod_anti_affinity", -1)):
            for wish in _preferred(pod, which):
                term = wish.pod_affinity_term
                if term_selects(term, pod, other, world) and _same_domain(node, place, term.topology_key):
                    total += sign * wish.weight
            for wish in _preferred(other, which):
                term = wish.pod_affinity_term
                if term_selects(term, other, pod, world) and _same_domain(node, place, term.topology_key):
                    total += sign * wish.weight
        for term in _required(other, "pod_affinity"):
            if term_selects(term, other, pod, world) and _same_domain(node, place, term.topology_key):
                total += world.hard_weight
    return total
