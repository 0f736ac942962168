"""Reservations: room that is kept for groups which have waited long, until they fit.

A reservation names an entity, the seats that are kept for it (a shape and a node each, no pod) and since when the
entity is entitled to it. An entity holds at most one. The seats count as taken for entities of the same or a lower
priority, whether they are free by now or not, so that what becomes free there stays free; entities of a higher
priority, and those that are bound in part and must be completed, are not bound by them. Entities that are known to be
gone before the expected start may use the room meanwhile (backfill).

Which entities hold one, and where, follows from the objects and the clock alone (`cycle.reserve`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey

DISTRUST_SECONDS = 3600.0  # so long the promises of an owner whose pod overstayed are not believed

Owner = tuple[str, str, str]  # namespace, kind and name of a controller; without one, the namespace alone


@dataclass(frozen=True, slots=True)
class Reservation:
    """The room that is kept for one entity."""

    entity: EntityKey
    uid: str
    scheduler: str
    priority: int
    domains: tuple[tuple[str, str], ...]  # (topology key, value), the widest first
    seats: tuple[tuple[Shape, str], ...]  # shape and node
    leaving: tuple[str, ...]  # uids of the pods that have to go before everything is free
    since: float  # when its patience was over
    start: float | None  # when the last of these pods is gone; None if that is not known

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(node for _, node in self.seats)

    @property
    def place(self) -> tuple[object, ...]:
        """Where the room is, comparable between two computations."""
        return (self.uid, self.domains, sorted((shape.id, node) for shape, node in self.seats))


class Reservations:
    """The reservations in the order of their entities, when they are reviewed again, and who broke a promise."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_entity: dict[EntityKey, Reservation] = {}
        self._distrusted_until: dict[Owner, float] = {}
        self._overstayed: set[str] = set()  # uids that were reported
        self.now = 0.0  # of the present cycle
        self.as_said = False  # who holds one is read from the conditions of groups, not from the settings
        self.learning = False  # when pods end is being worked out; until then it is not known what is kept
        self.asked = False  # groups wait that were not looked at yet
        self.version = -1  # of the state that the reservations were computed from
        self.not_before = 0.0  # the next computation, unless something is due
        self.due: float | None = None  # when time alone changes something

    def __len__(self) -> int:
        return len(self._by_entity)

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self._by_entity.values())

    def get(self, key: EntityKey) -> Reservation | None:
        return self._by_entity.get(key)

    def replace_all(self, reservations: list[Reservation]) -> None:
        """The reservations as they were computed, those of entities that come first first."""
        self._by_entity = {each.entity: each for each in reservations}

    def drop(self, key: EntityKey) -> Reservation | None:
        """The entity needs no room kept any more; what was kept."""
        self.asked = True
        return self._by_entity.pop(key, None)

    def ask(self) -> None:
        """A group failed, or the reservations are not known yet: look which groups are entitled."""
        self.asked = True

    # --- seats -------------------------------------------------------------------------------------

    def against(self, entity: EntityKey, priority: int, longest_run: float | None) -> list[tuple[Shape, int]]:
        """The seats (shape, slot) that an entity must not take; it is gone after `longest_run`, if that is known."""
        return [
            (shape, self._cluster.index[node])
            for reservation in self._by_entity.values()
            if reservation.entity != entity
            and reservation.priority >= priority
            and not self._in_time(reservation, longest_run)
            for shape, node in reservation.seats
            if node in self._cluster.index
        ]

    def _in_time(self, reservation: Reservation, longest_run: float | None) -> bool:
        if longest_run is None or reservation.start is None:
            return False
        return self.now + longest_run <= reservation.start

    # --- promises ----------------------------------------------------------------------------------

    def overstays(self, uid: str, owner: Owner, until: float) -> bool:
        """A pod did not go when it was to; whether that is new. Its owner is not believed for a while."""
        self._distrusted_until[owner] = max(until, self._distrusted_until.get(owner, 0.0))
        new = uid not in self._overstayed
        self._overstayed.add(uid)
        return new

    @property
    def distrusts(self) -> bool:
        """Whether the promises of some owner do not count."""
        return bool(self._distrusted_until)

    def believes(self, owner: Owner) -> bool:
        """Whether the owner's promises count."""
        return self._distrusted_until.get(owner, 0.0) <= self.now

    def forget_pod(self, uid: str) -> None:
        """The pod is gone."""
        self._overstayed.discard(uid)

    def forget_promises(self) -> None:
        """Drop what no longer counts."""
        self._distrusted_until = {owner: until for owner, until in self._distrusted_until.items() if until > self.now}
