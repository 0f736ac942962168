"""The board: what the pages show of one cluster, kept current by events.

A scheduler of its own takes in the events and never decides anything; rows are read from its view and only those that
a change touches are made again. A change marks what it touches; `refresh` brings the tables up to date and moves
`version` on. Whoever uses `scheduler` must not let events in meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from muster.dashboard.tables import Table
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.events import Event, ObjectDeleted, ObjectUpdated
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.simulation.snapshot import Snapshot
from muster.views.occupancy import GangState, NodeOccupancy, gang_of, gang_state, occupancy
from muster.views.queue import QueueRow, rows
from muster.views.schedulers import scheduler_for
from muster.views.topology import levels_of

ObjectKey = tuple[str, str]  # namespace, name
Objects = dict[str, dict[ObjectKey, Any]]
MakeScheduler = Callable[[Snapshot], Scheduler]

MOST_QUEUE_ROWS = 2000
EVENTS_BEFORE_REBUILD = 200_000
"""A scheduler that never decides keeps what its next cycle would take; a new one begins without that."""
GROUPS = ("PodGroup", "CompositePodGroup")


class Board:
    """One cluster at one time. `objects` is the truth; everything else follows from it."""

    def __init__(self, make_scheduler: MakeScheduler = scheduler_for) -> None:
        self.objects: Objects = {}
        self.changeable: tuple[str, ...] = ("minCount",)  # the fields of groups that the server lets change
        self.groups_by_label = False
        self.gates: dict[str, bool] = {}  # of the cluster's scheduler, those not at their default
        self.version = 0
        self.born = 0  # the version before which there are no differences, only the whole
        self.levels: list[str] = []
        self.nodes: Table[str, NodeOccupancy] = Table()
        self.gangs: Table[EntityKey, GangState] = Table()
        self.queue: list[QueueRow] = []
        self.queue_version = 0
        self.waiting = 0
        self.pods_on_nodes: Counter[EntityKey] = Counter()
        self._make_scheduler = make_scheduler
        self._scheduler: Scheduler | None = None
        self._names: frozenset[str] = frozenset()  # scheduler names that the scheduler has profiles for
        self._handled = 0
        self._ids: dict[EntityKey, int] = {}
        self._stale_nodes: set[str] = set()
        self._stale_gangs: set[EntityKey] = set()
        self._queue_is_stale = True

    # --- events ------------------------------------------------------------------------------------

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that knows the cluster; it may be asked, and must not decide."""
        if self._scheduler is None:
            self._build()
        assert self._scheduler is not None
        return self._scheduler

    def load(self, objects: Iterable[tuple[str, Any]]) -> None:
        """Take over a whole cluster in place of what was known."""
        self.objects = {}
        for kind, obj in objects:
            self.objects.setdefault(kind, {})[_key(obj)] = obj
        self._scheduler = None

    def apply(self, event: Event, now: float = 0.0) -> None:
        """Take in one event."""
        if isinstance(event, ObjectUpdated):
            self._updated(event, now)
        elif isinstance(event, ObjectDeleted):
            self._deleted(event, now)
        # What became of decisions is seen in the objects as well.

    def snapshot(self) -> Snapshot:
        """The cluster as a document."""
        objects = {kind: list(found.values()) for kind, found in self.objects.items()}
        names = sorted({pod.spec.scheduler_name for pod in objects.get("Pod", ()) if pod.spec.scheduler_name})
        return Snapshot(objects, tuple(names), "", self.changeable, self.gates, self.groups_by_label)

    def _updated(self, event: ObjectUpdated, now: float) -> None:
        obj, found = event.object, self.objects.setdefault(event.kind, {})
        key = _key(obj)
        before = found.get(key)
        found[key] = obj
        if self._scheduler is None:
            return
        if event.kind == "Pod" and obj.spec.scheduler_name not in self._names:
            self._scheduler = None  # it has no profile for this pod
            return
        if event.kind in GROUPS:
            return self._group_changed(EntityKey(event.kind, *key), event, now)
        self._queue_is_stale |= event.kind == "Node" and before is None
        self._touch(event.kind, before)
        self._handle(event, now)
        self._touch(event.kind, obj)

    def _deleted(self, event: ObjectDeleted, now: float) -> None:
        key = (event.namespace, event.name)
        before = self.objects.get(event.kind, {}).pop(key, None)
        if self._scheduler is None:
            return
        if event.kind in GROUPS:
            return self._group_changed(EntityKey(event.kind, *key), event, now)
        self._queue_is_stale |= event.kind == "Node"  # members on a node that is gone do not count
        self._touch(event.kind, before)
        self._handle(event, now)

    def _handle(self, event: Event, now: float) -> None:
        assert self._scheduler is not None
        self._scheduler.handle(event, now)
        self._handled += 1
        if self._handled > EVENTS_BEFORE_REBUILD:
            self._scheduler = None

    def _touch(self, kind: str, obj: Any) -> None:
        """Mark what an object is part of, as the scheduler knows it at this moment."""
        if obj is None or self._scheduler is None:
            return
        if kind == "Node":
            self._stale_nodes.add(obj.metadata.name)
        elif kind == "Pod":
            if obj.spec.node_name:
                self._stale_nodes.add(obj.spec.node_name)
            member = self._scheduler.view().members.get(obj.metadata.uid)
            if member is not None:
                self._stale_gangs.add(gang_of(member))
            self._queue_is_stale = True

    def _group_changed(self, key: EntityKey, event: Event, now: float) -> None:
        """A group may get another root, or leave its children as roots: then their pods count under others."""
        before = self._roots(key)
        self._handle(event, now)
        after = {each: self._root_of(each) for each in (*before, *self._roots(key))}
        self._queue_is_stale = True
        for each, root in after.items():
            self._stale_gangs.update(known for known in (each, root, before.get(each)) if known is not None)
            if root is not None and before.get(each) != root:
                self._stale_nodes.update(member.node for member in self.scheduler.view().groups[each].running.values())

    def _roots(self, key: EntityKey) -> dict[EntityKey, EntityKey]:
        """The groups of a tree, each with its root."""
        group = self._scheduler.view().groups.get(key) if self._scheduler is not None else None
        return {} if group is None else {each.key: each.root().key for each in group.root().subtree()}

    def _root_of(self, key: EntityKey) -> EntityKey | None:
        group = self._scheduler.view().groups.get(key) if self._scheduler is not None else None
        return None if group is None else group.root().key

    # --- the tables --------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Bring the tables up to date; says whether anything changed."""
        view = self.scheduler.view()
        if not (self._stale_nodes or self._stale_gangs or self._queue_is_stale):
            return False
        self.version += 1
        levels = levels_of(view) if view.has_nodes else []
        if levels != self.levels:
            self.levels, self.born = levels, self.version
            self._stale_nodes.update(self.nodes.rows)
        nodes, self._stale_nodes = self._stale_nodes, set()
        changed = sum([self._refresh_node(name) for name in nodes])
        gangs, self._stale_gangs = self._stale_gangs, set()
        changed += sum([self._refresh_gang(key) for key in gangs])
        return bool(changed) or self._queue_is_stale

    def refresh_queue(self) -> None:
        """Bring the queue up to date. It is asked for less often: every row may change with one that leaves.

        Expected starts are not in it: each is a look at every pod.
        """
        if not self._queue_is_stale:
            return
        self._queue_is_stale = False
        found = rows(self.scheduler, most=MOST_QUEUE_ROWS, expected=0)
        self.waiting = sum(1 for _ in self.scheduler.view().queue_entries())
        if found != self.queue:
            self.version += 1
            self.queue, self.queue_version = found, self.version

    @property
    def queue_is_stale(self) -> bool:
        """Whether the queue may have changed since it was made."""
        return self._queue_is_stale

    def gang_id(self, key: EntityKey) -> int:
        """A number for a gang, the same for as long as this board exists."""
        return self._ids.setdefault(key, len(self._ids) + 1)

    def _build(self) -> None:
        snapshot = self.snapshot()
        self._scheduler = self._make_scheduler(snapshot)
        self._names = frozenset(self._scheduler.state.config.profiles) | {""}
        self._names |= {pod.spec.scheduler_name for pod in snapshot.objects.get("Pod", ())}
        self._handled = 0
        view = self._scheduler.view()
        self._stale_nodes = {name for _, name in self.objects.get("Node", {})} | set(self.nodes.rows)
        self._stale_gangs = {group.key for group in view.groups.values() if group.root() is group}
        self._stale_gangs |= set(self.gangs.rows)
        self._queue_is_stale = True

    def _refresh_node(self, name: str) -> bool:
        old = self.nodes.rows.get(name)
        node = self.objects.get("Node", {}).get(("", name))
        new = occupancy(self.scheduler.view(), node, self.levels) if node is not None else None
        if new == old:
            return False
        for each in old.gangs if old is not None else ():
            self.pods_on_nodes[each.gang] -= each.pods
            self._stale_gangs.add(each.gang)
        for each in new.gangs if new is not None else ():
            self.pods_on_nodes[each.gang] += each.pods
            self._stale_gangs.add(each.gang)
        if new is None:
            return self.nodes.remove(name, self.version)
        return self.nodes.set(name, new, self.version)

    def _refresh_gang(self, key: EntityKey) -> bool:
        group = self.scheduler.view().groups.get(key)
        if key.kind in GROUPS and (group is None or group.root() is not group):
            self.pods_on_nodes.pop(key, None)
            return self.gangs.remove(key, self.version)
        if group is not None:
            return self.gangs.set(key, gang_state(group), self.version)
        pods = self.pods_on_nodes[key]
        if pods <= 0:
            del self.pods_on_nodes[key]
            return self.gangs.remove(key, self.version)
        return self.gangs.set(key, GangState(*key, bound=pods), self.version)


def _key(obj: Any) -> ObjectKey:
    return (obj.metadata.namespace, obj.metadata.name)
