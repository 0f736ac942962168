"""Assumed pods: pods that count on a node although the API has not shown them there yet.

A pod is assumed when its `Bind` decision is made. Two things follow, in either order: the watch shows the pod on its
node, and the API answers the bind. Both are kept by pod, and the binds in flight below a group are a counter on the
group (`Group.in_flight`) that the forest keeps true when trees change, so an answer never looks for the attempt that it
belongs to.

Only this class calls `assume` and `forget` of the cluster and the forest.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Member
from muster.scheduler.interface import cluster_events
from muster.scheduler.state.requeue_signals import RequeueSignals


class AssumedPods:
    """The pods whose binds were decided and are not both answered and shown by the watch."""

    def __init__(self, cluster: Cluster, forest: Forest, signals: RequeueSignals) -> None:
        self._cluster = cluster
        self._forest = forest
        self._signals = signals
        self._unconfirmed: dict[str, str] = {}  # the watch does not show them on their node yet; uid -> node
        self._unanswered: set[str] = set()  # the API has neither accepted nor refused their bind

    def assume(self, members: Sequence[Member], footprints: Sequence[Footprint], nodes: Sequence[str]) -> None:
        """Count pending pods on their nodes from now on; their binds are in flight."""
        pods = [member.pod for member in members]
        placed = dict(zip([member.uid for member in members], nodes, strict=True))
        assert self._unconfirmed.keys().isdisjoint(placed), "a pod is bound once at a time"
        assert self._unanswered.isdisjoint(placed), "a pod is bound once at a time"
        self._unconfirmed.update(placed)
        self._unanswered.update(placed)
        self._cluster.assume_many(zip(pods, footprints, nodes, strict=True))
        self._forest.assume(zip(members, nodes, strict=True))
        for footprint in dict.fromkeys(footprints):
            self._signals.pod(footprint)
        for node in dict.fromkeys(nodes):
            if node in self._cluster.index:
                self._signals.taken(self._cluster.index[node])
        self._signals.event(cluster_events.POD_PLACED)

    def confirm(self, uid: str) -> None:
        """The watch shows the pod on a node."""
        self._unconfirmed.pop(uid, None)

    def bind_answered(self, member: Member) -> None:
        """The API has accepted or refused the bind of a pod."""
        self._forest.bind_answered(member)
        self._unanswered.discard(member.uid)

    def forget(self, member: Member) -> None:
        """The pod will not run on its assumed node: the bind was refused, or the pod is being deleted or finished."""
        if not member.assumed:
            return
        slot = self._cluster.index.get(member.assumed)
        if slot is not None:
            self._signals.capacity(slot)
            self._signals.pod(self._cluster.pods[member.uid].footprint)
        self._cluster.forget(member.uid)
        self._forest.forget(member)
        self._signals.event(cluster_events.POD_GONE)
        self.confirm(member.uid)

    def remove(self, member: Member) -> None:
        """The pod is gone, whatever becomes of its bind."""
        self.forget(member)
        self._unanswered.discard(member.uid)

    def in_flight(self) -> int:
        """How many binds the API has not answered yet."""
        return len(self._unanswered)

    def check(self) -> None:
        """Every unconfirmed pod counts on its node, in the cluster and in the forest."""
        for uid in self._unconfirmed.keys() | self._unanswered:
            in_flight = self._forest.members[uid].in_flight
            assert in_flight == (uid in self._unanswered), f"pod {uid}: in flight is {in_flight}"
        for uid, node in self._unconfirmed.items():
            entry, member = self._cluster.pods[uid], self._forest.members[uid]
            assert (entry.node, entry.assumed, member.assumed) == (node, True, node), f"pod {uid}"
        assert {uid for uid, entry in self._cluster.pods.items() if entry.assumed} == self._unconfirmed.keys()
