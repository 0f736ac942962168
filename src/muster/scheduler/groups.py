"""The forest: PodGroups and CompositePodGroups as trees, and the pods that belong to them.

Objects may arrive in any order, so an edge exists as soon as either end names the other; a group that
was named but not yet seen is a placeholder. Everything the queue asks of a tree (does it have its
quorum, is a member gated, how many pods are pending) is kept as counters that one pod changes in
O(depth), whatever the size of the group.

What counts: pending and running members. Terminating and Failed pods never count; members that
Succeeded count only for a group that was scheduled once, so that a completing gang is not a broken one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from muster.api import groups as api
from muster.api import types
from muster.scheduler.decisions import Ref
from muster.scheduler.planning.demand import GroupKey

if TYPE_CHECKING:
    from muster.scheduler.shapes import Shape

Traits = tuple[str, int, str]  # schedulerName, priority, preemptionPolicy: must agree within a tree

PENDING, RUNNING, LEAVING, SUCCEEDED, FAILED = "pending", "running", "leaving", "succeeded", "failed"


class Member:
    """One pod as the forest and the queue know it."""

    __slots__ = (
        "assumed",
        "gated",
        "group",
        "lost",
        "nominated",
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
        self.ref = Ref("Pod", meta.namespace, meta.name, meta.uid)
        self.group: Group | None = None
        self.assumed = ""  # the node of a bind in flight
        self.nominated = ""  # the seat held while victims leave
        self.lost = False  # its node is gone or unreachable
        self.shape: Shape | None = None
        self.shape_epoch = -1
        self.update(pod)

    def update(self, pod: types.Pod) -> None:
        """Take the pod's present form."""
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
        """Where it sits or is about to sit."""
        return self.pod.spec.node_name or self.assumed


def state_of(pod: types.Pod) -> str:
    """Which of the five lives of a pod this is."""
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


