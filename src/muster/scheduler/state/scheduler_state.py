"""The state of the scheduler at one moment: configuration, caches, and one owner for each kind of state.

Event handlers and cycles change it, only through the methods of its owners. Nothing is decided here.
"""

from __future__ import annotations

from muster.api import types
from muster.api.gates import DEFAULT, FeatureGates
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.run_times import RunTimes, longest_run
from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.expected import expected_members, expected_pod
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group, Member, priority_of
from muster.scheduler.interface.keys import EntityKey, ObjectRef
from muster.scheduler.placement.request import PendingPod
from muster.scheduler.preemption.victims import VictimIndex
from muster.scheduler.queue.entity import EntityState, QueuedEntity
from muster.scheduler.queue.scheduling_queue import SchedulingQueue
from muster.scheduler.runtime.config import Config
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import profile_of
from muster.scheduler.state.assumed_pods import AssumedPods
from muster.scheduler.state.bind_failures import BindFailures
from muster.scheduler.state.evictable_room import EvictableRoom
from muster.scheduler.state.group_checks import GroupChecks
from muster.scheduler.state.measurements import Measurements
from muster.scheduler.state.nominations import Nominations
from muster.scheduler.state.preemptions import Preemptions
from muster.scheduler.state.requeue_signals import RequeueSignals
from muster.scheduler.state.reservations import Owner, Reservations
from muster.scheduler.state.searches import Searches
from muster.scheduler.status.conditions import ConditionWriter
from muster.scheduler.status.waiting import NoticeTimer


def owner_of(member: Member) -> Owner:
    """Whose word the duration of a pod is: its controller's; without one, that of whoever uses the namespace."""
    controllers = (owner for owner in member.pod.metadata.owner_references or () if owner.controller)
    owner = next(controllers, None)
    return (member.ref.namespace, owner.kind, owner.name) if owner is not None else (member.ref.namespace, "", "")


