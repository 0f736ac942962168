"""The forest: all PodGroups, CompositePodGroups and pods, with their counters kept true under every change.

Objects may arrive in any order, so an edge exists as soon as a child names its parent; a group that was named but not
yet seen is a placeholder.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.api import groups as api
from muster.api import types
from muster.scheduler.groups.expectation import NOTHING_EXPECTED, expectation_of
from muster.scheduler.groups.group import PENDING, RUNNING, SUCCEEDED, Group, Member, Traits
from muster.scheduler.interface.keys import EntityKey


def minimum_of(obj: api.PodGroup | api.CompositePodGroup) -> int:
    """minCount, minGroupCount, or one for a basic policy."""
    if isinstance(obj, api.PodGroup):
        gang = obj.spec.scheduling_policy.gang
        return (gang.min_count or 1) if gang is not None else 1
    composite = obj.spec.scheduling_policy.gang
    return (composite.min_group_count or 1) if composite is not None else 1


class Forest:
    """All groups by key and all pods by uid; every method keeps the counters of the whole path to the root true."""

    def __init__(self) -> None:
        self.groups: dict[EntityKey, Group] = {}
        self.members: dict[str, Member] = {}
        self.on_node: dict[str, dict[str, Member]] = {}  # the bound ones, finished or not
        self.workloads: dict[tuple[str, str], api.Workload] = {}
        self._of_workload: dict[tuple[str, str], dict[EntityKey, Group]] = {}  # the groups that refer to it
        self._cyclic: dict[EntityKey, Group] = {}  # those whose edge to their parent is left out

    # --- groups ------------------------------------------------------------------------------------

    def group(self, key: EntityKey) -> Group:
        """The group of this key, as a placeholder if it was not seen yet."""
        found = self.groups.get(key)
        if found is None:
            found = self.groups[key] = Group(key)
        return found

    def put_group(self, obj: api.PodGroup | api.CompositePodGroup) -> Group:
        """A group object exists in this form."""
        meta = obj.metadata
        group = self.group(EntityKey(obj.kind, meta.namespace, meta.name))
        was_other = group.obj is not None and group.obj.metadata.uid != meta.uid
        self._refer(group, obj)
        group.obj = obj
        group.minimum = minimum_of(obj)
        group.expectation = expectation_of(obj)
        if was_other:
            group.scheduled_once = False
        group.scheduled_once = group.scheduled_once or _was_scheduled(obj)
        self._link(group, obj.spec.parent_composite_pod_group_name)
        group.recount()
        return group

    def put_status(self, obj: api.PodGroup | api.CompositePodGroup) -> bool:
        """A known group has another status; whether that is the first to say that its minimum was bound once.

        A scheduler that does not lead learns it in no other way: pods may have ended before it sees them all.
        """
        group = self.group(EntityKey(obj.kind, obj.metadata.namespace, obj.metadata.name))
        group.obj = obj
        if group.scheduled_once or not _was_scheduled(obj):
            return False
        group.set_scheduled_once()
        return True

    def remove_group(self, key: EntityKey) -> Group | None:
        """A group object is gone; members and children keep naming it."""
        group = self.groups.get(key)
        if group is None or group.obj is None:
            return None
        self._refer(group, None)
        group.obj = None
        group.expectation = NOTHING_EXPECTED
        group.scheduled_once = False
        self._link(group, None)
        group.recount()
        self._prune(group)
        return group

    def groups_of_workload(self, namespace: str, name: str) -> list[Group]:
        """The groups that refer to a Workload, whether it exists or not."""
        return list(self._of_workload.get((namespace, name), {}).values())

    def _refer(self, group: Group, obj: api.PodGroup | api.CompositePodGroup | None) -> None:
        """Index a group by the Workload that its new object refers to, before the old object is replaced."""
        old, new = _workload_of(group.obj), _workload_of(obj)
        if old == new:
            return
        if old is not None:
            del self._of_workload[old][group.key]
            if not self._of_workload[old]:
                del self._of_workload[old]
        if new is not None:
            self._of_workload.setdefault(new, {})[group.key] = group

    def _link(self, group: Group, parent_name: str | None) -> None:
        parent = None
        if parent_name:
            parent = self.group(EntityKey("CompositePodGroup", group.key.namespace, parent_name))
        if group.parent is parent:
            return
        self._unlink(group)
        group.parent = parent
        if parent is not None:
            parent.children[group.key] = group
            group.cyclic = self._closes_cycle(group)
            if group.cyclic:
                self._cyclic[group.key] = group
            else:
                self._add_to_ancestors(group, +1)
        self._relink_cycles(group)

    def _unlink(self, group: Group) -> None:
        old = group.parent
        if old is None:
            return
        if not group.cyclic:
            self._add_to_ancestors(group, -1)
        group.parent, group.cyclic = None, False
        self._cyclic.pop(group.key, None)
        del old.children[group.key]
        self._prune(old)

    def _relink_cycles(self, changed: Group) -> None:
        """Edges that were left out because they closed a cycle may be valid after this change."""
        for group in [g for g in self._cyclic.values() if g is not changed]:
            if not self._closes_cycle(group):
                group.cyclic = False
                del self._cyclic[group.key]
                self._add_to_ancestors(group, +1)

    @staticmethod
    def _closes_cycle(group: Group) -> bool:
        above = group.parent
        while above is not None:
            if above is group:
                return True
            above = above.parent if not above.cyclic else None
        return False

    def _add_to_ancestors(self, group: Group, sign: int) -> None:
        """Add or take a whole subtree's counters to or from its ancestors."""
        above = group.parent
        while above is not None:
            above.gated += sign * group.gated
            above.pending_below += sign * group.pending_below
            above.in_flight += sign * group.in_flight
            above.foreign_below += sign * group.foreign_below
            for traits, count in group.traits.items():
                _add_traits(above, traits, sign * count)
            above = above.parent if not above.cyclic else None
        if group.parent is not None:
            group.parent.add_below(group.counts, sign)
            group.parent.recount()

    def _prune(self, group: Group) -> None:
        if group.empty and self.groups.get(group.key) is group:
            self._unlink(group)
            del self.groups[group.key]

    # --- members -----------------------------------------------------------------------------------

    def put_member(self, pod: types.Pod, key: EntityKey | None, *, foreign: bool = False) -> Member:
        """A pod exists in this form; `key` names its group, or is None for a pod on its own.

        `foreign`: another scheduler places it. Until it is bound it counts neither as pending nor toward the minimum.
        """
        member = self.members.get(pod.metadata.uid)
        if member is None:
            member = self.members[pod.metadata.uid] = Member(pod)
            member.foreign = foreign
        else:
            self._leave(member)
            member.update(pod)
        self._join(member, self.group(key) if key is not None else None)
        if pod.spec.node_name:
            member.assumed = ""
            self.on_node.setdefault(pod.spec.node_name, {})[member.uid] = member
        self._enter(member)
        return member

    def remove_member(self, uid: str) -> Member | None:
        member = self.members.pop(uid, None)
        if member is not None:
            node = member.pod.spec.node_name
            there = self.on_node.get(node, {})
            if there.pop(uid, None) is not None and not there:
                del self.on_node[node]
            self._leave(member)
            if member.group is not None:
                self._drop_member(member.group, uid)
        return member

    def _join(self, member: Member, group: Group | None) -> None:
        """The pod names this group, or none. A group is known for as long as a pod names it, whatever its state."""
        old = member.group
        if old is group:
            return
        member.group = group
        if group is not None:
            group.member_count += 1
        if old is not None:
            self._drop_member(old, member.uid)

    def _drop_member(self, group: Group, uid: str) -> None:
        group.member_count -= 1
        group.finished.discard(uid)
        group.recount()
        self._prune(group)

    def assume(self, assumed: Iterable[tuple[Member, str]]) -> None:
        """Binds of these pending pods are on their way: they count as running from now on."""
        moved: dict[Group, int] = {}
        for member, node in assumed:
            member.assumed = node
            member.in_flight = True
            group = member.group
            if group is not None:
                group.running[member.uid] = group.pending.pop(member.uid)
                moved[group] = moved.get(group, 0) + 1
        for group, count in moved.items():
            group.unconfirmed += count
            self._count(group, -count, 0, count)
            group.recount()

    def bind_answered(self, member: Member) -> None:
        """The API has accepted or refused the bind of a pod."""
        if member.in_flight:
            member.in_flight = False
            if member.group is not None:
                self._count(member.group, 0, 0, -1)

    def forget(self, member: Member) -> None:
        """The pod will not run on the node that was assumed."""
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
        if member.in_flight:
            self._count(group, 0, 0, 1)
        if member.state == SUCCEEDED:
            group.finished.add(member.uid)  # whatever becomes of its node
        elif member.lost:
            pass  # it counts nowhere
        elif member.state == RUNNING or (member.state == PENDING and member.assumed):
            group.running[member.uid] = member
            group.unconfirmed += 1 if member.assumed else 0
            self._count_traits(member, 1)
            self._count_foreign(member, 1)
        elif member.state == PENDING and member.foreign:
            group.foreign[member.uid] = member
            self._count_traits(member, 1)
            self._count_foreign(member, 1)
        elif member.state == PENDING:
            group.pending[member.uid] = member
            self._count_traits(member, 1)
            self._count(group, 1, int(member.gated))
        group.recount()

    def _leave(self, member: Member) -> None:
        """The pod counts nowhere; whoever calls this has its group recounted."""
        group = member.group
        if group is None:
            return
        was_pending = group.pending.pop(member.uid, None) is not None
        was_running = not was_pending and group.running.pop(member.uid, None) is not None
        if was_running and member.assumed:
            group.unconfirmed -= 1
        was_foreign = group.foreign.pop(member.uid, None) is not None
        if was_foreign or was_running:
            self._count_foreign(member, -1)
        if was_pending or was_running or was_foreign:
            self._count_traits(member, -1)
        if was_pending:
            self._count(group, -1, -int(member.gated))
        if member.in_flight:
            self._count(group, 0, 0, -1)

    @staticmethod
    def _count(group: Group, pending: int, gated: int, in_flight: int = 0) -> None:
        current: Group | None = group
        while current is not None:
            current.pending_below += pending
            current.gated += gated
            current.in_flight += in_flight
            current = current.parent if not current.cyclic else None

    @staticmethod
    def _count_traits(member: Member, sign: int) -> None:
        current = member.group
        while current is not None:
            _add_traits(current, member.traits, sign)
            current = current.parent if not current.cyclic else None

    @staticmethod
    def _count_foreign(member: Member, sign: int) -> None:
        current = member.group if member.foreign else None
        while current is not None:
            current.foreign_below += sign
            current = current.parent if not current.cyclic else None


def _add_traits(group: Group, traits: Traits, count: int) -> None:
    total = group.traits.get(traits, 0) + count
    if total:
        group.traits[traits] = total
    else:
        del group.traits[traits]


def _workload_of(obj: api.PodGroup | api.CompositePodGroup | None) -> tuple[str, str] | None:
    ref = obj.spec.workload_ref if obj is not None else None
    return (obj.metadata.namespace, ref.workload_name) if obj is not None and ref is not None else None


def _was_scheduled(obj: api.PodGroup | api.CompositePodGroup) -> bool:
    types_ = (api.POD_GROUP_INITIALLY_SCHEDULED, api.POD_GROUP_SCHEDULED, api.COMPOSITE_INITIALLY_SCHEDULED)
    return any(c.type in types_ and c.status == "True" for c in obj.status.conditions or ())
