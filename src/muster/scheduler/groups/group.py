"""A group of the forest and a pod in it: what counts towards the minimum, and what a tree has as a whole.

Whether a tree has its quorum, whether a member is gated, what is bound and how many pods are pending are counters that
one pod changes in O(depth), whatever the size of the group and of its tree.

What counts: pending and running members. Terminating and Failed pods never count; members that
Succeeded count only for a group that was scheduled once, so that a completing gang is not a broken one. Members that
do not exist yet, but that the group expects (`groups.expectation`), count as far as the minimum lacks them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from muster.api import groups as api
from muster.api import types
from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.expectation import NOTHING_EXPECTED
from muster.scheduler.interface.keys import EntityKey, ObjectRef

Traits = tuple[str, int, str]  # schedulerName, priority, preemptionPolicy: must agree within a tree


PENDING, RUNNING, LEAVING, SUCCEEDED, FAILED = "pending", "running", "leaving", "succeeded", "failed"


class Member:
    """One pod: its latest object, its group, and where it is bound or assumed."""

    __slots__ = (
        "assumed",
        "foreign",
        "gated",
        "group",
        "in_flight",
        "lost",
        "order",
        "pod",
        "ref",
        "shape",
        "shape_epoch",
        "state",
        "traits",
        "uid",
    )

    def __init__(self, pod: types.Pod) -> None:
        meta = pod.metadata
        self.uid = meta.uid
        self.ref = ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
        self.group: Group | None = None
        self.foreign = False  # another scheduler places it
        self.assumed = ""  # the node it was bound to, until the watch shows it there
        self.in_flight = False  # the API has not answered its bind yet
        self.lost = False  # its node is gone or unreachable
        self.shape: Shape | None = None
        self.shape_epoch = -1
        self.update(pod)

    def update(self, pod: types.Pod) -> None:
        """Take over the latest object of the pod."""
        spec = pod.spec
        self.pod = pod
        self.state = state_of(pod)
        self.gated = bool(spec.scheduling_gates) and not spec.node_name
        self.traits: Traits = (
            spec.scheduler_name,
            spec.priority or 0,
            spec.preemption_policy or api.PREEMPT_LOWER_PRIORITY,
        )
        # Members of a group are placed highest priority first, then oldest first.
        self.order = (-self.traits[1], pod.metadata.creation_timestamp or "", self.uid)

    @property
    def node(self) -> str:
        """The node it is bound to or assumed on."""
        return self.pod.spec.node_name or self.assumed


def state_of(pod: types.Pod) -> str:
    """The state of a pod as groups count it: one of the five above."""
    phase = pod.status.phase
    if phase == "Succeeded":
        return SUCCEEDED
    if phase == "Failed":
        return FAILED
    if pod.metadata.deletion_timestamp is not None:
        return LEAVING
    return RUNNING if pod.spec.node_name else PENDING


def group_name(pod: types.Pod) -> str | None:
    """The PodGroup that a pod names, if any."""
    group = pod.spec.scheduling_group
    return group.pod_group_name if group is not None else None


class GroupCounts(NamedTuple):
    """What a group adds to the counters of its parent; the sum over the children of a composite has the same form."""

    admissible: int = 0  # has its quorum
    placeable: int = 0  # has a pending pod below, on a path where every group has its quorum
    has_minimum: int = 0  # is bound with its minimum, binds in flight included
    quorum_bound: int = 0  # the same without binds in flight
    leaves_below_minimum: int = 0  # PodGroups in the subtree that are bound below their minimum
    leaves_bound: int = 0  # PodGroups in the subtree with a bound member
    leaves_confirmed: int = 0  # the same without binds in flight
    expecting: int = 0  # members in the subtree that do not exist yet and are expected


class Group:
    """One PodGroup or CompositePodGroup, or a placeholder for one that was only named so far."""

    __slots__ = (
        "below",
        "children",
        "counts",
        "cyclic",
        "expectation",
        "finished",
        "foreign",
        "foreign_below",
        "gated",
        "in_flight",
        "key",
        "member_count",
        "minimum",
        "obj",
        "parent",
        "pending",
        "pending_below",
        "running",
        "scheduled_once",
        "traits",
        "unconfirmed",
    )

    def __init__(self, key: EntityKey) -> None:
        self.key = key
        self.obj: api.PodGroup | api.CompositePodGroup | None = None
        self.parent: Group | None = None
        self.children: dict[EntityKey, Group] = {}
        self.cyclic = False  # its parent is below it; the edge is not followed
        self.member_count = 0  # pods that name this group, whatever their state
        self.pending: dict[str, Member] = {}
        self.running: dict[str, Member] = {}
        self.foreign: dict[str, Member] = {}  # pending pods that another scheduler places
        self.finished: set[str] = set()  # uids that Succeeded
        self.expectation = NOTHING_EXPECTED  # which members will come
        self.traits: Counter[Traits] = Counter()  # of the pods in this subtree
        self.minimum = 1
        self.counts = GroupCounts()  # what it adds to its parent
        self.below = GroupCounts()  # what its children add
        self.gated = 0  # gated pending pods in this subtree
        self.pending_below = 0  # pending pods in this subtree
        self.foreign_below = 0  # pods in this subtree, pending or running, that name another scheduler
        self.in_flight = 0  # binds of pods in this subtree that the API has not answered yet
        self.scheduled_once = False
        self.unconfirmed = 0  # running members whose bind is still in flight

    @property
    def is_leaf(self) -> bool:
        return self.key.kind == "PodGroup"

    @property
    def exists(self) -> bool:
        return self.obj is not None

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(*self.key, self.obj.metadata.uid if self.obj else "")

    @property
    def bound(self) -> int:
        """Members that count toward the minimum without being placed now."""
        return len(self.running) + (len(self.finished) if self.scheduled_once else 0)

    @property
    def known(self) -> int:
        return len(self.pending) + self.bound

    @property
    def expecting(self) -> int:
        """Members that the minimum lacks, that do not exist and that will come. A gated pod is as good as missing."""
        total = self.expectation.total
        if not total:
            return 0
        here = len(self.pending) - self.gated
        lacking = min(total - here - len(self.running) - len(self.finished), self.minimum - here - self.bound)
        return max(0, lacking)

    @property
    def topology(self) -> str | None:
        """The label key in whose domains this group must stay whole."""
        if self.obj is None or self.obj.spec.scheduling_constraints is None:
            return None
        constraints = self.obj.spec.scheduling_constraints.topology
        return constraints[0].key if constraints else None

    @property
    def disrupts_all(self) -> bool:
        mode = self.obj.spec.disruption_mode if self.obj else None
        return mode is not None and mode.all is not None

    @property
    def confirmed(self) -> int:
        """Members that count and whose bind the API has accepted; for a composite, children whose minimum is bound."""
        return self.bound - self.unconfirmed if self.is_leaf else self.below.quorum_bound

    @property
    def quorum_bound(self) -> bool:
        """Whether the minimum of the group is bound."""
        return self.exists and self.confirmed >= self.minimum

    @property
    def admissible(self) -> bool:
        """Whether the group has its quorum: enough members, or enough children that have theirs."""
        return bool(self.counts.admissible)

    @property
    def placeable(self) -> bool:
        """Whether a group below, on a path where every group has its quorum, has a pending pod."""
        return bool(self.counts.placeable)

    @property
    def partly_bound(self) -> bool:
        """Whether pods are bound, binds in flight included, and the minimum of the tree or of a leaf is not."""
        counts = self.counts
        return bool(counts.leaves_below_minimum or (counts.leaves_bound and not counts.has_minimum))

    @property
    def admitted(self) -> bool:
        """Whether this group and all above it have their quorum."""
        group: Group | None = self
        while group is not None and group.admissible:
            group = group.parent if not group.cyclic else None
        return group is None

    def recount(self) -> None:
        """Bring what the group adds to its parent up to date, and so on upwards for as long as that changes."""
        group = self
        while True:
            old, new = group.counts, group._current_counts()
            if new == old:
                return
            group.counts = GroupCounts._make(new)
            if group.parent is None or group.cyclic:
                return
            group.parent.add_below(new, 1)
            group.parent.add_below(old, -1)
            group = group.parent

    def add_below(self, counts: tuple[int, ...], sign: int) -> None:
        """A child adds this from now on, or no longer."""
        self.below = GroupCounts._make([total + sign * count for total, count in zip(self.below, counts, strict=True)])

    def _current_counts(self) -> tuple[int, ...]:
        minimum, exists = self.minimum, self.obj is not None
        if not self.is_leaf:
            below = self.below
            admissible = exists and below.admissible >= minimum
            return (
                admissible,
                admissible and below.placeable > 0,
                below.has_minimum >= minimum,
                exists and below.quorum_bound >= minimum,
                *below[4:],
            )
        bound = self.bound
        confirmed = bound - self.unconfirmed
        expecting = self.expecting if self.expectation.total else 0
        admissible = exists and len(self.pending) + bound + expecting >= minimum
        return (
            admissible,
            admissible and bool(self.pending),
            bound >= minimum,
            exists and confirmed >= minimum,
            0 < bound < minimum,
            bound > 0,
            confirmed > 0,
            expecting,
        )

    def set_scheduled_once(self) -> None:
        """The minimum of the group was bound once: members that Succeeded count from now on."""
        if not self.scheduled_once:
            self.scheduled_once = True
            self.recount()

    def root(self) -> Group:
        group = self
        while group.parent is not None and not group.cyclic:
            group = group.parent
        return group

    def subtree(self) -> Iterator[Group]:
        """This group and everything below it, parents first, children by age and name."""
        yield self
        if self.children:
            for child in self.ordered_children():
                yield from child.subtree()

    def leaves(self) -> Iterator[Group]:
        return (group for group in self.subtree() if group.is_leaf)

    def ordered_children(self) -> list[Group]:
        linked = (child for child in self.children.values() if not child.cyclic)
        return sorted(linked, key=lambda group: (group.created, group.key))

    @property
    def created(self) -> str:
        return (self.obj.metadata.creation_timestamp or "") if self.obj else ""

    @property
    def empty(self) -> bool:
        """Whether neither an object, a child nor a pod names it."""
        return not (self.exists or self.children or self.member_count)


def names_no_class(top: Group) -> bool:
    """Whether the root says nothing about its priority. An API server stores 0 for a group without a class."""
    return top.obj is None or (not top.obj.spec.priority_class_name and not top.obj.spec.priority)


def awaits_priority(top: Group) -> bool:
    """Whether the root names a class that has not given it its priority yet, as a custom resource may for a moment."""
    return top.obj is not None and top.obj.spec.priority is None and bool(top.obj.spec.priority_class_name)


def priority_of(top: Group) -> int:
    """The priority of a tree: that of its root, or the lowest of its pods where the root names no class."""
    if top.obj is not None and top.obj.spec.priority is not None and not names_no_class(top):
        return top.obj.spec.priority
    return min((priority for _, priority, _ in top.traits), default=0)


def may_preempt(top: Group) -> bool:
    """Whether a tree may preempt: by the policy of its root; where that names no class, no pod may forbid it either."""
    policy = top.obj.spec.preemption_policy if top.obj else None
    if policy == api.NEVER or (policy is not None and not names_no_class(top)):
        return policy != api.NEVER
    return all(policy != api.NEVER for _, _, policy in top.traits)


def entity_key(member: Member) -> EntityKey:
    """The key of the entity that a pod is scheduled with."""
    if member.group is None:
        return EntityKey("Pod", member.ref.namespace, member.ref.name)
    return member.group.root().key
