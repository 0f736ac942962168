"""One entity, one snapshot, one verdict: the request of an entity as it is now, and what the planner says to it.

Everything here happens in a trial and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from muster.scheduler.checking.validate import validate
from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PendingPod, PodGroupRequest, leaves
from muster.scheduler.placement.verdict import DomainsEvaluated, Placed, SearchStats, Undecided, Verdict
from muster.scheduler.planning.paused_search import PausedSearch
from muster.scheduler.planning.plan import plan, plan_first_slice, resumed_verdict
from muster.scheduler.planning.tree_search import Found, NotFound
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.runtime.diagnosis import Diagnosis
from muster.scheduler.runtime.trial import Trial
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.state.searches import KeptSearch

MOST_SLICES = 10  # of one search; a slice has the configured number of steps


MOST_SHAPES = 16  # distinct shapes that a failure is explained and requeued by


class Evaluation:
    """A verdict with what is needed to explain it."""

    __slots__ = ("diagnoses", "domains", "request", "verdict", "version")

    def __init__(
        self,
        request: GroupRequest,
        verdict: Verdict,
        diagnoses: dict[int, Diagnosis],
        domains: DomainsEvaluated,
        version: int,
    ) -> None:
        self.request = request
        self.verdict = verdict
        self.diagnoses = diagnoses  # shape id -> why not one more pod of it fits anywhere
        self.domains = domains
        self.version = version  # of the state that the verdict is about


def evaluate(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest | None = None, evicted: Iterable[str] = ()
) -> Evaluation:
    """The verdict for an entity now, for another request, or without some pods; searched to the end."""
    request = request or current_request(state, entity)
    with state.evaluator.trial() as trial:
        _place_nominated(state, entity, trial)
        trial.evict_all(evicted)
        domains = DomainsEvaluated()
        verdict = plan(request, trial, Budget(state.config.budget_steps * MOST_SLICES), evaluated=domains)
        return Evaluation(request, verdict, _diagnoses(state, entity, trial, verdict), domains, state.version)


def evaluate_first_slice(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, *, search: bool
) -> Evaluation | PausedSearch | None:
    """The verdict, if one slice is enough; None if greedy placement fails and no search is wanted."""
    steps = state.config.budget_steps
    budget = Budget(steps * MOST_SLICES, slice_steps=steps)
    with state.evaluator.trial() as trial:
        _place_nominated(state, entity, trial)
        domains = DomainsEvaluated()
        verdict = plan_first_slice(request, trial, budget, search=search, evaluated=domains)
        state.planned_steps += budget.spent
        if verdict is None or isinstance(verdict, PausedSearch):
            return verdict
        return Evaluation(request, verdict, _diagnoses(state, entity, trial, verdict), domains, state.version)


def evaluate_resumed(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, kept: KeptSearch, answer: Found | NotFound
) -> Evaluation:
    """The verdict of a search that has ended, about the cluster as it is now."""
    with state.evaluator.trial() as trial:
        _place_nominated(state, entity, trial)
        verdict = resumed_verdict(kept.paused, answer, trial) or Undecided(SearchStats(kept.paused.budget.spent))
        return Evaluation(request, verdict, _diagnoses(state, entity, trial, verdict), DomainsEvaluated(), kept.version)


def evaluate_beside_room(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> Evaluation | None:
    """The verdict if seats kept for others are room and no pods yet; None if none are kept.

    A plan may need that such a pod is there (what it is to be near to, what it is spread against), and fail the check
    because it is not. One from here is taken if it holds either way, as kube-scheduler filters twice.
    """
    kept = Counter(state.nominated_against(entity))
    if not kept:
        return None
    budget, domains = Budget(state.config.budget_steps), DomainsEvaluated()
    with state.evaluator.trial() as trial:
        for (shape, slot), count in kept.items():
            trial.keep_room(shape, slot, count)
        verdict = plan(request, trial, budget, evaluated=domains)
        diagnoses = _diagnoses(state, entity, trial, verdict)
    if isinstance(verdict, Placed) and not _holds_either_way(state, request, verdict, kept):
        verdict = Undecided(SearchStats(budget.spent))
    return Evaluation(request, verdict, diagnoses, domains, state.version)


def _holds_either_way(
    state: SchedulerState, request: GroupRequest, placed: Placed, kept: Counter[tuple[Shape, int]]
) -> bool:
    if validate(placed, request, state.cluster, nominated=list(kept.elements())) is not None:
        return False
    shapes = {member.uid: member.shape for leaf in leaves(request) for member in leaf.members}
    with state.evaluator.trial() as trial:
        for (shape, slot), count in kept.items():
            trial.place(shape, slot, count)
        for assignment in placed.assignments:
            shape = shapes[assignment.uid]
            if not trial.feasible(shape)[assignment.index]:
                return False
            trial.place(shape, assignment.index)
    return True


def _place_nominated(state: SchedulerState, entity: QueuedEntity, trial: Trial) -> None:
    """Count the seats that are nominated or reserved for others as taken."""
    nominated = state.nominated_against(entity)
    for (shape, slot), count in Counter(nominated).items() if nominated else ():
        trial.place(shape, slot, count)


def _diagnoses(state: SchedulerState, entity: QueuedEntity, trial: Trial, verdict: Verdict) -> dict[int, Diagnosis]:
    """Why not one more pod of a shape fits anywhere, by shape id."""
    if isinstance(verdict, Placed):
        return {}
    full = (shape for shape in _shapes(state, entity) if not trial.seats(shape).any())
    return {shape.id: trial.diagnose(shape) for shape in full}


def current_request(state: SchedulerState, entity: QueuedEntity) -> GroupRequest:
    """What an entity requests; shapes are looked up again when a selector met for the first time tells pods apart."""
    while True:
        known = len(state.cluster.pod_counts.keys)
        request = request_of(entity, state.shape_of, state.domain_of, state.expected_pods)
        if len(state.cluster.pod_counts.keys) == known:
            return request


def _shapes(state: SchedulerState, entity: QueuedEntity) -> list[Shape]:
    seen: dict[int, Shape] = {}
    for member in state.members_of(entity):
        shape = state.shape_of(member)
        seen.setdefault(shape.id, shape)
    return list(seen.values())[:MOST_SHAPES]


ShapeOf = Callable[[Member], Shape]


DomainOf = Callable[[str, str], str]  # (node name, label key) -> value, "" without the label


ExpectedOf = Callable[[Group], tuple[PendingPod, ...]]  # members of a PodGroup that do not exist yet


def nobody(leaf: Group) -> tuple[PendingPod, ...]:
    """No members are expected."""
    return ()


def request_of(
    entity: QueuedEntity, shape_of: ShapeOf, domain_of: DomainOf, expected_of: ExpectedOf = nobody
) -> GroupRequest:
    """What an entity requests now; members that are expected come after those that exist."""
    if entity.member is not None:
        return PodGroupRequest(entity.key, minimum=1, bound=0, members=(_pending_pod(entity.member, shape_of),))
    assert entity.group is not None, "an entity is a pod or a group"
    return _tree(entity.group, shape_of, domain_of, expected_of)


def _tree(group: Group, shape_of: ShapeOf, domain_of: DomainOf, expected_of: ExpectedOf) -> GroupRequest:
    topology = group.topology or ""
    domains = domains_of(group, topology, domain_of) if topology else ()
    if group.is_leaf:
        pending = sorted(group.pending.values(), key=lambda member: member.order)
        members = tuple(_pending_pod(member, shape_of) for member in pending)
        if group.expectation.total:
            members += expected_of(group)
        return PodGroupRequest(group.key, group.minimum, group.bound, members, topology, domains)
    children = tuple(
        _tree(child, shape_of, domain_of, expected_of) for child in group.ordered_children() if child.exists
    )
    return CompositeRequest(group.key, group.minimum, children, topology, domains)


def _pending_pod(member: Member, shape_of: ShapeOf) -> PendingPod:
    return PendingPod(member.uid, member.ref.namespace, member.ref.name, shape_of(member), member.traits[1])


def domains_of(group: Group, topology: str, domain_of: DomainOf) -> tuple[str, ...]:
    """The domains of the members that run already; a node without the label counts as the domain without a name."""
    nodes = {member.node for leaf in group.leaves() for member in leaf.running.values()}
    return tuple(sorted({domain_of(node, topology) for node in nodes}))
