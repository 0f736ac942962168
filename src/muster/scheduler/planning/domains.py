"""Choosing a domain by counting: what each could hold, and which the score prefers.

All domains of a label key are judged at once: seats are summed per domain, so nothing is placed. The
score is the one of kube-scheduler's placement scoring: pods of the group there, relative to the best
domain, plus how full cpu and memory would be, each from 0 to 100. Ties go to a seeded order of the
domain values, which does not depend on how nodes arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import cast

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.cache.arrays import Ids, Ints
from muster.scheduler.planning.goal import Goal, LeafGoal
from muster.scheduler.planning.node_matrix import Mask
from muster.scheduler.planning.partial_placement import PartialPlacement

Floats = NDArray[np.float64]


@dataclass(slots=True)
class DomainCapacity:
    """Per domain: whether the minimum could hold, how many pods at most, and their cpu and memory."""

    able: Mask
    pods: Floats
    usage: Floats  # [2, domain]


@dataclass(slots=True)
class TopologyDomains:
    """The domains of one key inside a scope."""

    key: str
    ids: Ints  # value id per node, 0 outside the scope
    size: int
    inside: Mask | None

    @classmethod
    def of(cls, seating: PartialPlacement, key: str, mask: Mask | None) -> TopologyDomains:
        ids = seating.cluster.labels(key)
        if mask is not None:
            ids = cast(Ids, np.where(mask, ids, 0))
        return cls(key, ids.astype(np.int64), int(ids.max(initial=0)) + 1, mask)

    @property
    def count(self) -> int:
        """How many there are; nodes without the label are in none."""
        return int(np.count_nonzero(np.bincount(self.ids, minlength=1)[1:]))

    def sums(self, values: Ints) -> Floats:
        return cast(Floats, np.bincount(self.ids, weights=values, minlength=self.size))


def potential(seating: PartialPlacement, goal: Goal, domains: TopologyDomains) -> DomainCapacity:
    """An upper bound per domain: each leaf alone, each shape alone."""
    if isinstance(goal, LeafGoal):
        return _leaf_potential(seating, goal, domains)
    need, able = goal.need, np.zeros(domains.size)
    pods, usage = np.zeros(domains.size), np.zeros((2, domains.size))
    for child in goal.open:
        part = potential(seating, child, domains)
        able += part.able
        pods += np.where(part.able, part.pods, 0)
        usage += np.where(part.able, part.usage, 0)
    for child in goal.done:
        part = potential(seating, child, domains)
        pods += part.pods
        usage += part.usage
    return DomainCapacity(able >= need, pods, usage)


def potential_of_members(goal: Goal, domains: TopologyDomains) -> DomainCapacity:
    """Every domain is worth a look: for members whose room depends on where others go."""
    able = np.ones(domains.size, dtype=bool)
    return DomainCapacity(able, np.ones(domains.size), np.zeros((2, domains.size)))


def _leaf_potential(seating: PartialPlacement, leaf: LeafGoal, domains: TopologyDomains) -> DomainCapacity:
    pods, usage = np.zeros(domains.size), np.zeros((2, domains.size))
    nested = leaf.topology if leaf.topology and leaf.topology != domains.key else ""
    for lot in leaf.lots:
        shape = seating.shapes[lot.shape]
        seats = seating.trial.seats(shape)
        room = _best_part(seating, seats, domains, nested) if nested else domains.sums(seats)
        took = np.minimum(room, lot.count)
        pods += took
        usage += took * shape.footprint.nonzero[:, None]
    return DomainCapacity(pods >= leaf.need, pods, usage)


def _best_part(seating: PartialPlacement, seats: Ints, domains: TopologyDomains, key: str) -> Floats:
    """The largest sum of seats in one nested domain, for each outer one."""
    inner = seating.cluster.labels(key).astype(np.int64)
    width = int(inner.max(initial=0)) + 1
    pair = np.where(inner > 0, domains.ids * width + inner, 0)
    sums = np.bincount(pair, weights=seats, minlength=domains.size * width)
    sums[0] = 0
    return sums.reshape(domains.size, width).max(axis=1)


def able_domains(seating: PartialPlacement, goal: Goal, domains: TopologyDomains, found: DomainCapacity) -> Ints:
    """The domains in which the counts allow a group's minimum; only one if members are there already."""
    able = np.flatnonzero(found.able & (found.pods > 0))
    able = able[able > 0]
    if goal.pin is not None:
        pinned = seating.cluster.label_id(domains.key, goal.pin) if goal.pin else 0
        able = able[able == pinned]
    return able


def ranked(
    seating: PartialPlacement, goal: Goal, domains: TopologyDomains, found: DomainCapacity, *, only_best: bool = False
) -> list[tuple[int, int]]:
    """The able domains as (score, value), best first."""
    able = able_domains(seating, goal, domains, found)
    if len(able) < 2:
        return [(0, int(value)) for value in able]
    scores = score(seating, domains, able, goal.bound + found.pods[able], found.usage[:, able])
    if only_best:
        top = scores == scores.max()
        able, scores = able[top], scores[top]
    seed, label = seating.cluster.seed, seating.cluster.label_column(domains.key).values
    points: list[int] = scores.tolist()
    values: list[int] = able.tolist()
    order = sorted((-had, domain_rank(seed, label[value]), value) for had, value in zip(points, values, strict=True))
    return [(-negative, value) for negative, _, value in order]


def score(seating: PartialPlacement, domains: TopologyDomains, values: Ints, pods: Floats, usage: Floats) -> Ints:
    """Pods in the domain, scaled to the best, plus how full cpu and memory would be."""
    cluster = seating.cluster
    top = max(float(pods.max(initial=0)), 1.0)
    counted = (pods * 100 // top).astype(np.int64)
    total = np.zeros(len(values), dtype=np.int64)
    measured = np.zeros(len(values), dtype=np.int64)
    for row in range(2):
        capacity = domains.sums(cluster.alloc[row])[values]
        used = domains.sums(cluster.nonzero[row])[values] + usage[row]
        share = np.minimum(used, capacity) * 100 // np.maximum(capacity, 1)
        total += np.where(capacity > 0, share, 0).astype(np.int64)
        measured += capacity > 0
    return counted + total // np.maximum(measured, 1)


@lru_cache(maxsize=65536)
def domain_rank(seed: int, value: str) -> int:
    """A seeded order of domain names."""
    return int.from_bytes(blake2b(f"{seed}/{value}".encode(), digest_size=8).digest(), "big")
