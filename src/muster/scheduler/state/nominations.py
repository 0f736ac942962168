"""Nominations: seats kept for pods whose victims are still leaving (`status.nominatedNodeName`)."""

from __future__ import annotations

from dataclasses import dataclass

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey


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

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_pod: dict[str, Nomination] = {}

    def nominate(self, nomination: Nomination) -> None:
        self._by_pod[nomination.uid] = nomination

    def remove(self, uid: str) -> None:
        """The pod is gone."""
        self._by_pod.pop(uid, None)

    def clear(self, entity: EntityKey) -> list[str]:
        """Give back every seat kept for an entity; the pods they were kept for."""
        uids = [uid for uid, nomination in self._by_pod.items() if nomination.entity == entity]
        for uid in uids:
            del self._by_pod[uid]
        return uids

    def against(self, entity: EntityKey, priority: int) -> list[tuple[Shape, int]]:
        """The seats (shape, slot) that an entity must not take: those of others with its priority or more."""
        return [
            (nomination.shape, self._cluster.index[nomination.node])
            for nomination in self._by_pod.values()
            if nomination.entity != entity
            and nomination.priority >= priority
            and nomination.node in self._cluster.index
        ]

    def entities(self) -> set[EntityKey]:
        """The entities that seats are kept for."""
        return {nomination.entity for nomination in self._by_pod.values()}

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_pod

    def __bool__(self) -> bool:
        return bool(self._by_pod)
