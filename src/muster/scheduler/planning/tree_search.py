"""The search over a whole tree: which children, which domains, and whether their loads fit together.

A decision is either a set of children of a branch or a domain of a constrained group; the group with
the fewest ways goes first. Every time a leaf gets its scope, the loads that share nodes with it are
packed together, exactly if need be, so a dead end is seen when it arises. Failed states are
remembered by what they ask for, not by who asks, which makes equal siblings count once; domains that
nothing tells apart count once too. A search that ends without giving up anywhere has tried it all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from muster.scheduler.placement.verdict import Budget
from muster.scheduler.planning.exact import BudgetSpent, DualCertificate, decide
from muster.scheduler.planning.first_fit import pack
from muster.scheduler.planning.goal import BranchGoal, Goal, LeafGoal, open_leaves
from muster.scheduler.planning.node_matrix import NodeMatrix, NodeSet
from muster.scheduler.planning.packing_instance import PackedPods, PackingInstance, ScopedRequest
from muster.scheduler.planning.pruning import DomainBounds, DomainSymmetry

Task = tuple[Goal, NodeSet, bool]  # a group, where it may lie, and whether its domain is settled


# A step is about 40 microseconds of work; what takes longer costs more.
STATE_COST = 3


QUESTION_COST = 5


DEEPEST = 250  # decisions one after the other


Choice = tuple[Goal, int]  # a constrained group and the value id of its domain


Packing = tuple[tuple[ScopedRequest, ...], list[PackedPods]]  # requests, and where their pods go


@dataclass(slots=True)
class Found:
    seated: list[PackedPods]
    domains: list[Choice]
    held: list[Goal]  # every group whose minimum holds with these seats


@dataclass(slots=True)
class NotFound:
    """`complete` means that nothing was left to try."""

    complete: bool
    counted: bool = False  # counting each leaf alone was enough
    weighed: tuple[PackingInstance, DualCertificate] | None = None
    classes: int = 0
    tried_domains: int = 0
    orders: int = 0


@dataclass(slots=True)
class TreeSearch:
    board: NodeMatrix
    budget: Budget
    gave_up: bool = False
    tried_domains: int = 0
    classes: int = 0
    weighed: tuple[PackingInstance, DualCertificate] | None = None
    _alone: dict[tuple[object, NodeSet], bool] = field(default_factory=dict[tuple[object, NodeSet], bool])
    _names: dict[object, int] = field(default_factory=dict[object, int])
    _failed: set[object] = field(default_factory=set[object])
    _packed: dict[object, Packing | None] = field(default_factory=dict[object, Packing | None])
    _twins: DomainSymmetry = field(init=False)
    _waste: DomainBounds = field(init=False)

    def __post_init__(self) -> None:
        self._twins = DomainSymmetry(self.board)
        self._waste = DomainBounds(self.board)

    def solve(self, goal: Goal, scope: NodeSet) -> Found | NotFound:
        domains: list[Choice] = []
        if not self.fits_alone(goal, scope):
            return NotFound(complete=True, counted=True)
        if not self._fits_loosely(goal, scope):
            return NotFound(complete=True, classes=self.classes)
        loads = self._run(((goal, scope, False),), (), domains)
        if loads is None:
            return NotFound(not self.gave_up, False, self.weighed, self.classes, self.tried_domains)
        seated = [seat for part in _components(loads) for seat in self._seats(part)]
        return Found(seated, domains, _held(goal, {id(load.leaf) for load in loads}))

    # --- decisions -------------------------------------------------------------------------------

    def _run(
        self, tasks: tuple[Task, ...], loads: tuple[ScopedRequest, ...], domains: list[Choice]
    ) -> tuple[ScopedRequest, ...] | None:
        """The loads of a full set of decisions that packs, or None. `domains` grows along the way."""
        if not self.budget.spend(STATE_COST) or len(domains) > DEEPEST:
            self.gave_up = True
            return None
        settled = self._settle(tasks, loads, domains)
        if settled is None:
            return None
        tasks, loads = settled
        if not tasks:
            return loads
        state = self._state(tasks, loads)
        if state in self._failed or self._waste.too_much(tasks, loads):
            return None
        task = min(tasks, key=self._ways)
        rest = tuple(other for other in tasks if other is not task)
        mark = len(domains)
        for more in self._options(task, rest, loads, domains):
            found = self._run(rest + more, loads, domains)
            if found is not None:
                return found
            del domains[mark:]
            if self.budget.exhausted:
                self.gave_up = True
                return None
        self._failed.add(state)
        return None

    def _settle(
        self, tasks: tuple[Task, ...], loads: tuple[ScopedRequest, ...], domains: list[Choice]
    ) -> tuple[tuple[Task, ...], tuple[ScopedRequest, ...]] | None:
        """Follow every task that has one way only; None when the loads so far do not pack."""
        waiting, open_tasks, fresh = list(tasks), list[Task](), list[ScopedRequest]()
        while waiting:
            goal, scope, settled = task = waiting.pop()
            if goal.topology and not settled:
                able = self._able(goal, scope)
                if not able:
                    return None
                if len(able) > 1:
                    open_tasks.append(task)
                    continue
                value, scope = able[0]
                domains.append((goal, value))
            if isinstance(goal, LeafGoal):
                fresh.append(ScopedRequest(goal, scope))
                continue
            children = [child for child in goal.open if self.fits_alone(child, scope)]
            if len(children) < goal.need:
                return None
            if len(children) == goal.need:
                waiting += [(child, scope, False) for child in children]
            else:
                open_tasks.append((goal, scope, True))
        loads += tuple(fresh)
        touched = set(fresh)
        if not all(self._packs(part) for part in _components(loads) if touched.intersection(part)):
            return None
        return tuple(open_tasks), loads

    def _options(
        self, task: Task, rest: tuple[Task, ...], loads: tuple[ScopedRequest, ...], domains: list[Choice]
    ) -> Iterator[tuple[Task, ...]]:
        """The ways to go on from a task: what takes its place."""
        goal, scope, settled = task
        if settled or not goal.topology:
            yield from self._inside(goal, scope)
            return
        dead = self._twins.watch(goal, scope, rest, loads)
        for value, domain in self._domains(goal, scope, loads):
            if dead.covers(domain):
                continue
            self.tried_domains += 1
            for option in self._inside(goal, domain):
                domains.append((goal, value))
                yield option
            dead.add(domain)

    def _inside(self, goal: Goal, scope: NodeSet) -> Iterator[tuple[Task, ...]]:
        """The ways to go on once the scope of a group is settled."""
        if isinstance(goal, LeafGoal):
            yield ((goal, scope, True),)
            return
        able = [child for child in goal.open if self.fits_alone(child, scope)]
        able.sort(key=self._burden)
        tried: set[tuple[int, ...]] = set()
        for chosen in combinations(able, goal.need):
            kind = tuple(sorted(self._name(child.signature) for child in chosen))
            if kind not in tried:
                tried.add(kind)
                yield tuple((child, scope, False) for child in chosen)

    def _domains(self, goal: Goal, scope: NodeSet, loads: tuple[ScopedRequest, ...]) -> list[tuple[int, NodeSet]]:
        """The domains that could hold the group alone, the tightest first."""
        able = self._able(goal, scope)
        if len(able) < 2:
            return able
        shapes = sorted({lot.shape for leaf in open_leaves(goal) for lot in leaf.lots})

        def room(item: tuple[int, NodeSet]) -> tuple[int, int]:
            _, domain = item
            seats = sum(int(self.board.seats(shape)[domain.nodes].sum()) for shape in shapes)
            taken = sum(load.leaf.need for load in loads if load.nodes.bits & domain.bits)
            left = seats - taken
            return (left if left >= goal.need else seats + 2**40, int(self.board.rank[domain.nodes].min()))

        return sorted(able, key=room)

    def _able(self, goal: Goal, scope: NodeSet) -> list[tuple[int, NodeSet]]:
        found = self.board.domains(scope, goal.topology)
        pinned = self.board.value_id(goal.topology, goal.pin) if goal.pin is not None else None
        return [
            (value, domain)
            for value, domain in found.items()
            if (pinned is None or value == pinned) and self._holds(goal, domain)
        ]

    # --- bounds ----------------------------------------------------------------------------------

    def fits_alone(self, goal: Goal, scope: NodeSet) -> bool:
        """A necessary condition by counting: the group alone, each of its leaves alone."""
        key = (goal.signature, scope)
        known = self._alone.get(key)
        if known is None:
            known = bool(self._able(goal, scope)) if goal.topology else self._holds(goal, scope)
            self._alone[key] = known
        return known

    def _holds(self, goal: Goal, scope: NodeSet) -> bool:
        if isinstance(goal, LeafGoal):
            seats = sum(min(lot.count, int(self.board.seats(lot.shape)[scope.nodes].sum())) for lot in goal.lots)
            return seats >= goal.need
        return sum(self.fits_alone(child, scope) for child in goal.open) >= goal.need

    def _fits_loosely(self, goal: Goal, scope: NodeSet) -> bool:
        """Without regard to domains all leaves must fit together; asked only where domains are in play."""
        leaves = _mandatory(goal)
        if leaves is None or len(leaves) < 2 or not any(leaf.topology for leaf in leaves):
            return True
        loads = tuple(ScopedRequest(leaf, scope) for leaf in leaves)
        gave_up, weighed = self.gave_up, self.weighed
        fits = self._pack(loads) is not None or self.gave_up
        self.gave_up, self.weighed = gave_up, weighed
        return fits

    def _ways(self, task: Task) -> tuple[int, int]:
        """How many ways a task has, fewest first; among equals the heaviest."""
        goal, scope, settled = task
        ways = len(self._able(goal, scope)) if goal.topology and not settled else 1
        if isinstance(goal, BranchGoal) and goal.need < len(goal.open):
            ways *= 2 + len(goal.open) - goal.need
        return ways, -self._burden(goal)

    def _burden(self, goal: Goal) -> int:
        """A rough size: what the needed members take of the board, in parts per million."""
        if isinstance(goal, BranchGoal):
            return sum(sorted(self._burden(child) for child in goal.open)[: goal.need])
        total = np.maximum(self.board.free.clip(min=0).sum(axis=1), 1)
        share = [float((self.board.requests[lot.shape] / total).max()) * 1e6 for lot in goal.lots]
        picks = sorted(zip(share, (lot.count for lot in goal.lots), strict=True))
        missing, burden = goal.need, 0.0
        for size, count in picks:
            burden += size * min(count, missing)
            missing -= min(count, missing)
        return int(burden)

    # --- packing ---------------------------------------------------------------------------------

    def _packs(self, part: tuple[ScopedRequest, ...]) -> bool:
        """Whether loads that share nodes fit together."""
        if len(part) == 1 and len(part[0].leaf.lots) == 1:
            return True  # counted before: one shape alone
        key = self._loads_key(part)
        if key not in self._packed:
            self._packed[key] = self._pack(part)
        return self._packed[key] is not None

    def _pack(self, part: tuple[ScopedRequest, ...]) -> Packing | None:
        self.budget.spend(QUESTION_COST)
        question = PackingInstance(self.board, part)
        placed = pack(question, self.budget)
        if placed is not None:
            return part, question.seated(placed)
        # One hard corner must not use up what the rest of the tree needs.
        share = Budget(max(1, (self.budget.limit - self.budget.spent) // 2))
        answer = decide(question, share)
        self.budget.spend(share.spent)
        if isinstance(answer, np.ndarray):
            return part, question.seated(answer)
        if isinstance(answer, BudgetSpent):
            self.gave_up = True
        elif isinstance(answer, DualCertificate):
            self.weighed = (question, answer)
        else:
            self.classes = max(self.classes, answer.classes)
        return None

    def _seats(self, part: tuple[ScopedRequest, ...]) -> list[PackedPods]:
        known = self._packed.get(self._loads_key(part))
        if known is not None and set(known[0]) == set(part):
            return known[1]
        again = self._pack(part)
        return again[1] if again is not None else []

    # --- memory ----------------------------------------------------------------------------------

    def _name(self, signature: object) -> int:
        return self._names.setdefault(signature, len(self._names))

    def _loads_key(self, loads: tuple[ScopedRequest, ...]) -> object:
        return tuple(sorted((self._name(load.leaf.signature), id(load.nodes)) for load in loads))

    def _state(self, tasks: tuple[Task, ...], loads: tuple[ScopedRequest, ...]) -> object:
        wanted = tuple(sorted((self._name(goal.signature), id(scope), done) for goal, scope, done in tasks))
        return wanted, self._loads_key(loads)


def _mandatory(goal: Goal) -> list[LeafGoal] | None:
    """The leaves that must all be seated; None when children can be chosen."""
    if isinstance(goal, LeafGoal):
        return [goal]
    if goal.need < len(goal.open):
        return None
    below = [_mandatory(child) for child in goal.open]
    return None if None in below else [leaf for part in below for leaf in part or ()]


def _held(goal: Goal, loaded: set[int]) -> list[Goal]:
    """The groups that hold once the leaves of these identities are seated, a group after its children."""
    if isinstance(goal, LeafGoal):
        return [goal] if id(goal) in loaded else []
    below = [_held(child, loaded) for child in goal.open]
    holding = sum(bool(part) and part[-1] is child for part, child in zip(below, goal.open, strict=True))
    return [*(held for part in below for held in part), *([goal] if holding >= goal.need else [])]


def _components(loads: tuple[ScopedRequest, ...]) -> list[tuple[ScopedRequest, ...]]:
    """Loads that share nodes, directly or through others, belong together."""
    parts: list[tuple[int, list[ScopedRequest]]] = []
    for load in loads:
        bits, joined = load.nodes.bits, [load]
        apart: list[tuple[int, list[ScopedRequest]]] = []
        for other_bits, members in parts:
            if other_bits & bits:
                bits |= other_bits
                joined = members + joined
            else:
                apart.append((other_bits, members))
        parts = [*apart, (bits, joined)]
    return [tuple(members) for _, members in parts]
