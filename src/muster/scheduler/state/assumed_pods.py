"""Assumed pods: pods that count on a node although the API has not shown them there yet.

A pod is assumed when its `Bind` decision is made. Two things end that, in either order: the watch shows the pod on its
node, and the API answers the bind. Records are keyed by the pod, and the binds in flight below a group are a counter
on the group (`Group.in_flight`) that the forest keeps true when trees change, so an answer never has to look for the
attempt it belongs to.

Only this class calls `assume` and `forget` of the cluster and the forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Member
from muster.scheduler.interface import cluster_events
from muster.scheduler.state.requeue_signals import RequeueSignals


@dataclass(slots=True)
class AssumedPod:
    """One pod whose bind was decided; the record ends when the bind is answered and its place is known."""

    node: str
    confirmed: bool = False  # the watch shows the pod on the node, or it will never be there
    answered: bool = False  # the API has accepted or refused the bind


class AssumedPods:
    """The pods whose binds were decided and are not both answered and shown by the watch."""

    def __init__(self, cluster: Cluster, forest: Forest, signals: RequeueSignals) -> None:
        self._cluster = cluster
        self._forest = forest
        self._signals = signals
        self._pods: dict[str, AssumedPod] = {}

    def assume(self, placed: Sequence[tuple[Member, Footprint, str]]) -> None:
        """Count pending pods on their nodes from now on; their binds are in flight."""
        self._cluster.assume_many((member.pod, footprint, node) for member, footprint, node in placed)
        self._forest.assume((member, node) for member, _, node in placed)
        for footprint, node in dict.fromkeys((footprint, node) for _, footprint, node in placed):
            self._signals.pod(footprint)
            if node in self._cluster.index:
                self._signals.taken(self._cluster.index[node])
        self._signals.event(cluster_events.POD_PLACED)
        for member, _, node in placed:
            assert member.uid not in self._pods, "a pod is bound once at a time"
            self._pods[member.uid] = AssumedPod(node)

    def confirm(self, uid: str) -> None:
        """The watch shows the pod on a node."""
        pod = self._pods.get(uid)
        if pod is not None:
            pod.confirmed = True
            self._end(uid, pod)

    def bind_answered(self, member: Member) -> None:
        """The API has accepted or refused the bind of a pod."""
        pod = self._pods.get(member.uid)
        self._forest.bind_answered(member)
        if pod is not None:
            pod.answered = True
            self._end(member.uid, pod)

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
        self._pods.pop(member.uid, None)

    def in_flight(self) -> int:
        """How many binds the API has not answered yet."""
        return sum(not pod.answered for pod in self._pods.values())

    def check(self) -> None:
        """Every unconfirmed pod counts on its node, in the cluster and in the forest."""
        for uid, pod in self._pods.items():
            member = self._forest.members[uid]
            assert member.in_flight is not pod.answered, f"pod {uid}: answered is {pod.answered}"
            if not pod.confirmed:
                entry = self._cluster.pods[uid]
                assert (entry.node, entry.assumed, member.assumed) == (pod.node, True, pod.node), f"pod {uid}"
        assumed = {uid for uid, entry in self._cluster.pods.items() if entry.assumed}
        assert assumed == {uid for uid, pod in self._pods.items() if not pod.confirmed}

    def _end(self, uid: str, pod: AssumedPod) -> None:
        if pod.answered and pod.confirmed:
            del self._pods[uid]