class Group:
    """One group, seen or only named so far."""

    __slots__ = (
        "admissible",
        "admissible_children",
        "children",
        "cyclic",
        "finished",
        "gated",
        "key",
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

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.obj: api.PodGroup | api.CompositePodGroup | None = None
        self.parent: Group | None = None
        self.children: dict[GroupKey, Group] = {}
        self.cyclic = False  # its parent is below it; the edge is not followed
        self.pending: dict[str, Member] = {}
        self.running: dict[str, Member] = {}
        self.finished: set[str] = set()  # uids that Succeeded
        self.traits: Counter[Traits] = Counter()
        self.minimum = 1
        self.admissible = False
        self.admissible_children = 0
        self.gated = 0  # gated pending pods in this subtree
        self.pending_below = 0  # pending pods in this subtree
        self.scheduled_once = False
        self.unconfirmed = 0  # running members whose bind is still in flight

    @property
    def is_leaf(self) -> bool:
        return self.key.kind == "PodGroup"

    @property
    def seen(self) -> bool:
        return self.obj is not None

    @property
    def ref(self) -> Ref:
        return Ref(*self.key, self.obj.metadata.uid if self.obj else "")

    @property
    def bound(self) -> int:
        """Members that count toward the minimum without being placed now."""
        return len(self.running) + (len(self.finished) if self.scheduled_once else 0)

    @property
    def known(self) -> int:
        return len(self.pending) + self.bound

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
        if self.is_leaf:
            return self.bound - self.unconfirmed
        return sum(child.quorum_bound for child in self.children.values() if not child.cyclic)

    @property
    def quorum_bound(self) -> bool:
        """Does what is bound now satisfy this group?"""
        return self.seen and self.confirmed >= self.minimum

    @property
    def placeable(self) -> bool:
        """Has a group below, on a path where every group has its quorum, a pod that waits for a place?"""
        if not self.admissible:
            return False
        if self.is_leaf:
            return bool(self.pending)
        return self.pending_below > 0 and any(c.placeable for c in self.children.values() if not c.cyclic)

    @property
    def admitted(self) -> bool:
        """Have this group and everything above it their quorum?"""
        group: Group | None = self
        while group is not None and group.admissible:
            group = group.parent if not group.cyclic else None
        return group is None

    def root(self) -> Group:
        group = self
        while group.parent is not None and not group.cyclic:
            group = group.parent
        return group

    def subtree(self) -> Iterator[Group]:
        """This group and everything below it, parents first, children by age and name."""
        yield self
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
        """Nobody names it any more."""
        return not (self.seen or self.children or self.pending or self.running or self.finished or self.traits)


def minimum_of(obj: api.PodGroup | api.CompositePodGroup) -> int:
    """minCount, minGroupCount, or one for a basic policy."""
    if isinstance(obj, api.PodGroup):
        gang = obj.spec.scheduling_policy.gang
        return (gang.min_count or 1) if gang is not None else 1
    composite = obj.spec.scheduling_policy.gang
    return (composite.min_group_count or 1) if composite is not None else 1


class Forest:
    """All groups and all members, with their counters kept true under every change."""

    def __init__(self) -> None:
        self.groups: dict[GroupKey, Group] = {}
        self.members: dict[str, Member] = {}
        self.on_node: dict[str, dict[str, Member]] = {}  # the bound ones, finished or not
        self.workloads: dict[tuple[str, str], api.Workload] = {}

    # --- groups ------------------------------------------------------------------------------------

    def group(self, key: GroupKey) -> Group:
        """The group of this key, as a placeholder if it was not seen yet."""
        found = self.groups.get(key)
        if found is None:
            found = self.groups[key] = Group(key)
        return found

    def put_group(self, obj: api.PodGroup | api.CompositePodGroup) -> Group:
        """A group object exists in this form."""
        meta = obj.metadata
        group = self.group(GroupKey(obj.kind, meta.namespace, meta.name))
        was_other = group.obj is not None and group.obj.metadata.uid != meta.uid
        group.obj = obj
        group.minimum = minimum_of(obj)
        if was_other:
            group.scheduled_once = False
            group.finished.clear()
        group.scheduled_once = group.scheduled_once or _was_scheduled(obj)
        self._link(group, obj.spec.parent_composite_pod_group_name)
        self._weigh(group)
        return group

    def drop_group(self, key: GroupKey) -> Group | None:
        """A group object is gone; members and children keep naming it."""
        group = self.groups.get(key)
        if group is None or group.obj is None:
            return None
        group.obj = None
        group.scheduled_once = False
        group.finished.clear()
        self._link(group, None)
        self._weigh(group)
        self._prune(group)
        return group

    def _link(self, group: Group, parent_name: str | None) -> None:
        wanted = None
        if parent_name:
            wanted = self.group(GroupKey("CompositePodGroup", group.key.namespace, parent_name))
        if group.parent is wanted:
            return
        self._unlink(group)
        group.parent = wanted
        if wanted is not None:
            wanted.children[group.key] = group
            group.cyclic = self._closes_a_ring(group)
            if not group.cyclic:
                self._carry(group, +1)
        self._mend_rings(group)

    def _unlink(self, group: Group) -> None:
        old = group.parent
        if old is None:
            return
        if not group.cyclic:
            self._carry(group, -1)
        group.parent, group.cyclic = None, False
        del old.children[group.key]
        self._prune(old)

    def _mend_rings(self, changed: Group) -> None:
        """Edges that were left out because they closed a ring may be sound after this change."""
        for group in [g for g in self.groups.values() if g.cyclic and g is not changed]:
            if not self._closes_a_ring(group):
                group.cyclic = False
                self._carry(group, +1)

    @staticmethod
    def _closes_a_ring(group: Group) -> bool:
        above = group.parent
        while above is not None:
            if above is group:
                return True
            above = above.parent if not above.cyclic else None
        return False

    def _carry(self, group: Group, sign: int) -> None:
        """Add or take a whole subtree's counters to or from its ancestors."""
        above = group.parent
        while above is not None:
            above.gated += sign * group.gated
            above.pending_below += sign * group.pending_below
            above = above.parent if not above.cyclic else None
        if group.admissible and group.parent is not None:
            group.parent.admissible_children += sign
            self._weigh(group.parent)

    def _prune(self, group: Group) -> None:
        if group.empty and self.groups.get(group.key) is group:
            self._unlink(group)
            del self.groups[group.key]

    def _weigh(self, group: Group) -> None:
        """Recompute whether a group has its quorum, and tell its ancestors if that changed."""
        current: Group | None = group
        while current is not None:
            count = current.known if current.is_leaf else current.admissible_children
            admissible = current.seen and count >= current.minimum
            if admissible == current.admissible:
                return
            current.admissible = admissible
            if current.cyclic or current.parent is None:
                return
            current.parent.admissible_children += 1 if admissible else -1
            current = current.parent

    # --- members -----------------------------------------------------------------------------------

    def put_member(self, pod: types.Pod, key: GroupKey | None) -> Member:
        """A pod exists in this form; `key` names its group, or is None for a pod on its own."""
        member = self.members.get(pod.metadata.uid)
        if member is None:
            member = self.members[pod.metadata.uid] = Member(pod)
        else:
            self._leave(member)
            member.update(pod)
        member.group = self.group(key) if key is not None else None
        if pod.spec.node_name:
            member.assumed = ""
            self.on_node.setdefault(pod.spec.node_name, {})[member.uid] = member
        self._enter(member)
        return member

    def drop_member(self, uid: str) -> Member | None:
        member = self.members.pop(uid, None)
        if member is not None:
            node = member.pod.spec.node_name
            there = self.on_node.get(node, {})
            if there.pop(uid, None) is not None and not there:
                del self.on_node[node]
            self._leave(member)
            if member.group is not None:
                member.group.finished.discard(uid)
                self._weigh(member.group)
                self._prune(member.group)
        return member

    def assume(self, seated: Iterable[tuple[Member, str]]) -> None:
        """Binds of these pending pods are on their way: they count as running from now on."""
        moved: dict[GroupKey, int] = {}
        for member, node in seated:
            member.assumed = node
            group = member.group
            if group is not None:
                group.running[member.uid] = group.pending.pop(member.uid)
                group.unconfirmed += 1
                moved[group.key] = moved.get(group.key, 0) + 1
        for key, count in moved.items():
            self._count(self.groups[key], -count, 0)  # pending or running, the quorum is the same

    def forget(self, member: Member) -> None:
        """The bind did not happen."""
        self._leave(member)
        member.assumed = ""
        self._enter(member)

    def set_lost(self, member: Member, lost: bool) -> None:
        """A member on a lost node does not count until the node is back."""
        if member.lost != lost:
            self._leave(member)
            member.lost = lost
            self._enter(member)

    def _enter(self, member: Member) -> None:
        group = member.group
        if group is None:
            return
        if member.lost:
            pass  # whatever it did there, nobody can count on it
        elif member.state == SUCCEEDED:
            group.finished.add(member.uid)
        elif member.state == RUNNING or (member.state == PENDING and member.assumed):
            group.running[member.uid] = member
            group.unconfirmed += 1 if member.assumed else 0
            group.traits[member.traits] += 1
        elif member.state == PENDING:
            group.pending[member.uid] = member
            group.traits[member.traits] += 1
            self._count(group, 1, int(member.gated))
        self._weigh(group)

    def _leave(self, member: Member) -> None:
        group = member.group
        if group is None:
            return
        was_pending = group.pending.pop(member.uid, None) is not None
        was_running = not was_pending and group.running.pop(member.uid, None) is not None
        if was_running and member.assumed:
            group.unconfirmed -= 1
        if was_pending or was_running:
            group.traits[member.traits] -= 1
            if group.traits[member.traits] == 0:
                del group.traits[member.traits]
        if was_pending:
            self._count(group, -1, -int(member.gated))
        self._weigh(group)

    @staticmethod
    def _count(group: Group, pending: int, gated: int) -> None:
        current: Group | None = group
        while current is not None:
            current.pending_below += pending
            current.gated += gated
            current = current.parent if not current.cyclic else None


def _was_scheduled(obj: api.PodGroup | api.CompositePodGroup) -> bool:
    wanted = (api.POD_GROUP_INITIALLY_SCHEDULED, api.POD_GROUP_SCHEDULED, api.COMPOSITE_INITIALLY_SCHEDULED)
    return any(c.type in wanted and c.status == "True" for c in obj.status.conditions or ())
