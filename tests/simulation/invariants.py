"""The invariants of the scheduler, judged at every revision from the log alone; shares no code with the product.

I1: no gang stays partly bound while nothing of it is under way. I2: no node has more than it offers, by binds of ours.
I7: a pod is bound once, to a node that was there and open as far as its scheduler had seen. I8: only the holder of the
lease writes. I11: who is evicted was marked, and somebody more important waits. I13: what is secret stays secret.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.amounts import cpu_of, cpu_of_pod
from tests.simulation.history import DELETED, Entry, History, Key
from tests.simulation.network import Exchange

if TYPE_CHECKING:
    from tests.simulation.world import World

Obj = dict[str, Any]
PODS, NODES, LEASES = "pods", "nodes", "leases.coordination.k8s.io"
GROUPS = "podgroups.scheduling.k8s.io"
COMPOSITES = "compositepodgroups.scheduling.k8s.io"
ENDED = ("Succeeded", "Failed")
CANARY = b"canary-4f1c2b"
ELECTION = (LEASES, "kube-system", "muster")
SEEN_FOR = 1.0  # seconds that a change was known before a decision must respect it


def minimum_of(group: Obj) -> int:
    policy = group["spec"].get("schedulingPolicy") or {}
    return int((policy.get("gang") or {}).get("minCount") or 0)


def group_of(pod: Obj) -> str:
    return (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or ""


def is_marked(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "DisruptionTarget" and each["status"] == "True" for each in conditions)


def _is_closed(node: Obj | None) -> bool:
    return node is None or bool(node["spec"].get("unschedulable"))


class Invariants:
    """Hears every change, and complains."""

    def __init__(self, world: World, history: History, complain: Callable[[str], None]) -> None:
        self._world = world
        self._history = history
        self._complain = complain
        self._pods: dict[str, Obj] = {}  # by name, as they are now
        self._nodes: dict[str, Obj] = {}
        self._bound_by: dict[str, tuple[str, int]] = {}  # uid -> scheduler that bound it, revision
        self._unbound_until: dict[str, float] = {}  # uid of a pod that waited -> when it waited last
        self._priority: dict[str, int] = {}
        self._gone: dict[str, tuple[str, float]] = {}  # uid of a pod that is gone -> its group, since when
        self._holders: list[tuple[float, str]] = []
        self._binding: dict[Exchange, str] = {}  # bind requests in flight -> group
        self._last_bind: dict[str, float] = {}  # group -> when a bind of it was last in flight
        self._lost: dict[str, int] = {}  # group -> members that were bound and went, by whatever cause
        self._started: set[str] = set()  # groups that had their minimum since they last had nobody
        self._bound_by_others: set[str] = set()  # groups with a member that somebody else bound, likewise
        self._partial_since: dict[str, float] = {}
        self._left_behind: dict[str, None] = {}  # uids of pods whose group was evicted as a whole
        history.listeners.append(self.changed)

    # --- requests ----------------------------------------------------------------------------------

    def sent(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "POST" and request.path.endswith("/binding"):
            pod = self._pods.get(request.target.name if request.target else "")
            self._binding[exchange] = group_of(pod) if pod is not None else ""

    def done(self, exchange: Exchange) -> None:
        group = self._binding.pop(exchange, None)
        if group:
            self._last_bind[group] = self._world.loop.now

    # --- changes -----------------------------------------------------------------------------------

    def changed(self, entry: Entry) -> None:
        if CANARY in entry.body and entry.key[0] != "secrets":
            self._complain(f"I13 a secret stands in {'/'.join(entry.key)}")
        if entry.origin is not None:
            self._check_leader(entry, entry.origin)
        match entry.key[0]:
            case "pods":
                self._pod_changed(entry)
            case "nodes":
                if entry.type == DELETED:
                    self._nodes.pop(entry.key[2], None)
                else:
                    self._nodes[entry.key[2]] = entry.object()
            case "podgroups.scheduling.k8s.io":
                self._count_start(entry.key[2])  # the minimum may have become smaller
                if entry.type == DELETED:
                    self._check_protection(entry)
            case "leases.coordination.k8s.io" if entry.key == ELECTION:
                holder = (entry.object().get("spec") or {}).get("holderIdentity") or ""
                self._holders.append((entry.at, "" if entry.type == DELETED else holder))

    def _check_protection(self, entry: Entry) -> None:
        """A group that is used by pods stays, as far as the controller that lets it go has seen them."""
        origin = entry.origin
        if origin is None or origin.client.name != "controllers":
            return
        seen = self._history.seen_by(origin.client.identity, PODS, origin.sent_at - SEEN_FOR)
        for pod in self.members(entry.key[2]):
            created = self._history.keys[(PODS, "default", pod["metadata"]["name"])]
            first = next(
                each.revision for each in created if each.object()["metadata"]["uid"] == pod["metadata"]["uid"]
            )
            if first <= seen and pod["status"].get("phase") not in ENDED:
                self._complain(f"I7 the group {entry.key[2]} is gone and its pod {pod['metadata']['name']} is not")

    def _check_leader(self, entry: Entry, origin: Exchange) -> None:
        """I8: when a write was sent, nobody else held the lease."""
        if origin.client.name not in self._world.electing or entry.key[0] == LEASES:
            return
        holder = ""
        for at, identity in self._holders:
            if at > origin.sent_at:
                break
            holder = identity
        if holder != origin.client.identity:
            self._complain(
                f"I8 {origin.client.identity} wrote {'/'.join(entry.key)} while {holder or 'nobody'} held the lease"
            )

    def _pod_changed(self, entry: Entry) -> None:
        name, pod = entry.key[2], entry.object()
        before = self._pods.get(name)
        uid = pod["metadata"]["uid"]
        if before is not None and before["metadata"]["uid"] != uid:
            self._complain(f"I4 pod {name} changed its uid without being deleted")
        node = pod["spec"].get("nodeName") or ""
        old = (before["spec"].get("nodeName") or "") if before is not None else ""
        self._priority[uid] = int(pod["spec"].get("priority") or 0)
        if old and node != old:
            self._complain(f"I7 pod {name} moved from {old} to {node}")
        if entry.type == DELETED:
            self._pods.pop(name, None)
            self._gone[uid] = (group_of(pod), self._world.loop.now)
        else:
            self._pods[name] = pod
            if not node:
                self._unbound_until[uid] = self._world.loop.now
        if node and not old and before is not None:
            self._bound(entry, pod, node)
        self._count_losses(entry, before, pod)
        if group_of(pod):
            self._count_start(group_of(pod))
        going = entry.type == DELETED or pod["metadata"].get("deletionTimestamp")
        was_going = before is not None and before["metadata"].get("deletionTimestamp")
        ours = entry.origin is not None and entry.origin.client.name in self._world.scheduler_names
        if ours and going and not was_going and before is not None:
            self._evicted(entry, before)

    def _count_losses(self, entry: Entry, before: Obj | None, pod: Obj) -> None:
        """A member that was bound and is gone or has ended: the gang is no longer half-started by our doing."""
        group = group_of(pod)
        if not group or before is None or not before["spec"].get("nodeName"):
            return
        ended = pod["status"].get("phase") in ENDED and before["status"].get("phase") not in ENDED
        if ended or (entry.type == DELETED and before["status"].get("phase") not in ENDED):
            self._lost[group] = self._lost.get(group, 0) + 1

    def _count_start(self, group: str) -> None:
        """Remember whether a gang has started: what becomes of it later, or of its minimum, is not half a start."""
        found = self._history.keys.get((GROUPS, "default", group), [])
        bound = self._bound_members(group)
        if not bound:
            self._started.discard(group)
            self._bound_by_others.discard(group)
            self._lost.pop(group, None)
        elif found and bound + self._lost.get(group, 0) >= minimum_of(found[-1].object()):
            self._started.add(group)

    def _bound_members(self, group: str) -> int:
        return sum(1 for pod in self.members(group) if pod["spec"].get("nodeName"))

    # --- binds -------------------------------------------------------------------------------------

    def _bound(self, entry: Entry, pod: Obj, node: str) -> None:
        uid, origin = pod["metadata"]["uid"], entry.origin
        who = origin.client.name if origin is not None else ""
        self._bound_by[uid] = (who, entry.revision)
        self._unbound_until[uid] = self._world.loop.now
        if origin is None or who not in self._world.scheduler_names:
            self._bound_by_others.add(group_of(pod))
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._complain(f"I7 {who} bound {pod['metadata']['name']}, which was being deleted")
        # However often a bind was sent before: what was known counts when the one that took place was sent.
        self._check_node(origin, pod, node)
        self._check_room(entry, origin, node)

    def _check_node(self, origin: Exchange, pod: Obj, node: str) -> None:
        """I7: the node was there and open when the bind was sent, as far as had been seen a while before."""
        client, sent = origin.client, origin.sent_at
        if self._world.was_paused(client.name, sent - 2 * SEEN_FOR):
            return
        seen = self._history.seen_by(client.identity, NODES, sent - SEEN_FOR)
        if not seen:
            return
        before = self._history.at((NODES, "", node), seen)
        known = self._history.at((NODES, "", node), self._history.seen_by(client.identity, NODES, sent))
        if _is_closed(before) and _is_closed(known):
            state = "was not there" if known is None else "was cordoned"
            self._complain(f"I7 {client.name} bound {pod['metadata']['name']} to {node}, which {state}")

    def _check_room(self, entry: Entry, origin: Exchange, node: str) -> None:
        """I2: what runs on the node fits, apart from what others bound unseen and what the node lost unseen."""
        client, sent = origin.client, origin.sent_at
        seen_pods = self._history.seen_by(client.identity, PODS, sent)
        seen_nodes = self._history.seen_by(client.identity, NODES, sent)
        used, ours = 0, self._world.team_of(client.name)
        for pod in self._pods.values():
            if pod["spec"].get("nodeName") != node or pod["status"].get("phase") in ENDED:
                continue
            who, revision = self._bound_by.get(pod["metadata"]["uid"], ("", 0))
            if who in ours or revision <= seen_pods:
                used += cpu_of_pod(pod)
        offered = self._offered(node, seen_nodes)
        if used > offered:
            where = f"{entry.key[2]} to {node} at {entry.revision}"
            self._complain(f"I2 {client.name} bound {where}: {used}m of {offered}m cpu are in use")

    def _offered(self, node: str, since: int) -> int:
        """The most that a node has offered since a revision."""
        most = 0
        found = self._history.keys.get((NODES, "", node), [])
        for index, entry in enumerate(found):
            newer = index + 1 < len(found) and found[index + 1].revision <= since
            if not newer and entry.type != DELETED:
                most = max(most, cpu_of(entry.object()["status"].get("allocatable") or {}))
        return most

    # --- evictions ---------------------------------------------------------------------------------

    def _evicted(self, entry: Entry, before: Obj) -> None:
        """I11: a victim was marked, and somebody more important was waiting; or its gang is given back.

        A gang below its minimum is given back whoever has bound its members.
        """
        meta = before["metadata"]
        group = group_of(before)
        if not is_marked(before):
            if not group or not self._never_started(group):
                self._complain(f"I11 {meta['name']} was evicted without a mark")
            return
        self._world.counts["preemption"] += 1
        found = self._history.keys.get((GROUPS, "default", group), [])
        if found and (found[-1].object()["spec"].get("disruptionMode") or {}).get("all") is not None:
            members = [each for each in self.members(group) if each["spec"].get("nodeName")]
            members = [each for each in members if each["status"].get("phase") not in ENDED]
            self._left_behind.update({each["metadata"]["uid"]: None for each in members})
        since = self._world.loop.now - 120.0
        names = {pod["metadata"]["uid"]: pod["spec"].get("schedulerName") for pod in self._pods.values()}
        waiting = [
            other
            for other, until in self._unbound_until.items()
            if until >= since or (other in names and not self._is_bound(other))
        ]
        least = self._least_priority(before, since)
        if not any(self._priority[other] > least for other in waiting):
            self._complain(f"I11 {meta['name']} was evicted and nobody more important waits")

    def _least_priority(self, pod: Obj, since: float) -> int:
        """The lowest priority that a victim has had lately.

        It is that of its root, and where the root names no class, the lowest in the tree. Without a root it is its own.
        """
        own = self._priority[pod["metadata"]["uid"]]
        root = self._root_of(group_of(pod))
        found = self._history.keys.get(root, [])
        lately = [entry.object()["spec"] for entry in found if entry.at >= since] or [
            entry.object()["spec"] for entry in found[-1:] if entry.type != DELETED
        ]
        alive = {each["metadata"]["uid"]: group_of(each) for each in self._pods.values()}
        alive |= {uid: group for uid, (group, at) in self._gone.items() if at >= since}
        lowest = min((self._priority[uid] for uid, group in alive.items() if self._root_of(group) == root), default=own)
        return min((spec.get("priority") or lowest for spec in lately), default=own)

    def _root_of(self, group: str) -> Key:
        """The root of a group's tree; trees have two levels here."""
        found = self._history.keys.get((GROUPS, "default", group), [])
        parent = found[-1].object()["spec"].get("parentCompositePodGroupName") if found else ""
        return (COMPOSITES, "default", parent) if parent else (GROUPS, "default", group)

    def _is_bound(self, uid: str) -> bool:
        return uid in self._bound_by

    # --- gangs -------------------------------------------------------------------------------------

    def groups(self) -> dict[str, Obj]:
        return {each["metadata"]["name"]: each for each in self._history.current(GROUPS)}

    def members(self, group: str) -> list[Obj]:
        return [pod for pod in self._pods.values() if group_of(pod) == group]

    def is_partial(self, name: str) -> bool:
        """Whether a gang is bound below its minimum by our doing, which it is not if somebody else bound a member."""
        return self._never_started(name) and name not in self._bound_by_others

    def _never_started(self, name: str) -> bool:
        """Whether members are bound of a gang that never had its minimum, and not because some went."""
        known = (GROUPS, "default", name) in self._history.keys
        return known and bool(self._bound_members(name)) and name not in self._started

    def partial_groups(self) -> list[str]:
        """I1: the gangs that are bound in part while none of their binds is in flight."""
        flying = set(self._binding.values())
        return [name for name in self.groups() if name not in flying and self.is_partial(name)]

    def review(self) -> None:
        """Called now and then: a gang that is partly bound for long on a calm day is a fault."""
        now = self._world.loop.now
        partial = set(self.partial_groups())
        for name in [name for name in self._partial_since if name not in partial]:
            del self._partial_since[name]
        for name in partial:
            since = self._partial_since.setdefault(name, now)
            quiet = max(
                self._world.troubled_until, self._last_bind.get(name, 0.0), since, self._world.touched.get(name, 0)
            )
            if now - quiet > 30.0:
                self._complain(f"I1 gang {name} is bound in part, and nothing of it is under way")

    def binds_in_flight(self) -> int:
        return len(self._binding)

    def left_behind(self) -> list[str]:
        """Pods that were bound beside a member that was evicted, where the group goes as a whole."""
        return list(self._left_behind)