class SchedulerState:
    """The parts of the scheduler, made once."""

    def __init__(self, config: Config, *, seed: int = 0, gates: FeatureGates = DEFAULT) -> None:
        self.config = config
        self.gates = gates
        self.cluster = Cluster(seed=seed)
        self.evaluator = Evaluator(self.cluster)
        self.forest = Forest()
        self.queue = SchedulingQueue(config.pod_initial_backoff, config.pod_max_backoff)
        self.signals = RequeueSignals(config.profiles.values())
        self.checks = GroupChecks()
        self.conditions = ConditionWriter()
        self.notices = NoticeTimer()
        self.nominations = Nominations(self.cluster, self.signals)
        self.reservations = Reservations(self.cluster)
        self.run_times = RunTimes()
        self.assumed = AssumedPods(self.cluster, self.forest, self.signals)
        self.bind_failures = BindFailures(config.pod_initial_backoff, config.pod_max_backoff)
        self.preemptions = Preemptions(self.cluster)
        self.evictable = EvictableRoom(self.cluster, self.forest, self.preemptions, self.signals)
        self.searches = Searches()
        self.victim_index = VictimIndex()
        self.measurements = Measurements()
        self.budgets: dict[tuple[str, str], types.PodDisruptionBudget] = {}
        self.lost_nodes: set[str] = set()  # gone, or unreachable by their taints
        self.version = 0  # increases with every change of a pod, a node or a group
        self.planned_steps = 0  # of all attempts and search slices so far
        self.synced = False  # the first lists are complete

    # --- look-ups ----------------------------------------------------------------------------------

    def shape_of(self, member: Member) -> Shape:
        """The shape of a pod, looked up once for as long as no new selector distinguishes more pods."""
        if member.shape is None or member.shape_epoch != len(self.cluster.pod_counts.keys):
            member.shape = self.evaluator.shape(member.pod, self.config.profiles[member.traits[0]])
            member.shape_epoch = len(self.cluster.pod_counts.keys)
        return member.shape

    def _current_shape(self, shape: Shape) -> Shape:
        """The shape of its pod by the labels that tell pods apart now."""
        return self.evaluator.shape(shape.pod, profile_of(shape))

    def domain_of(self, node: str, key: str) -> str:
        """The value of a node's label, empty without it."""
        slot = self.cluster.index.get(node)
        if slot is None:
            return ""
        return self.cluster.label_value(key, int(self.cluster.labels(key)[slot]))

    def top(self, key: EntityKey) -> Group | None:
        """The group at the top of the tree that a group is in, if the group still exists."""
        group = self.forest.groups.get(key)
        return group.root() if group is not None else None

    def scheduler_of(self, entity: QueuedEntity) -> str:
        """The profile that places an entity; empty when none of its pods is pending."""
        members = self.members_of(entity)
        return members[0].traits[0] if members else ""

    def expected_scheduler(self, top: Group) -> str:
        """The profile that places the expected members of a tree: that of the members there are; empty if not ours."""
        return min((name for name, _, _ in top.traits if name in self.config.profiles), default="")

    def expected_pods(self, leaf: Group) -> tuple[PendingPod, ...]:
        """The members that a PodGroup expects and that its minimum needs, as if they were pending."""
        if not leaf.expecting:
            return ()
        top = leaf.root()
        scheduler, priority = self.expected_scheduler(top), priority_of(top)
        if not scheduler:
            return ()
        shapes: dict[int, Shape] = {}
        found: list[PendingPod] = []
        for member in expected_members(leaf):
            shape = shapes.get(id(member.template))
            if shape is None:
                pod = expected_pod(member, scheduler, priority)
                shape = shapes[id(member.template)] = self.evaluator.shape(pod, self.config.profiles[scheduler])
            found.append(PendingPod(member.uid, leaf.key.namespace, member.name, shape, priority))
        return tuple(found)

    def members_of(self, entity: QueuedEntity) -> list[Member]:
        """The pending pods of an entity, in the order in which they are placed."""
        if entity.member is not None:
            return [entity.member]
        assert entity.group is not None
        pending = [member for leaf in entity.group.leaves() for member in leaf.pending.values()]
        return sorted(pending, key=lambda member: member.order)

    def nominated_against(self, entity: QueuedEntity, *, holds_seats: bool = False) -> list[tuple[Shape, int]]:
        """The seats (shape, slot) that an entity must not take: they are nominated or reserved for others.

        An entity that is bound in part is not bound by reservations: nothing comes before its completion. Where an
        entity `holds_seats` that are nominated for it, reservations of its own priority were made beside them.
        """
        if self.nominations:
            self.nominations.renew(len(self.cluster.pod_counts.keys), self._current_shape)
        nominated = self.nominations.against(entity.key, entity.priority)
        if not self.reservations or entity.partly_bound:
            return nominated
        priority = entity.priority + 1 if holds_seats else entity.priority
        return nominated + self.reservations.against(entity.key, priority, self.longest_run(entity))

    def longest_run(self, entity: QueuedEntity) -> float | None:
        """After how many seconds all pending pods of an entity are gone, if that is known and believed."""
        if entity.group is not None and entity.group.counts.expecting:
            return None
        members = self.members_of(entity)
        if not all(self.reservations.believes(owner_of(member)) for member in members):
            return None
        runs = [longest_run(member.pod) for member in members]
        known = [run for run in runs if run is not None]
        return max(known, default=None) if len(known) == len(runs) else None

    def ref_of(self, entity: QueuedEntity) -> ObjectRef:
        """The object that an entity is, for events and messages."""
        if entity.member is not None:
            return entity.member.ref
        assert entity.group is not None
        return entity.group.ref

    # --- invariants --------------------------------------------------------------------------------

    def check(self) -> None:
        """What holds between two cycles; for tests."""
        self.assumed.check()
        self.queue.check()
        for entity in self.queue.entities.values():
            if entity.group is not None:
                assert self.top(entity.key) is entity.group, f"{entity.key} is not the top of a tree"
            if entity.state is EntityState.PREEMPTING:
                assert self.preemptions.get(entity.key) is not None, f"{entity.key} waits for no victims"
        for key in self.preemptions.entities():
            assert key in self.queue.entities, f"victims leave for {key}, which is not queued"
        for reservation in self.reservations:
            assert reservation.seats, f"no seat is kept for {reservation.entity}"
        for key in self.nominations.entities():
            assert key in self.queue.entities, f"seats are nominated for {key}, which is not queued"
        for key in self.nominations.holding():
            top = self.top(key)
            assert top is not None, f"seats are held for {key}, which is gone"
            assert top.key == key, f"seats are held for {key}, which is not the top of a tree"
            assert top.counts.leaves_bound, f"seats are held for {key}, of which nothing is bound"
