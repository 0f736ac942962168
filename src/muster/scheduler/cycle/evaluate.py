"""From a tree in the forest to a demand for the planner."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups import group
from muster.scheduler.groups.group import Group
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PendingPod, PodGroupRequest
from muster.scheduler.placement.verdict import Budget, DomainsEvaluated, Placed, Undecided, Verdict
from muster.scheduler.planning.plan import plan
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.runtime.diagnosis import Diagnosis
from muster.scheduler.state.scheduler_state import SchedulerState

RETRY_FACTOR = 10  # an undecided search is repeated once, with so many times the steps


MOST_WANTS = 16  # distinct shapes a parked root is listed under


class Evaluation:
    """A verdict with what is needed to explain it."""

    __slots__ = ("diagnoses", "domains", "request", "verdict")

    def __init__(
        self, request: GroupRequest, verdict: Verdict, refusals: dict[int, Diagnosis], judging: DomainsEvaluated
    ) -> None:
        self.request = request
        self.verdict = verdict
        self.diagnoses = refusals  # shape id -> why not one more of it fits anywhere
        self.domains = judging


def evaluate(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest | None = None, evicted: Iterable[str] = ()
) -> Evaluation:
    """What could be done for a root now, for another demand, or without some pods; changes nothing."""
    request = request or current_request(state, entity)
    steps = state.config.budget_steps
    with state.evaluator.trial() as trial:
        for shape, slot in state.held_against(entity):
            trial.place(shape, slot)
        trial.evict_all(evicted)
        judging = DomainsEvaluated()
        verdict = plan(request, trial, Budget(steps), evaluated=judging)
        if isinstance(verdict, Undecided):
            verdict = plan(request, trial, Budget(steps * RETRY_FACTOR), evaluated=judging)
        refusals: dict[int, Diagnosis] = {}
        if not isinstance(verdict, Placed):
            for shape in _shapes(state, entity):
                if not trial.seats(shape).any():
                    refusals[shape.id] = trial.diagnose(shape)
    return Evaluation(request, verdict, refusals, judging)


def current_request(state: SchedulerState, entity: QueuedEntity) -> GroupRequest:
    """What a root asks for. A selector met for the first time tells pods apart anew: then shapes are asked again."""
    while True:
        known = len(state.cluster.pod_counts.keys)
        request = request_of(entity, state.shape_of, state.domain_of)
        if len(state.cluster.pod_counts.keys) == known:
            return request


def _shapes(state: SchedulerState, entity: QueuedEntity) -> list[Shape]:
    seen: dict[int, Shape] = {}
    for member in state.members_of(entity):
        shape = state.shape_of(member)
        seen.setdefault(shape.id, shape)
    return list(seen.values())[:MOST_WANTS]


ShapeOf = Callable[[group.Member], Shape]


DomainOf = Callable[[str, str], str]  # (node name, label key) -> value, "" without the label


def request_of(entity: QueuedEntity, shape_of: ShapeOf, domain_of: DomainOf) -> GroupRequest:
    """What a root asks for now."""
    if entity.member is not None:
        return PodGroupRequest(entity.key, minimum=1, bound=0, members=(_wish(entity.member, shape_of),))
    assert entity.group is not None, "a root is a pod or a group"
    return _tree(entity.group, shape_of, domain_of)


def _tree(group: Group, shape_of: ShapeOf, domain_of: DomainOf) -> GroupRequest:
    topology = group.topology or ""
    domains = domains_of(group, topology, domain_of) if topology else ()
    if group.is_leaf:
        pending = sorted(group.pending.values(), key=lambda member: member.order)
        members = tuple(_wish(member, shape_of) for member in pending)
        return PodGroupRequest(group.key, group.minimum, group.bound, members, topology, domains)
    children = tuple(_tree(child, shape_of, domain_of) for child in group.ordered_children() if child.exists)
    return CompositeRequest(group.key, group.minimum, children, topology, domains)


def _wish(member: group.Member, shape_of: ShapeOf) -> PendingPod:
    return PendingPod(member.uid, member.ref.namespace, member.ref.name, shape_of(member), member.traits[1])


def domains_of(group: Group, topology: str, domain_of: DomainOf) -> tuple[str, ...]:
    """The domains that members sit in already; a node without the label counts as the domain without a name."""
    nodes = {member.node for leaf in group.leaves() for member in leaf.running.values()}
    return tuple(sorted({domain_of(node, topology) for node in nodes}))
