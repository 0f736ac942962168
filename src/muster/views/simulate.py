"""What would happen if some manifests were submitted now. Nothing is written to the cluster.

Room that is kept for groups which have waited long is kept in the simulation as well, for those of which the
conditions say so.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from muster.views.natural_order import natural
from muster.views.schedulers import scheduler_for, time_of

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.groups.group import Member
    from muster.scheduler.interface.keys import ObjectRef
    from muster.scheduler.simulation.simulate import Simulation
    from muster.scheduler.simulation.snapshot import Snapshot
    from muster.views.progress import Progress
    from muster.views.submission import Batch


class Placement(msgspec.Struct, frozen=True):
    """A submitted pod (namespace/name) and the node that it would be bound to."""

    pod: str
    node: str


class Victim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod that would be evicted, and for whom (kind/name)."""

    pod: str
    preemptor: str
    pods: int = 1  # more where a viewer is told a number in place of names


class WaitingPod(msgspec.Struct, frozen=True):
    """A submitted pod that would not be bound, and why."""

    pod: str
    reason: str
    undecided: bool = False


class GroupCondition(msgspec.Struct, frozen=True):
    """The condition that a submitted group would have."""

    kind: str
    namespace: str
    name: str
    status: str
    reason: str
    message: str


class Answer(msgspec.Struct, frozen=True):
    """The JSON of `muster simulate -o json`."""

    fits: bool
    undecided: bool
    pods: int  # how many were submitted
    placements: tuple[Placement, ...]
    victims: tuple[Victim, ...]
    pending: tuple[WaitingPod, ...]
    groups: tuple[GroupCondition, ...]


def simulate(
    snapshot: Snapshot, batches: list[Batch], namespace: str = "default", progress: Progress | None = None
) -> Answer:
    """Schedule what is pending; then submit batch after batch, and schedule all there is to schedule after each."""
    return simulated(snapshot, batches, namespace, progress)[0]


def simulated(
    snapshot: Snapshot, batches: list[Batch], namespace: str = "default", progress: Progress | None = None
) -> tuple[Answer, Scheduler]:
    """The same, and the scheduler as it is afterwards."""
    from muster.scheduler.simulation.simulate import Simulation
    from muster.views.submission import submit

    submitted = asyncio.run(submit(batches, snapshot, namespace))
    pods = [event.object for batch in submitted for event in batch if event.kind == "Pod"]
    names = {pod.spec.scheduler_name for pod in pods}
    known = msgspec.structs.replace(snapshot, schedulers=tuple(sorted({*snapshot.schedulers, *names})))
    now = time_of(known)
    scheduler = scheduler_for(known, progress, now=now)
    if progress is not None:
        progress.stage("Deciding")
    Simulation(scheduler, now).run()
    after = Simulation(scheduler, now)
    for batch in submitted:
        for event in batch:
            scheduler.handle(event, after.now)
        after.run()
    groups = {event.object.metadata.uid for batch in submitted for event in batch}
    return _answer(after, [_ref(pod) for pod in pods], groups), scheduler


def _ref(pod: Any) -> ObjectRef:
    from muster.scheduler.interface.keys import ObjectRef

    return ObjectRef("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _answer(simulation: Simulation, submitted: list[ObjectRef], uids: set[str]) -> Answer:
    view = simulation.scheduler.view()
    placed = [Placement(_name(ref), simulation.placed[ref]) for ref in submitted if ref in simulation.placed]
    members = [(ref, view.members[ref.uid]) for ref in submitted if ref.uid in view.members]
    pending = [_pending(simulation, ref, member) for ref, member in members if not member.node]
    victims = tuple(Victim(_name(pod), f"{by.kind}/{by.name}") for pod, by in simulation.victims.items())
    groups = tuple(
        GroupCondition(ref.kind, ref.namespace, ref.name, condition.status, condition.reason, condition.message)
        for ref, condition in simulation.conditions.items()
        if ref.kind != "Pod" and ref.uid in uids and condition.type.endswith("Scheduled")
    )
    fits = len(placed) == len(submitted)
    undecided = bool(pending) and all(each.undecided for each in pending)
    placements = tuple(sorted(placed, key=lambda placement: natural(placement.pod)))
    return Answer(fits, undecided, len(submitted), placements, victims, tuple(pending), groups)


def _pending(simulation: Simulation, ref: ObjectRef, member: Member) -> WaitingPod:
    from muster.scheduler.status.messages import UNDECIDED_PREFIX
    from muster.scheduler.status.waiting import own_wait

    group, condition = member.group, simulation.conditions.get(ref)
    if condition is not None:
        text = condition.message
    elif group is not None and not group.exists:
        text = f"pod group {group.key.name} does not exist"
    elif group is not None and not group.admissible:
        text = f"pod group {group.key.name}: {own_wait(group)[1]}"
    elif group is not None and not group.root().exists:
        text = f"composite pod group {group.root().key.name} does not exist"
    elif group is not None and not group.root().admissible:
        text = f"composite pod group {group.root().key.name}: {own_wait(group.root())[1]}"
    else:
        text = "it has scheduling gates, or its group has members that do"
    kept = _kept_from(simulation, member)
    return WaitingPod(_name(ref), f"{text.rstrip('.')}; {kept}" if kept else text, UNDECIDED_PREFIX in text)


def _kept_from(simulation: Simulation, member: Member) -> str:
    """The room that a pod may not use because it is kept for others; empty without any."""
    from muster.scheduler.explain.sentences import reservation_sentence
    from muster.scheduler.groups.group import entity_key

    state = simulation.scheduler.state
    entity = state.queue.entities.get(entity_key(member))
    return reservation_sentence(state, entity) if entity is not None else ""


def _name(ref: ObjectRef) -> str:
    return f"{ref.namespace}/{ref.name}"
