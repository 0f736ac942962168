"""Nominations: seats kept for pods whose victims are still leaving (`status.nominatedNodeName`)."""

from __future__ import annotations

from dataclasses import dataclass

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.requeue_signals import RequeueSignals


@dataclass(frozen=True, slots=True)
class Nomination:
    """One pod's seat on a node, kept for its entity against entities of lower or equal priority."""

    uid: str
    shape: Shape
    node: str
    priority: int
    entity: EntityKey


class Nominations:
    """All nominations, by pod."""

    def __init__(self, cluster: Cluster, signals: RequeueSignals) -> None:
        self._cluster = cluster
        self._signals = signals
        self._by_pod: dict[str, Nomination] = {}

    def nominate(self, nomination: Nomination) -> None:
        self.remove(nomination.uid)
        self._by_pod[nomination.uid] = nomination
        slot = self._cluster.index.get(nomination.node)
        if slot is not None:
            self._signals.taken(slot)
            self._signals.pod(nomination.shape.footprint)

    def remove(self, uid: str) -> None:
        """The pod is gone, or its seat is not kept any longer."""
        nomination = self._by_pod.pop(uid, None)
        slot = self._cluster.index.get(nomination.node) if nomination is not None else None
        if nomination is not None and slot is not None:
            self._signals.nomination_cleared(slot, nomination.priority)
            self._signals.pod(nomination.shape.footprint)

    def clear(self, entity: EntityKey) -> list[str]:
        """Give back every seat kept for an entity; the pods they were kept for."""
        if not self._by_pod:
            return []
        uids = [uid for uid, nomination in self._by_pod.items() if nomination.entity == entity]
        for uid in uids:
            self.remove(uid)
        return uids

    def against(self, entity: EntityKey | None, priority: int) -> list[tuple[Shape, int]]:
        """The seats (shape, slot) that an entity must not take: those of others with its priority or more."""
        return [
            (nomination.shape, self._cluster.index[nomination.node])
            for nomination in self._by_pod.values()
            if nomination.entity != entity
            and nomination.priority >= priority
            and nomination.node in self._cluster.index
        ]

    def of(self, entity: EntityKey) -> dict[str, str]:
        """The pods that seats are kept for on behalf of an entity, and their nodes."""
        return {uid: one.node for uid, one in self._by_pod.items() if one.entity == entity}

    def entities(self) -> set[EntityKey]:
        """The entities that seats are kept for."""
        return {nomination.entity for nomination in self._by_pod.values()}

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_pod

    def __bool__(self) -> bool:
        return bool(self._by_pod)
