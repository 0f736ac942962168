"""Preemptions: evictions under way, pods that are leaving, and pods the API would not delete.

The victims of a plan are first marked (`DisruptionTarget`), then deleted in a later cycle, then gone. A mark whose
preemption was given up, or that an earlier run of the scheduler left behind, is unclaimed: the next plan may claim
the pod at no further cost, otherwise the mark is taken back once every entity had its cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from muster.scheduler.cache.arrays import ChangeLog
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.device_claims import ClaimKey
from muster.scheduler.groups.group import Group
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import Placed

REFUSED_SECONDS = 50.0  # a pod that could not be deleted is not chosen again for so long


@dataclass(slots=True)
class PreemptionInProgress:
    """An eviction under way for one entity."""

    placed: Placed
    victims: set[str]  # uids that are not gone yet
    marked: set[str]  # of these, the ones whose deletion was not yet requested

    @property
    def deleted(self) -> set[str]:
        """Victims whose deletion was requested."""
        return self.victims - self.marked


class Preemptions:
    """Preemptions by entity, and what became of pods that were to leave."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._in_progress: dict[EntityKey, PreemptionInProgress] = {}
        self._unclaimed: set[str] = set()
        self._terminating: set[str] = set()  # bound pods that are being deleted
        self._refused_until: dict[str, float] = {}
        self._log_seen = 0
        self._held_claims: dict[str, set[ClaimKey]] = {}  # of victims that are gone
        self._undecided: set[EntityKey] = set()  # entities whose last choice of victims came to no result

    # --- one preemption ----------------------------------------------------------------------------

    def start(self, key: EntityKey, placed: Placed, victims: set[str], marked: set[str]) -> None:
        """Victims of an entity were marked; some of the pods it waits for may be leaving anyway."""
        assert key not in self._in_progress, f"{key} has a preemption under way"
        self._unclaimed -= marked
        self._in_progress[key] = PreemptionInProgress(placed, victims, marked)

    def get(self, key: EntityKey) -> PreemptionInProgress | None:
        return self._in_progress.get(key)

    def entities(self) -> list[EntityKey]:
        """The entities that wait for victims, in the order in which their preemptions began."""
        return list(self._in_progress)

    def waiting_for(self, uid: str) -> list[EntityKey]:
        """The entities that wait for this pod to go."""
        return [key for key, preemption in self._in_progress.items() if uid in preemption.victims]

    def on_node(self, node: str) -> list[EntityKey]:
        """The entities that have a seat on this node in view."""
        return [
            key
            for key, preemption in self._in_progress.items()
            if any(assignment.node == node for assignment in preemption.placed.assignments)
        ]

    def delete_marked(self, key: EntityKey) -> list[str]:
        """The victims whose deletion is requested now."""
        preemption = self._in_progress[key]
        marked = sorted(preemption.marked)
        preemption.marked.clear()
        return marked

    def cancel(self, key: EntityKey) -> set[str]:
        """The entity needs its victims no more; the pods whose marks are to be taken back."""
        preemption = self._in_progress.pop(key, None)
        if preemption is None:
            return set()
        return preemption.marked | (preemption.victims & self._refused_until.keys())

    def abandon(self, key: EntityKey) -> None:
        """The entity cannot be scheduled now: its marks are unclaimed."""
        preemption = self._in_progress.pop(key, None)
        if preemption is not None:
            self._unclaimed |= preemption.marked

    # --- what happens to pods ----------------------------------------------------------------------

    def pod_terminating(self, uid: str) -> None:
        """A bound pod is being deleted, by whomever."""
        self._terminating.add(uid)

    def pod_left_node(self, uid: str) -> None:
        """A pod no longer counts on its node."""
        self._terminating.discard(uid)

    def victim_leaving(self, uid: str) -> None:
        """A pod is terminating: its deletion need not be requested."""
        for preemption in self._in_progress.values():
            if uid in preemption.victims:
                preemption.marked.discard(uid)

    def victim_gone(self, uid: str) -> list[EntityKey]:
        """A pod is gone or finished; the entities whose last victim it was."""
        done: list[EntityKey] = []
        for key, preemption in self._in_progress.items():
            if uid in preemption.victims:
                preemption.marked.discard(uid)
                preemption.victims.discard(uid)
                if not preemption.victims:
                    done.append(key)
        return done

    def claims_of_victim(self, uid: str, claims: Iterable[ClaimKey]) -> None:
        """A victim is gone, but these claims are still reserved for it: their devices are not free yet."""
        for preemption in self._in_progress.values():
            if uid in preemption.victims:
                preemption.marked.discard(uid)
        self._held_claims[uid] = set(claims)

    def released(self, claim: ClaimKey, consumers: Set[str]) -> list[str]:
        """The victims that are gone and whose last claim is reserved only for these others now."""
        gone: list[str] = []
        for uid, held in list(self._held_claims.items()):
            if claim in held and uid not in consumers:
                held.discard(claim)
                if not held:
                    del self._held_claims[uid]
                    gone.append(uid)
        return gone

    def refused(self, uid: str, now: float) -> None:
        """The API would not delete a pod; it is not chosen again for a while."""
        self._refused_until[uid] = now + REFUSED_SECONDS

    def expire_refusals(self, now: float) -> list[str]:
        """The pods that may be chosen again from now on."""
        expired = [uid for uid, until in self._refused_until.items() if until <= now]
        for uid in expired:
            del self._refused_until[uid]
        return expired

    def next_expiry(self) -> float | None:
        """When the next pod may be chosen again."""
        return min(self._refused_until.values(), default=None)

    def forget_pod(self, uid: str) -> None:
        """The pod is gone."""
        self._refused_until.pop(uid, None)

    @property
    def refused_pods(self) -> frozenset[str]:
        return frozenset(self._refused_until)

    # --- unclaimed marks ---------------------------------------------------------------------------

    def adopt_mark(self, uid: str) -> None:
        """A pod was marked by an earlier run of this scheduler."""
        self._unclaimed.add(uid)

    @property
    def unclaimed(self) -> frozenset[str]:
        """Marked pods that no preemption under way was started for."""
        return frozenset(self._unclaimed)

    def release_unclaimed(self) -> set[str]:
        """The pods whose marks no entity needs; no mark is unclaimed after this."""
        unclaimed, self._unclaimed = self._unclaimed - self.victims(), set()
        return unclaimed

    # --- sets of pods ------------------------------------------------------------------------------

    def victims(self) -> set[str]:
        """Every pod that some entity waits for."""
        return {uid for preemption in self._in_progress.values() for uid in preemption.victims}

    def leaving(self) -> frozenset[str]:
        """Pods on nodes that need no further decision to be gone: terminating, or their deletion was requested."""
        deleted = {uid for preemption in self._in_progress.values() for uid in preemption.deleted}
        surely = self._terminating | (deleted - self._refused_until.keys())
        return frozenset(uid for uid in surely if uid in self._cluster.pods)

    def is_any_leaving(self) -> bool:
        """Whether a pod on a node is terminating or was marked by an earlier run."""
        return not self._cluster.pods.keys().isdisjoint(self._unclaimed | self._terminating)

    def is_losing_pods(self, group: Group) -> bool:
        """Whether a pod of the group is marked, or a victim of some entity."""
        targets = self._unclaimed | self.victims()
        if not targets:
            return False
        return any(not targets.isdisjoint(leaf.running) for leaf in group.leaves())

    # --- nodes that changed --------------------------------------------------------------------------

    def take_changes(self, log: ChangeLog) -> set[int]:
        """The slots logged since this was last asked; all that are planned for if the log does not go back so far."""
        changed, self._log_seen = log.since(self._log_seen), log.end
        if not self._in_progress:
            return set()
        if changed is not None:
            return set(changed.tolist())
        return {one.index for preemption in self._in_progress.values() for one in preemption.placed.assignments}

    # --- without a result --------------------------------------------------------------------------

    def set_undecided(self, key: EntityKey) -> None:
        """No victims were chosen for an entity, though it is not proven that none would do."""
        self._undecided.add(key)

    def take_undecided(self, key: EntityKey) -> bool:
        """Whether the last choice of victims for an entity was left undecided; the note is taken."""
        undecided = key in self._undecided
        self._undecided.discard(key)
        return undecided
