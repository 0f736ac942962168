"""The domains of a topology constraint: which of them have room for a group, and in which order they are tried.

All domains of a label key are evaluated at once: seats are summed per domain, so nothing is placed. The score follows
kube-scheduler's placement scoring: pods of the group there, relative to the best domain, plus how full cpu and memory
would be, each from 0 to 100. Ties go to a seeded order of the domain values, which does not depend on the order in
which nodes arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import cast

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.cache.arrays import Ids, Ints
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.planning.node_matrix import Mask
from muster.scheduler.planning.partial_placement import PartialPlacement

Floats = NDArray[np.float64]


@dataclass(slots=True)
class DomainCapacity:
    """Per domain: whether the minimum could hold, how many pods fit at most, and their cpu and memory."""

    feasible: Mask
    pods: Floats
    usage: Floats  # [2, domain]


@dataclass(slots=True)
class TopologyDomains:
    """The domains of one label key among some nodes."""

    key: str
    ids: Ints  # value id per node, 0 outside
    size: int
    nodes: Mask | None  # the nodes they are made of; None for all

    @classmethod
    def of(cls, placement: PartialPlacement, key: str, nodes: Mask | None) -> TopologyDomains:
        ids = placement.cluster.labels(key)
        if nodes is not None:
            ids = cast(Ids, np.where(nodes, ids, 0))
        return cls(key, ids.astype(np.int64), int(ids.max(initial=0)) + 1, nodes)

    @property
    def count(self) -> int:
        """How many there are; nodes without the label are in none."""
        return int(np.count_nonzero(np.bincount(self.ids, minlength=1)[1:]))

    def sums(self, values: Ints) -> Floats:
        """A value per node, summed over each domain."""
        return cast(Floats, np.bincount(self.ids, weights=values, minlength=self.size))


def capacity_of(placement: PartialPlacement, request: GroupRequest, domains: TopologyDomains) -> DomainCapacity:
    """An upper bound per domain: each PodGroup alone, each shape alone."""
    if isinstance(request, PodGroupRequest):
        return _leaf_capacity(placement, request, domains)
    feasible = np.zeros(domains.size)
    pods, usage = np.zeros(domains.size), np.zeros((2, domains.size))
    for child in request.open:
        part = capacity_of(placement, child, domains)
        feasible += part.feasible
        pods += np.where(part.feasible, part.pods, 0)
        usage += np.where(part.feasible, part.usage, 0)
    for child in request.done:
        part = capacity_of(placement, child, domains)
        pods += part.pods
        usage += part.usage
    return DomainCapacity(feasible >= request.need, pods, usage)


def unbounded_capacity(domains: TopologyDomains) -> DomainCapacity:
    """Every domain counts as feasible: for pods whose room depends on where others are placed."""
    feasible = np.ones(domains.size, dtype=bool)
    return DomainCapacity(feasible, np.ones(domains.size), np.zeros((2, domains.size)))


def _leaf_capacity(placement: PartialPlacement, leaf: PodGroupRequest, domains: TopologyDomains) -> DomainCapacity:
    pods, usage = np.zeros(domains.size), np.zeros((2, domains.size))
    nested = leaf.topology if leaf.topology and leaf.topology != domains.key else ""
    for identical in leaf.identical:
        seats = placement.trial.seats(identical.shape)
        room = _best_nested(placement, seats, domains, nested) if nested else domains.sums(seats)
        count = np.minimum(room, identical.count)
        pods += count
        usage += count * identical.shape.footprint.nonzero[:, None]
    return DomainCapacity(pods >= leaf.need, pods, usage)


def _best_nested(placement: PartialPlacement, seats: Ints, domains: TopologyDomains, key: str) -> Floats:
    """The largest sum of seats in one domain of another key, for each of these domains."""
    inner = placement.cluster.labels(key).astype(np.int64)
    width = int(inner.max(initial=0)) + 1
    pair = np.where(inner > 0, domains.ids * width + inner, 0)
    sums = np.bincount(pair, weights=seats, minlength=domains.size * width)
    sums[0] = 0
    return sums.reshape(domains.size, width).max(axis=1)


def feasible_domains(
    placement: PartialPlacement, request: GroupRequest, domains: TopologyDomains, capacity: DomainCapacity
) -> Ints:
    """The domains in which the counts allow a group's minimum; only the one in use if members are bound already."""
    feasible = np.flatnonzero(capacity.feasible & (capacity.pods > 0))
    feasible = feasible[feasible > 0]
    if request.pin is not None:
        pinned = placement.cluster.label_id(domains.key, request.pin) if request.pin else 0
        feasible = feasible[feasible == pinned]
    return feasible


def ranked(
    placement: PartialPlacement,
    request: GroupRequest,
    domains: TopologyDomains,
    capacity: DomainCapacity,
    *,
    only_best: bool = False,
) -> list[tuple[int, int]]:
    """The feasible domains as (score, value id), best first."""
    feasible = feasible_domains(placement, request, domains, capacity)
    if len(feasible) < 2:
        return [(0, int(value)) for value in feasible]
    scores = score(placement, domains, feasible, request.bound + capacity.pods[feasible], capacity.usage[:, feasible])
    if only_best:
        top = scores == scores.max()
        feasible, scores = feasible[top], scores[top]
    seed, label = placement.cluster.seed, placement.cluster.label_column(domains.key).values
    points: list[int] = scores.tolist()
    values: list[int] = feasible.tolist()
    order = sorted((-each, domain_rank(seed, label[value]), value) for each, value in zip(points, values, strict=True))
    return [(-negative, value) for negative, _, value in order]


def score(placement: PartialPlacement, domains: TopologyDomains, values: Ints, pods: Floats, usage: Floats) -> Ints:
    """Pods in the domain, scaled to the best, plus how full cpu and memory would be."""
    cluster = placement.cluster
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
