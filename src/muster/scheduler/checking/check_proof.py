"""`check_proof`: is "infeasible" true? Judged by counting and enumerating anew, from the objects.

A counting proof is checked by counting again, whatever it lists. A weighing is checked by filling
every node with the heaviest load it can take. An exhaustive search is checked by an enumeration of
its own, pod by pod, as far as `MOST_VISITS` reaches; a larger one is let pass, as are searches among
pods that depend on each other. `None` means that no fault was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

from muster.api.types import Node, Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.node_amounts import Amounts, ledger_of, requests
from muster.scheduler.checking.node_rules import NodeRules, clash, ports_of
from muster.scheduler.checking.pod_rules import RunningPods, affinity_terms, anti_terms, same_domain, spread_terms
from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.placement.verdict import CountingProof, ExhaustionProof, Infeasible, WeightProof

MOST_VISITS = 20_000


Room = tuple[tuple[int, ...], ...]  # what each node has free, by resource


def check_proof(
    verdict: Infeasible,
    request: GroupRequest,
    cluster: Cluster,
    evicted: frozenset[str] = frozenset(),
    held: Sequence[tuple[Shape, int]] = (),
) -> str | None:
    """None if the proof stands as far as it can be checked, else what is wrong with it."""
    view = _View(request, cluster, frozenset(evicted), held)
    wishes = list(_wishes(request))
    match verdict.proof:
        case CountingProof():
            able = next((wish for wish in wishes if view.may_hold(wish, view.everywhere)), None)
            return None if able is None else f"counting does not rule out {able.key.name}"
        case WeightProof() as proof:
            return view.weighs(proof, request)
        case ExhaustionProof():
            if view.social or not all(view.cannot_hold(wish) for wish in wishes):
                return None if view.social or view.tired else "a placement exists"
            return None
    return None


def _wishes(request: GroupRequest) -> Iterator[GroupRequest]:
    """What the verdict denies: the demand itself, or each single thing to add to one that holds."""
    if not _holds(request):
        yield request
    elif isinstance(request, PodGroupRequest):
        if request.members:
            yield PodGroupRequest(
                request.key, request.bound + 1, request.bound, request.members, request.topology, request.domains
            )
    else:
        for child in request.children:
            for wish in _wishes(child):
                yield type(request)(request.key, 1, (wish,), request.topology, request.domains)


def _holds(request: GroupRequest) -> bool:
    if isinstance(request, PodGroupRequest):
        return request.bound >= request.minimum
    return sum(_holds(child) for child in request.children) >= request.minimum


class _View:
    """The cluster as the checker sees it."""

    def __init__(
        self, request: GroupRequest, cluster: Cluster, evicted: frozenset[str], held: Sequence[tuple[Shape, int]]
    ) -> None:
        self.cluster = cluster
        self.company = RunningPods(cluster, evicted)
        self.evicted = evicted
        self.held = held
        self.pods: dict[int, Pod] = {}
        for leaf in _leaves(request):
            for member in leaf.members:
                self.pods.setdefault(id(member.shape), member.shape.pod)
        self.counts = Counter(id(member.shape) for leaf in _leaves(request) for member in leaf.members)
        profiles = {id(m.shape): m.shape.profile for leaf in _leaves(request) for m in leaf.members}
        self.wanted: dict[int, Amounts] = {
            kind: {name: n for name, n in requests(pod).items() if not profiles[kind].ignores(name)} | {"pods": 1}
            for kind, pod in self.pods.items()
        }
        self.resources = sorted({name for wanted in self.wanted.values() for name in wanted})
        self.everywhere = tuple(sorted(cluster.index))
        self._seats: dict[int, dict[str, int]] = {}
        self.visits = 0
        self.tired = False

    @property
    def social(self) -> bool:
        """Whether pods of the demand depend on each other beyond amounts."""
        return any(
            anti_terms(pod) or affinity_terms(pod) or spread_terms(pod) or any(True for _ in ports_of(pod))
            for pod in self.pods.values()
        )

    @cached_property
    def free(self) -> dict[str, Amounts]:
        ledger = ledger_of(self.cluster)
        found: dict[str, Amounts] = {}
        for name, slot in self.cluster.index.items():
            load, have = ledger.load(slot, self.evicted), ledger.capacity(self.cluster.node_objects[name])
            found[name] = {resource: have.get(resource, 0) - load.get(resource, 0) for resource in self.resources}
        for shape, slot in self.held:
            left = found[self.cluster.names[slot]]
            for resource, amount in {**requests(shape.pod), "pods": 1}.items():
                left[resource] = left.get(resource, 0) - amount
        return found

    def seats(self, kind: int) -> dict[str, int]:
        """How many pods of a kind each node takes at most, alone."""
        known = self._seats.get(kind)
        if known is None:
            pod, wanted = self.pods[kind], self.wanted[kind]
            rules = NodeRules(pod)
            keepers = [(other, node) for other, node in self.company.repelling()]
            known = dict[str, int]()
            for name in self.everywhere:
                node = self.cluster.node_objects[name]
                if rules.refusal(node) is None and not self._kept_away(pod, node, keepers):
                    left = self.free[name]
                    known[name] = max(0, min(left[resource] // amount for resource, amount in wanted.items() if amount))
            self._limit(pod, known)
            self._seats[kind] = known
        return known

    def _kept_away(self, pod: Pod, node: Node, keepers: Sequence[tuple[Pod, Node]]) -> bool:
        for other, where in keepers:
            for term in anti_terms(other):
                if same_domain(term.topology_key, node, where) and self.company.selects(term, other, pod):
                    return True
        return False

    def _limit(self, pod: Pod, seats: dict[str, int]) -> None:
        """Ports and a dislike of its own kind leave one seat a node, and none beside those it avoids."""
        ports = list(ports_of(pod))
        for name in seats if ports else ():
            there = [p for e in self.cluster.pods_on(self.cluster.index[name]) for p in ports_of(e.pod)]
            seats[name] = 0 if any(clash(a, b) for a in ports for b in there) else min(seats[name], 1)
        for term in anti_terms(pod):
            avoided = {
                (node.metadata.labels or {}).get(term.topology_key)
                for other, node in self.company.running()
                if self.company.selects(term, pod, other)
            } - {None}
            for name in seats:
                if (self.cluster.node_objects[name].metadata.labels or {}).get(term.topology_key) in avoided:
                    seats[name] = 0

    def most(self, kind: int, nodes: Sequence[str]) -> int:
        """The most pods of a kind on some nodes together."""
        pod, seats = self.pods[kind], self.seats(kind)
        total = sum(seats.get(name, 0) for name in nodes)
        for term in anti_terms(pod):
            if self.company.selects(term, pod, pod):
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

    def scopes(self, request: GroupRequest, nodes: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The sets of nodes among which a group must choose one."""
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
        """Whether counting leaves room for a group: each leaf alone, each kind alone."""
        if _holds(request):
            return True
        for scope in self.scopes(request, nodes):
            if isinstance(request, PodGroupRequest):
                kinds = [id(member.shape) for member in request.members]
                room = sum(min(kinds.count(kind), self.most(kind, scope)) for kind in set(kinds))
                if request.bound + room >= request.minimum:
                    return True
            elif sum(self.may_hold(child, scope) for child in request.children) >= request.minimum:
                return True
        return False

    # --- weighing --------------------------------------------------------------------------------

    def weighs(self, proof: WeightProof, request: GroupRequest) -> str | None:
        weights = dict(proof.weights)
        kinds = {id(m.shape): weights.get(m.shape.id, 0) for leaf in _leaves(request) for m in leaf.members}
        required = _lightest(request, weights)
        available = 0
        known: dict[object, int] = {}
        for name in self.everywhere:
            able = tuple(kind for kind in kinds if self.seats(kind).get(name, 0) > 0 and kinds[kind] > 0)
            face = (able, tuple(self.free[name][resource] for resource in self.resources))
            if face not in known:
                known[face] = self._heaviest(list(able), face[1], kinds)
            available += known[face]
            if self.tired:
                return None
        return None if available < required else f"the nodes hold {available}, only {required} is needed"

    def _heaviest(self, kinds: list[int], left: tuple[int, ...], weights: dict[int, int]) -> int:
        """The heaviest load of one node, by trying every number of every kind."""
        self.visits += 1
        if self.visits > MOST_VISITS:
            self.tired = True
        if not kinds or self.tired:
            return 0
        kind, rest = kinds[0], kinds[1:]
        wanted = [self.wanted[kind].get(resource, 0) for resource in self.resources]
        most = min(self.counts[kind], *(have // take for have, take in zip(left, wanted, strict=True) if take))
        least = most if not rest else 0
        return max(
            n * weights[kind]
            + self._heaviest(rest, tuple(have - n * take for have, take in zip(left, wanted, strict=True)), weights)
            for n in range(max(0, most), max(0, least) - 1, -1)
        )

    # --- enumeration -----------------------------------------------------------------------------

    def cannot_hold(self, request: GroupRequest) -> bool:
        """Whether no way at all is found to make a group hold; gives up quietly when it gets tired."""
        room: Room = tuple(tuple(self.free[name][r] for r in self.resources) for name in self.everywhere)
        return not any(True for _ in self._outcomes(request, self.everywhere, room)) and not self.tired

    def _outcomes(self, request: GroupRequest, nodes: tuple[str, ...], room: Room) -> Iterator[Room]:
        """What can be left free once a group holds."""
        for scope in self.scopes(request, nodes):
            if isinstance(request, PodGroupRequest):
                yield from self._leaf_outcomes(request, scope, room)
            else:
                open_children = [child for child in request.children if not _holds(child)]
                missing = request.minimum - (len(request.children) - len(open_children))
                for chosen in combinations(open_children, missing):
                    yield from self._in_turn(chosen, scope, room)

    def _in_turn(self, children: Sequence[GroupRequest], nodes: tuple[str, ...], room: Room) -> Iterator[Room]:
        if not children:
            yield room
            return
        seen: set[Room] = set()
        for left in self._outcomes(children[0], nodes, room):
            if left not in seen and not self.tired:
                seen.add(left)
                yield from self._in_turn(children[1:], nodes, left)

    def _leaf_outcomes(self, leaf: PodGroupRequest, nodes: tuple[str, ...], room: Room) -> Iterator[Room]:
        kinds = sorted(id(member.shape) for member in leaf.members)
        seen: set[tuple[int, ...]] = set()
        for chosen in combinations(kinds, leaf.minimum - leaf.bound):
            if chosen not in seen and not self.tired:
                seen.add(chosen)
                yield from self._pod_outcomes(chosen, nodes, room, 0)

    def _pod_outcomes(self, kinds: tuple[int, ...], nodes: tuple[str, ...], room: Room, first: int) -> Iterator[Room]:
        """Seat one pod after another; equal pods go to nodes in one order only."""
        self.visits += 1
        if self.visits > MOST_VISITS:
            self.tired = True
        if self.tired:
            return
        if not kinds:
            yield room
            return
        seats = self.seats(kinds[0])
        wanted = [self.wanted[kinds[0]].get(resource, 0) for resource in self.resources]
        for at in range(first, len(nodes)):
            slot = self._position[nodes[at]]
            left = room[slot]
            if nodes[at] not in seats or any(w and f < w for f, w in zip(left, wanted, strict=True)):
                continue
            rest = tuple(f - w for f, w in zip(left, wanted, strict=True))
            again = at if len(kinds) > 1 and kinds[1] == kinds[0] else 0
            yield from self._pod_outcomes(kinds[1:], nodes, (*room[:slot], rest, *room[slot + 1 :]), again)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.everywhere)}


def _lightest(request: GroupRequest, weights: dict[int, int]) -> int:
    """The least that the missing members of a group can weigh."""
    if _holds(request):
        return 0
    if isinstance(request, PodGroupRequest):
        each = sorted(weights.get(member.shape.id, 0) for member in request.members)
        return sum(each[: request.minimum - request.bound])
    open_children = [child for child in request.children if not _holds(child)]
    missing = request.minimum - (len(request.children) - len(open_children))
    return sum(sorted(_lightest(child, weights) for child in open_children)[:missing])


def _leaves(request: GroupRequest) -> list[PodGroupRequest]:
    if isinstance(request, PodGroupRequest):
        return [request]
    return [leaf for child in request.children for leaf in _leaves(child)]
