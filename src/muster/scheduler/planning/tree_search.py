"""The search over a whole tree: which children, which domains, and whether their pods fit together.

A decision is either a set of children of a composite or a domain of a constrained group; the group with the fewest
alternatives is decided first. Every time the nodes of a PodGroup are decided, the PodGroups that share nodes with it
are packed together, exactly if necessary, so that a dead end is seen when it arises. Failed states are remembered by
what they ask for, not by which group asks, so equal siblings count once; symmetric domains count once too. A search
that ends without giving up anywhere has tried everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest, open_leaves
from muster.scheduler.planning.domain_search import Competing, Refuted, find_domains, needed_leaves
from muster.scheduler.planning.exact import BudgetSpent, DualCertificate, Relaxed, decide, relax
from muster.scheduler.planning.first_fit import MOST_ORDERS, pack
from muster.scheduler.planning.node_matrix import Ints, NodeMatrix, NodeSet
from muster.scheduler.planning.packing_instance import PackedPods, PackingInstance, ScopedRequest
from muster.scheduler.planning.pruning import DomainBounds, DomainSymmetry, Task

# A step is about 40 microseconds of work; what takes longer costs more.
STATE_COST = 3


INSTANCE_COST = 5


PODS_PER_STEP = 16  # when a placement is applied


DESCRIBING = 1_000  # steps, roughly, for what is said about a search that found nothing


DEEPEST = 250  # decisions one after the other


ORDERS_IN_DOMAIN = 1  # of types, before the groups of a domain are packed by prices


MOST_ASSIGNMENTS = 8  # sets of competing groups for which domains are searched together


ChosenDomain = tuple[GroupRequest, int]  # a constrained group and the value id of its domain


Packing = tuple[tuple[ScopedRequest, ...], list[PackedPods]]  # requests, and where their pods are placed


@dataclass(slots=True)
class Found:
    """A placement of the minimum, as counts."""

    packed: list[PackedPods]
    domains: list[ChosenDomain]
    satisfied: list[GroupRequest]  # every group whose minimum holds with these pods


@dataclass(slots=True)
class NotFound:
    """`complete` means that nothing was left to try."""

    complete: bool
    counted: bool = False  # counting each PodGroup alone was enough
    certificate: Refuted | None = None
    classes: int = 0
    tried_domains: int = 0
    orders: int = 0
    relaxed: bool = False  # the certificate holds for the whole request, whatever domains are chosen


@dataclass(slots=True)
class TreeSearch:
    """One search on one node matrix."""

    matrix: NodeMatrix
    budget: Budget
    gave_up: bool = False
    tried_domains: int = 0
    classes: int = 0
    certificate: Refuted | None = None
    _alone: dict[tuple[object, NodeSet], bool] = field(default_factory=dict[tuple[object, NodeSet], bool])
    _able: dict[object, list[tuple[int, NodeSet]]] = field(default_factory=dict[object, list[tuple[int, NodeSet]]])
    _seat_sums: dict[tuple[Shape, NodeSet], int] = field(default_factory=dict[tuple[Shape, NodeSet], int])
    _domain_seats: dict[object, Ints] = field(default_factory=dict[object, Ints])
    _numbers: dict[object, int] = field(default_factory=dict[object, int])
    _failed: set[object] = field(default_factory=set[object])
    _packed: dict[object, Packing | None] = field(default_factory=dict[object, Packing | None])
    _relaxations: dict[object, Relaxed | Refuted | None] = field(default_factory=dict[object, Relaxed | Refuted | None])
    _assigned: set[object] = field(default_factory=set[object])
    _symmetry: DomainSymmetry = field(init=False)
    _bounds: DomainBounds = field(init=False)

    def __post_init__(self) -> None:
        self._symmetry = DomainSymmetry(self.matrix)
        self._bounds = DomainBounds(self.matrix)

    def solve(self, request: GroupRequest, nodes: NodeSet) -> Pausing[Found | NotFound]:
        """A placement of the minimum of a group on some nodes, or what was tried."""
        domains: list[ChosenDomain] = []
        if not self.fits_alone(request, nodes):
            return NotFound(complete=True, counted=True)
        refuted = yield from self._refuted_without_domains(request, nodes)
        if refuted is not None:
            return NotFound(complete=True, certificate=refuted, relaxed=True)
        scoped = yield from self._run(((request, nodes, False),), (), domains)
        if scoped is None:
            if self.budget.pause_due(DESCRIBING):
                yield
            return NotFound(not self.gave_up, False, self.certificate, self.classes, self.tried_domains)
        packed: list[PackedPods] = []
        for part in _components(scoped):
            pods = yield from self._packed_pods(part)
            if pods is None:
                return NotFound(False, tried_domains=self.tried_domains)
            packed += pods
        # What was found is applied at once, which is work too.
        if self.budget.pause_due(len(packed) + sum(int(each.counts.sum()) for each in packed) // PODS_PER_STEP):
            yield
        return Found(packed, domains, _satisfied(request, {part.request for part in scoped}))

    # --- decisions -------------------------------------------------------------------------------

    def _run(
        self, tasks: tuple[Task, ...], scoped: tuple[ScopedRequest, ...], domains: list[ChosenDomain]
    ) -> Pausing[tuple[ScopedRequest, ...] | None]:
        """The PodGroups of a full set of decisions that packs, or None. `domains` grows along the way."""
        if not self.budget.spend(STATE_COST) or len(domains) > DEEPEST:
            self.gave_up = True
            return None
        if self.budget.pause_due():
            yield
        settled = yield from self._settle(tasks, scoped, domains)
        if settled is None:
            return None
        tasks, scoped = settled
        if not tasks:
            return scoped
        state = self._state(tasks, scoped)
        if state in self._failed or self._bounds.exceeded(tasks, scoped):
            return None
        assigned = yield from self._assign(tasks, scoped, domains)
        if assigned is not False:
            return assigned
        task = min(tasks, key=self._alternatives)
        rest = tuple(other for other in tasks if other is not task)
        mark = len(domains)
        for more in self._options(task, rest, scoped, domains):
            found = yield from self._run(rest + more, scoped, domains)
            if found is not None:
                return found
            del domains[mark:]
            if self.budget.exhausted:
                self.gave_up = True
                return None
        self._failed.add(state)
        return None

    def _settle(
        self, tasks: tuple[Task, ...], scoped: tuple[ScopedRequest, ...], domains: list[ChosenDomain]
    ) -> Pausing[tuple[tuple[Task, ...], tuple[ScopedRequest, ...]] | None]:
        """Decide every task that has one alternative only; None when the PodGroups so far do not pack."""
        waiting, open_tasks, fresh = list(tasks), list[Task](), list[ScopedRequest]()
        while waiting:
            request, nodes, chosen = task = waiting.pop()
            if request.topology and not chosen:
                feasible = self._feasible(request, nodes)
                if not feasible:
                    return None
                if len(feasible) > 1:
                    open_tasks.append(task)
                    continue
                value, nodes = feasible[0]
                domains.append((request, value))
            if isinstance(request, PodGroupRequest):
                fresh.append(ScopedRequest(request, nodes))
                continue
            children = [child for child in request.open if self.fits_alone(child, nodes)]
            if len(children) < request.need:
                return None
            if len(children) == request.need:
                waiting += [(child, nodes, False) for child in children]
            else:
                open_tasks.append((request, nodes, True))
        scoped += tuple(fresh)
        changed = set(fresh)
        for part in _components(scoped):
            if changed.intersection(part):
                packs = yield from self._packs(part)
                if not packs:
                    return None
        return tuple(open_tasks), scoped

    def _options(
        self, task: Task, rest: tuple[Task, ...], scoped: tuple[ScopedRequest, ...], domains: list[ChosenDomain]
    ) -> Iterator[tuple[Task, ...]]:
        """The ways to go on from a task: what takes its place."""
        request, nodes, chosen = task
        if chosen or not request.topology:
            yield from self._inside(request, nodes)
            return
        tried = self._symmetry.tried_domains(request, nodes, rest, scoped)
        for value, domain in self._ordered_domains(request, nodes, scoped):
            if tried.has_symmetric(domain):
                continue
            self.tried_domains += 1
            for option in self._inside(request, domain):
                domains.append((request, value))
                yield option
            tried.add(domain)

    def _inside(self, request: GroupRequest, nodes: NodeSet) -> Iterator[tuple[Task, ...]]:
        """The ways to go on once the domain of a group is decided."""
        if isinstance(request, PodGroupRequest):
            yield ((request, nodes, True),)
            return
        able = [child for child in request.open if self.fits_alone(child, nodes)]
        able.sort(key=self._size)
        tried: set[tuple[int, ...]] = set()
        for children in combinations(able, request.need):
            kind = tuple(sorted(self._number(child.signature) for child in children))
            if kind not in tried:
                tried.add(kind)
                yield tuple((child, nodes, False) for child in children)

    def _ordered_domains(
        self, request: GroupRequest, nodes: NodeSet, scoped: tuple[ScopedRequest, ...]
    ) -> list[tuple[int, NodeSet]]:
        """The domains that could hold the group alone, the tightest first."""
        feasible = self._feasible(request, nodes)
        if len(feasible) < 2:
            return feasible
        shapes = {pods.shape for leaf in open_leaves(request) for pods in leaf.identical}

        def room(item: tuple[int, NodeSet]) -> tuple[int, int]:
            _, domain = item
            seats = sum(int(self.matrix.seats(shape)[domain.nodes].sum()) for shape in shapes)
            taken = sum(part.request.need for part in scoped if part.nodes.bits & domain.bits)
            left = seats - taken
            return (left if left >= request.need else seats + 2**40, int(self.matrix.rank[domain.nodes].min()))

        return sorted(feasible, key=room)

    def _feasible(self, request: GroupRequest, nodes: NodeSet) -> list[tuple[int, NodeSet]]:
        """The domains of a constrained group in which counting allows its minimum."""
        key = (request.signature, nodes)
        known = self._able.get(key)
        if known is None:
            found = list(self.matrix.domains(nodes, request.topology).items())
            if isinstance(request, PodGroupRequest):
                able = np.flatnonzero(self._seats_in_domains(request, nodes) >= request.need).tolist()
                found = [found[at] for at in able]
            pinned = self.matrix.value_id(request.topology, request.pin) if request.pin is not None else None
            known = self._able[key] = [
                (value, domain)
                for value, domain in found
                if (pinned is None or value == pinned)
                and (isinstance(request, PodGroupRequest) or self._may_hold(request, domain))
            ]
        return known

    def _seats_in_domains(self, request: PodGroupRequest, nodes: NodeSet) -> Ints:
        """For each domain of a PodGroup's key, how many of its pods fit by counting each shape alone."""
        domains = self.matrix.domains(nodes, request.topology).values()
        total = np.zeros(len(domains), dtype=np.int64)
        for pods in request.identical:
            key = (pods.shape, nodes, request.topology)
            seats = self._domain_seats.get(key)
            if seats is None:
                counted = [self._seats(pods.shape, domain) for domain in domains]
                seats = self._domain_seats[key] = np.array(counted, dtype=np.int64)
            total += np.minimum(seats, pods.count)
        return total

    # --- many groups, one key --------------------------------------------------------------------

    def _assign(
        self, tasks: tuple[Task, ...], scoped: tuple[ScopedRequest, ...], domains: list[ChosenDomain]
    ) -> Pausing[tuple[ScopedRequest, ...] | Literal[False] | None]:
        """Domains for all open groups at once, where all of them only need a domain; None if there are none.

        False if none were found, or the groups leave more to decide than a domain each.
        """
        if len(tasks) < 2 or len(self._assigned) >= MOST_ASSIGNMENTS:
            return False
        chosen: list[ChosenDomain] = []
        found = list(scoped)
        for nodes, key in dict.fromkeys((nodes, request.topology) for request, nodes, _ in tasks):
            competing = self._competing([task for task in tasks if task[1] is nodes and task[0].topology == key])
            if competing is None:
                return False
            parts = tuple(ScopedRequest(leaf, nodes) for leaves in competing.leaves for leaf in leaves)
            relaxed = yield from self._relaxed(parts)
            attempt = self._scoped_key((*parts, *scoped))
            if attempt in self._assigned or not isinstance(relaxed, Relaxed):
                return None if isinstance(relaxed, tuple) else False
            self._assigned.add(attempt)
            self.tried_domains += len(competing.domains)
            taken = yield from find_domains(competing, relaxed, found, self._pack_domain, self.budget)
            if isinstance(taken, bool):
                return None if taken else False
            for group, at in enumerate(taken):
                value, inside = competing.domains[at]
                chosen.append((competing.groups[group], value))
                found += competing.parts(group, inside)
        for part in _components(tuple(found)):
            packs = yield from self._pack_domain(part, self.budget.left // 2)
            if packs is not True:
                return False
        domains += chosen
        return tuple(found)

    def _competing(self, tasks: list[Task]) -> Competing | None:
        """Groups that need nothing but a domain each; None if any of them leaves more to decide."""
        leaves = tuple(needed_leaves(request) for request, _, chosen in tasks if request.topology and not chosen)
        if len(leaves) < len(tasks) or None in leaves:
            return None
        _, nodes, _ = tasks[0]
        groups = tuple(request for request, _, _ in tasks)
        able = tuple(frozenset(value for value, _ in self._feasible(group, nodes)) for group in groups)
        domains = tuple(self.matrix.domains(nodes, groups[0].topology).items())
        return Competing(groups, tuple(each for each in leaves if each is not None), domains, able)

    def _pack_domain(self, part: tuple[ScopedRequest, ...], steps: int) -> Pausing[bool | Refuted | None]:
        """Whether PodGroups fit together, with few steps; what stays undecided is not remembered as a failure."""
        key = self._scoped_key(part)
        if key in self._packed:
            return self._packed[key] is not None
        gave_up, certificate = self.gave_up, self.certificate
        self.gave_up, self.certificate = False, None
        packing = yield from self._pack(part, steps, ORDERS_IN_DOMAIN)
        undecided, refuted = self.gave_up, self.certificate
        self.gave_up, self.certificate = gave_up, certificate
        if undecided:
            return None
        self._packed[key] = packing
        return packing is not None or refuted or False

    # --- bounds ----------------------------------------------------------------------------------

    def fits_alone(self, request: GroupRequest, nodes: NodeSet) -> bool:
        """A necessary condition by counting: the group alone, each of its PodGroups alone."""
        key = (request.signature, nodes)
        known = self._alone.get(key)
        if known is None:
            known = bool(self._feasible(request, nodes)) if request.topology else self._may_hold(request, nodes)
            self._alone[key] = known
        return known

    def _may_hold(self, request: GroupRequest, nodes: NodeSet) -> bool:
        if isinstance(request, PodGroupRequest):
            return sum(min(pods.count, self._seats(pods.shape, nodes)) for pods in request.identical) >= request.need
        return sum(self.fits_alone(child, nodes) for child in request.open) >= request.need

    def _seats(self, shape: Shape, nodes: NodeSet) -> int:
        """How many pods of a shape some nodes take when nothing else comes."""
        known = self._seat_sums.get((shape, nodes))
        if known is None:
            known = self._seat_sums[shape, nodes] = int(self.matrix.seats(shape)[nodes.nodes].sum())
        return known

    def _refuted_without_domains(self, request: GroupRequest, nodes: NodeSet) -> Pausing[Refuted | None]:
        """Without regard to domains all PodGroups must fit together; asked only where domains are in play."""
        leaves = _mandatory(request)
        if leaves is None or len(leaves) < 2 or not _constrained(request):
            return None
        relaxed = yield from self._relaxed(tuple(ScopedRequest(leaf, nodes) for leaf in leaves))
        return relaxed if isinstance(relaxed, tuple) else None

    def _relaxed(self, parts: tuple[ScopedRequest, ...]) -> Pausing[Relaxed | Refuted | None]:
        """The patterns and prices of some PodGroups together, or the certificate that they do not fit."""
        key = self._scoped_key(parts)
        if key not in self._relaxations:
            self.budget.spend(INSTANCE_COST)
            instance = PackingInstance(self.matrix, parts)
            found = yield from relax(instance, self.budget.part(self.budget.left // 2))
            self._relaxations[key] = (instance, found) if isinstance(found, DualCertificate) else found
        return self._relaxations[key]

    def _alternatives(self, task: Task) -> tuple[int, int]:
        """How many alternatives a task has, fewest first; among equals the largest group."""
        request, nodes, chosen = task
        count = len(self._feasible(request, nodes)) if request.topology and not chosen else 1
        if isinstance(request, CompositeRequest) and request.need < len(request.open):
            count *= 2 + len(request.open) - request.need
        return count, -self._size(request)

    def _size(self, request: GroupRequest) -> int:
        """Roughly what the needed pods take of all nodes, in parts per million."""
        if isinstance(request, CompositeRequest):
            return sum(sorted(self._size(child) for child in request.open)[: request.need])
        total = np.maximum(self.matrix.free.clip(min=0).sum(axis=1), 1)
        share = [float((self.matrix.request(pods.shape) / total).max()) * 1e6 for pods in request.identical]
        missing, size = request.need, 0.0
        for each, count in sorted(zip(share, (pods.count for pods in request.identical), strict=True)):
            size += each * min(count, missing)
            missing -= min(count, missing)
        return int(size)

    # --- packing ---------------------------------------------------------------------------------

    def _packs(self, part: tuple[ScopedRequest, ...]) -> Pausing[bool]:
        """Whether PodGroups that share nodes fit together."""
        if len(part) == 1 and len(part[0].request.identical) == 1:
            return True  # counted before: one shape alone
        key = self._scoped_key(part)
        if key not in self._packed:
            self._packed[key] = yield from self._pack(part)
        return self._packed[key] is not None

    def _pack(
        self, part: tuple[ScopedRequest, ...], steps: int | None = None, orders: int = MOST_ORDERS
    ) -> Pausing[Packing | None]:
        self.budget.spend(INSTANCE_COST)
        instance = PackingInstance(self.matrix, part)
        placed = pack(instance, self.budget, orders)
        if placed is not None:
            return part, instance.packed(placed)
        if self.budget.pause_due():
            yield
        # One hard corner must not use up what the rest of the tree needs.
        left = self.budget.left // 2
        answer = yield from decide(instance, self.budget.part(left if steps is None else min(left, steps)))
        if isinstance(answer, np.ndarray):
            return part, instance.packed(answer)
        if isinstance(answer, BudgetSpent):
            self.gave_up = True
        elif isinstance(answer, DualCertificate):
            self.certificate = (instance, answer)
        else:
            self.classes = max(self.classes, answer.classes)
        return None

    def _packed_pods(self, part: tuple[ScopedRequest, ...]) -> Pausing[list[PackedPods] | None]:
        known = self._packed.get(self._scoped_key(part))
        if known is not None and set(known[0]) == set(part):
            return known[1]
        again = yield from self._pack(part)
        return again[1] if again is not None else None

    # --- memory ----------------------------------------------------------------------------------

    def _number(self, signature: object) -> int:
        return self._numbers.setdefault(signature, len(self._numbers))

    def _scoped_key(self, scoped: tuple[ScopedRequest, ...]) -> object:
        return tuple(sorted((self._number(part.request.signature), id(part.nodes)) for part in scoped))

    def _state(self, tasks: tuple[Task, ...], scoped: tuple[ScopedRequest, ...]) -> object:
        wanted = tuple(sorted((self._number(task[0].signature), id(task[1]), task[2]) for task in tasks))
        return wanted, self._scoped_key(scoped)


def _mandatory(request: GroupRequest) -> list[PodGroupRequest] | None:
    """The PodGroups that must all be placed; None when children can be chosen."""
    if isinstance(request, PodGroupRequest):
        return [request]
    if request.need < len(request.open):
        return None
    below = [_mandatory(child) for child in request.open]
    return None if None in below else [leaf for part in below for leaf in part or ()]


def _constrained(request: GroupRequest) -> bool:
    """Whether a domain must be chosen for the group or for a group below it."""
    if request.topology:
        return True
    return isinstance(request, CompositeRequest) and any(_constrained(child) for child in request.open)


def _satisfied(request: GroupRequest, placed: set[PodGroupRequest]) -> list[GroupRequest]:
    """The groups that are satisfied once these PodGroups are placed, a group after its children."""
    if isinstance(request, PodGroupRequest):
        return [request] if request in placed else []
    below = [_satisfied(child, placed) for child in request.open]
    count = sum(bool(part) and part[-1] is child for part, child in zip(below, request.open, strict=True))
    return [*(each for part in below for each in part), *([request] if count >= request.need else [])]


def _components(scoped: tuple[ScopedRequest, ...]) -> list[tuple[ScopedRequest, ...]]:
    """The PodGroups that share nodes, directly or through others, together."""
    parts: list[tuple[int, list[ScopedRequest]]] = []
    for one in scoped:
        bits, joined = one.nodes.bits, [one]
        apart: list[tuple[int, list[ScopedRequest]]] = []
        for other_bits, members in parts:
            if other_bits & bits:
                bits |= other_bits
                joined = members + joined
            else:
                apart.append((other_bits, members))
        parts = [*apart, (bits, joined)]
    return [tuple(members) for _, members in parts]
