"""`check_proof`: whether "infeasible" is true, checked by counting and enumerating again from the API objects.

A counting proof is checked by counting again, whatever it lists. A dual certificate is checked by filling every node
with the heaviest set of pods it can take (`heaviest_pods`). An exhaustive search is checked by an enumeration of its
own, pod by pod, as far as `MOST_VISITS` reaches; a larger one passes unchecked, as do searches among pods that depend
on each other. `None` means that no fault was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, combinations

import numpy as np

from muster.api.types import Node, Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.heaviest_pods import heaviest
from muster.scheduler.checking.node_amounts import Amounts, amounts_of, requests
from muster.scheduler.checking.node_rules import NodeRules, ports_conflict, ports_of
from muster.scheduler.checking.pod_rules import RunningPods, affinity_terms, anti_terms, same_domain, spread_terms
from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest
from muster.scheduler.placement.verdict import CountingProof, ExhaustionProof, Infeasible, WeightProof

MOST_VISITS = 20_000


Room = tuple[tuple[int, ...], ...]  # what each node has free, by resource


def check_proof(
    verdict: Infeasible,
    request: GroupRequest,
    cluster: Cluster,
    evicted: frozenset[str] = frozenset(),
    nominated: Sequence[tuple[Shape, int]] = (),
) -> str | None:
    """None if the proof holds as far as it can be checked, else what is wrong with it."""
    view = _View(request, cluster, frozenset(evicted), nominated)
    refuted = list(_refuted(request))
    match verdict.proof:
        case CountingProof():
            able = next((one for one in refuted if view.may_hold(one, view.everywhere)), None)
            return None if able is None else f"counting does not rule out {able.key.name}"
        case WeightProof() as proof:
            faults = (view.check_weights(proof, one) for one in refuted)
            return next((fault for fault in faults if fault is not None), None)
        case ExhaustionProof():
            if view.depends_on_pods or not all(view.cannot_hold(one) for one in refuted):
                return None if view.depends_on_pods or view.gave_up else "a placement exists"
            return None
    return None


def _refuted(request: GroupRequest) -> Iterator[GroupRequest]:
    """What the verdict says is infeasible: the request, or each single thing to add to one that is satisfied."""
    if not _satisfied(request):
        yield request
    elif isinstance(request, PodGroupRequest):
        if request.members:
            yield PodGroupRequest(
                request.key, request.bound + 1, request.bound, request.members, request.topology, request.domains
            )
    else:
        for child in request.children:
            for one in _refuted(child):
                yield CompositeRequest(request.key, 1, (one,), request.topology, request.domains)


def _satisfied(request: GroupRequest) -> bool:
    if isinstance(request, PodGroupRequest):
        return request.bound >= request.minimum
    return sum(_satisfied(child) for child in request.children) >= request.minimum


class _View:
    """The cluster and the pods of a request, read from their objects. A shape is identified by its id()."""

    def __init__(
        self, request: GroupRequest, cluster: Cluster, evicted: frozenset[str], nominated: Sequence[tuple[Shape, int]]
    ) -> None:
        self.cluster = cluster
        self.running = RunningPods(cluster, evicted)
        self.evicted = evicted
        self.nominated = nominated
        members = [member for leaf in _leaves(request) for member in leaf.members]
        self.counts = Counter(id(member.shape) for member in members)
        shapes = {id(member.shape): member.shape for member in members}
        self.pods: dict[int, Pod] = {key: shape.pod for key, shape in shapes.items()}
        self.requests: dict[int, Amounts] = {
            key: {name: n for name, n in requests(shape.pod).items() if not shape.profile.ignores(name)} | {"pods": 1}
            for key, shape in shapes.items()
        }
        self.resources = sorted({name for each in self.requests.values() for name in each})
        self.everywhere = tuple(sorted(cluster.index))
        self._seats: dict[int, dict[str, int]] = {}
        self.visits = 0
        self.gave_up = False

    @cached_property
    def _expected(self) -> list[tuple[Pod, Node]]:
        """The pods that seats are nominated for, on their nodes."""
        nodes, names = self.cluster.node_objects, self.cluster.names
        return [(shape.pod, nodes[names[slot]]) for shape, slot in self.nominated]

    @property
    def depends_on_pods(self) -> bool:
        """Whether pods of the request depend on each other beyond amounts."""
        return any(
            anti_terms(pod) or affinity_terms(pod) or spread_terms(pod) or any(True for _ in ports_of(pod))
            for pod in self.pods.values()
        )

    @cached_property
    def free(self) -> dict[str, Amounts]:
        """What each node has free, by name."""
        amounts = amounts_of(self.cluster)
        found: dict[str, Amounts] = {}
        for name, slot in self.cluster.index.items():
            used = amounts.requested(slot, self.evicted)
            have = amounts.allocatable(self.cluster.node_objects[name])
            found[name] = {resource: have.get(resource, 0) - used.get(resource, 0) for resource in self.resources}
        for shape, slot in self.nominated:
            left = found[self.cluster.names[slot]]
            for resource, amount in {**requests(shape.pod), "pods": 1}.items():
                left[resource] = left.get(resource, 0) - amount
        return found

    def seats(self, shape: int) -> dict[str, int]:
        """How many pods of a shape each node takes at most, alone."""
        known = self._seats.get(shape)
        if known is None:
            pod, wanted = self.pods[shape], self.requests[shape]
            rules = NodeRules(pod)
            repelling = [
                *self.running.repelling(),
                *((other, node) for other, node in self._expected if anti_terms(other)),
            ]
            known = dict[str, int]()
            for name in self.everywhere:
                node = self.cluster.node_objects[name]
                if rules.refusal(node) is None and not self._repelled(pod, node, repelling):
                    left = self.free[name]
                    known[name] = max(0, min(left[resource] // amount for resource, amount in wanted.items() if amount))
            self._limit(pod, known)
            self._seats[shape] = known
        return known

    def _repelled(self, pod: Pod, node: Node, repelling: Sequence[tuple[Pod, Node]]) -> bool:
        """Whether the required anti-affinity of a running pod in the node's domain selects the pod."""
        for other, where in repelling:
            for term in anti_terms(other):
                if same_domain(term.topology_key, node, where) and self.running.selects(term, other, pod):
                    return True
        return False

    def _limit(self, pod: Pod, seats: dict[str, int]) -> None:
        """Host ports leave one seat a node, anti-affinity none in the domain of a running pod that it selects."""
        ports = list(ports_of(pod))
        for name in seats if ports else ():
            there = [p for e in self.cluster.pods_on(self.cluster.index[name]) for p in ports_of(e.pod)]
            there += [p for other, node in self._expected if node.metadata.name == name for p in ports_of(other)]
            seats[name] = 0 if any(ports_conflict(a, b) for a in ports for b in there) else min(seats[name], 1)
        for term in anti_terms(pod):
            avoided = {
                (node.metadata.labels or {}).get(term.topology_key)
                for other, node in chain(self.running.pods(), self._expected)
                if self.running.selects(term, pod, other)
            } - {None}
            for name in seats:
                if (self.cluster.node_objects[name].metadata.labels or {}).get(term.topology_key) in avoided:
                    seats[name] = 0

    def most(self, shape: int, nodes: Sequence[str]) -> int:
        """The most pods of a shape on some nodes together."""
        pod, seats = self.pods[shape], self.seats(shape)
        total = sum(seats.get(name, 0) for name in nodes)
        for term in anti_terms(pod):
            if self.running.selects(term, pod, pod):
                values: set[str] = set()
                outside = 0
                for name in nodes:
                    value = (self.cluster.node_objects[name].metadata.labels or {}).get(term.topology_key)
                    if value is None:
                        outside += seats.get(name, 0)
                    elif seats.get(name, 0):
                        values.add(value)
                total = min(total, outside + len(values))
        return total

    # --- counting --------------------------------------------------------------------------------

    def domains(self, request: GroupRequest, nodes: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The sets of nodes of which a group must be in one."""
        if not request.topology:
            return [nodes]
        parts: dict[str, list[str]] = {}
        for name in nodes:
            value = (self.cluster.node_objects[name].metadata.labels or {}).get(request.topology)
            if value is not None:
                parts.setdefault(value, []).append(name)
        if request.domains:
            pinned = set(request.domains)
            return [tuple(parts.get(next(iter(pinned)), ()))] if len(pinned) == 1 else []
        return [tuple(part) for part in parts.values()]

    def may_hold(self, request: GroupRequest, nodes: tuple[str, ...]) -> bool:
        """Whether counting leaves room for a group: each PodGroup alone, each shape alone."""
        if _satisfied(request):
            return True
        for domain in self.domains(request, nodes):
            if isinstance(request, PodGroupRequest):
                counts = Counter(id(member.shape) for member in request.members)
                room = sum(min(count, self.most(shape, domain)) for shape, count in counts.items())
                if request.bound + room >= request.minimum:
                    return True
            elif sum(self.may_hold(child, domain) for child in request.children) >= request.minimum:
                return True
        return False

    # --- weights ---------------------------------------------------------------------------------

    def check_weights(self, proof: WeightProof, request: GroupRequest) -> str | None:
        by_id = dict(proof.weights)
        weights = {id(m.shape): by_id.get(m.shape.id, 0) for leaf in _leaves(request) for m in leaf.members}
        required = _lightest(request, by_id)
        shapes = [shape for shape in weights if weights[shape] > 0]
        room = np.array([[self.free[name][resource] for resource in self.resources] for name in self.everywhere])
        able = np.array([[self.seats(shape).get(name, 0) > 0 for shape in shapes] for name in self.everywhere])
        found, exact = heaviest(
            room.astype(np.int64).reshape(len(self.everywhere), len(self.resources)),
            able.astype(np.bool_).reshape(len(self.everywhere), len(shapes)),
            np.array([self._vector(shape) for shape in shapes], dtype=np.int64).reshape(-1, len(self.resources)),
            np.array([weights[shape] for shape in shapes], dtype=np.int64),
            np.array([self.counts[shape] for shape in shapes], dtype=np.int64),
        )
        available = sum(found.tolist())
        return None if available < required or not exact else f"the nodes hold {available}, only {required} is needed"

    # --- enumeration -----------------------------------------------------------------------------

    def cannot_hold(self, request: GroupRequest) -> bool:
        """Whether the enumeration ended without any way to satisfy a group."""
        room: Room = tuple(tuple(self.free[name][r] for r in self.resources) for name in self.everywhere)
        return not any(True for _ in self._outcomes(request, self.everywhere, room)) and not self.gave_up

    def _outcomes(self, request: GroupRequest, nodes: tuple[str, ...], room: Room) -> Iterator[Room]:
        """What can be left free once a group is satisfied."""
        for domain in self.domains(request, nodes):
            if isinstance(request, PodGroupRequest):
                yield from self._leaf_outcomes(request, domain, room)
            else:
                open_children = [child for child in request.children if not _satisfied(child)]
                missing = request.minimum - (len(request.children) - len(open_children))
                for chosen in combinations(open_children, missing):
                    yield from self._in_turn(chosen, domain, room)

    def _in_turn(self, children: Sequence[GroupRequest], nodes: tuple[str, ...], room: Room) -> Iterator[Room]:
        if not children:
            yield room
            return
        seen: set[Room] = set()
        for left in self._outcomes(children[0], nodes, room):
            if left not in seen and not self.gave_up:
                seen.add(left)
                yield from self._in_turn(children[1:], nodes, left)

    def _leaf_outcomes(self, leaf: PodGroupRequest, nodes: tuple[str, ...], room: Room) -> Iterator[Room]:
        shapes = sorted(id(member.shape) for member in leaf.members)
        seen: set[tuple[int, ...]] = set()
        for chosen in combinations(shapes, leaf.minimum - leaf.bound):
            if chosen not in seen and not self.gave_up:
                seen.add(chosen)
                yield from self._pod_outcomes(chosen, nodes, room, 0)

    def _pod_outcomes(self, shapes: tuple[int, ...], nodes: tuple[str, ...], room: Room, first: int) -> Iterator[Room]:
        """Place one pod after another; pods of one shape go to nodes in one order only."""
        if self._visit():
            return
        if not shapes:
            yield room
            return
        seats, wanted = self.seats(shapes[0]), self._vector(shapes[0])
        for at in range(first, len(nodes)):
            slot = self._position[nodes[at]]
            left = room[slot]
            if nodes[at] not in seats or any(w and f < w for f, w in zip(left, wanted, strict=True)):
                continue
            rest = tuple(f - w for f, w in zip(left, wanted, strict=True))
            again = at if len(shapes) > 1 and shapes[1] == shapes[0] else 0
            yield from self._pod_outcomes(shapes[1:], nodes, (*room[:slot], rest, *room[slot + 1 :]), again)

    def _visit(self) -> bool:
        """Count one more state; True once there were too many."""
        self.visits += 1
        if self.visits > MOST_VISITS:
            self.gave_up = True
        return self.gave_up

    def _vector(self, shape: int) -> list[int]:
        return [self.requests[shape].get(resource, 0) for resource in self.resources]

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.everywhere)}


def _lightest(request: GroupRequest, weights: dict[int, int]) -> int:
    """The least that the missing pods of a group can weigh."""
    if _satisfied(request):
        return 0
    if isinstance(request, PodGroupRequest):
        each = sorted(weights.get(member.shape.id, 0) for member in request.members)
        return sum(each[: request.minimum - request.bound])
    open_children = [child for child in request.children if not _satisfied(child)]
    missing = request.minimum - (len(request.children) - len(open_children))
    return sum(sorted(_lightest(child, weights) for child in open_children)[:missing])


def _leaves(request: GroupRequest) -> list[PodGroupRequest]:
    if isinstance(request, PodGroupRequest):
        return [request]
    return [leaf for child in request.children for leaf in _leaves(child)]
