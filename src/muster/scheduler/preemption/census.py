"""Who could be evicted, worked out once for as long as nothing changes.

Many roots may fail in one state of the world, each of them asking the same question.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from muster.scheduler.cluster import Cluster
from muster.scheduler.groups import Forest
from muster.scheduler.planning.demand import GroupKey
from muster.scheduler.preemption.units import Quorum, Unit, quorums, units

Question = tuple[int, int, frozenset[str], frozenset[str]]


class Candidates(NamedTuple):
    """The units below a priority."""

    units: list[Unit]
    quorums: Mapping[GroupKey, Quorum]
    in_flight: bool  # some cannot be asked yet because they are just being bound


class Census:
    """The last answer."""

    def __init__(self) -> None:
        self._question: Question | None = None
        self._answer = Candidates([], {}, False)

    def below(
        self, priority: int, forest: Forest, cluster: Cluster, version: int, *, marked: Set[str], spared: Set[str]
    ) -> Candidates:
        """The units of lower priority; `version` says when the answer may be another."""
        question = (version, priority, frozenset(marked), frozenset(spared))
        if question != self._question:
            found, in_flight = units(forest, cluster, priority, marked=marked, spared=spared)
            self._answer = Candidates(found, quorums(forest, found), in_flight)
            self._question = question
        return self._answer
