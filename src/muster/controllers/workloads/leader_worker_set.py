"""A LeaderWorkerSet: each replica is a gang of its own, with subgroups a tree of its own.

    PodGroup <lws>-<index>-<revision>
    Composite <lws>-<index>-<revision>              with subgroups
      PodGroup <lws>-<index>-<revision>-s<subgroup>, -leader for a leader that is in none

The revision is only written on pods, so replicas are made as their pods appear; old and new revisions never share a
group. Workers that are created when the leader is ready, or scheduled, are expected members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from muster.api.expected_members import CREATED, READY, SCHEDULED
from muster.api.membership import LWS, Facts
from muster.controllers.workloads.tree import (
    JSON,
    Branch,
    Expected,
    Leaf,
    Node,
    Sight,
    Tree,
    at,
    number,
    one_priority,
    short_uid,
)
from muster.controllers.workloads.wishes import REPLICA, SET, Wishes

EXCLUSIVE = f"{LWS}exclusive-topology"
SIZE = f"{LWS}size"
SUBGROUP_EXCLUSIVE = f"{LWS}subgroup-exclusive-topology"
LEVELS = (REPLICA, SET)


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """One replica in one revision of the template."""

    index: int
    revision: str
    size: int = 0  # as its pods say; 0: they do not


@dataclass(slots=True)
class _Set:
    name: str
    size: int
    subgroup_size: int
    leader_excluded: bool
    leader: JSON
    worker: JSON
    after: str  # what workers wait for
    wishes: Wishes
    minimum: int | None  # None: one by one

    @staticmethod
    def of(owner: JSON) -> _Set:
        meta, spec = owner["metadata"], owner.get("spec") or {}
        template: JSON = spec.get("leaderWorkerTemplate") or {}
        worker: JSON = template.get("workerTemplate") or {}
        size = max(1, number(template.get("size"), 1))
        wishes = Wishes.of(owner, LEVELS, ("replica", "subgroup"))
        asked = wishes.gang(worker, size)
        annotations = meta.get("annotations") or {}
        after = READY if spec.get("startupPolicy") == "LeaderReady" else CREATED
        if annotations.get(EXCLUSIVE) and after == CREATED:
            after = SCHEDULED
        return _Set(
            name=meta["name"],
            size=size,
            subgroup_size=number(at(template, "subGroupPolicy", "subGroupSize"), 0),
            leader_excluded=at(template, "subGroupPolicy", "subGroupPolicyType") == "LeaderExcluded",
            leader=template.get("leaderTemplate") or worker,
            worker=worker,
            after=after,
            wishes=wishes,
            minimum=size if isinstance(asked, str) else asked,
        )


def instances(seen: Mapping[str, Facts]) -> list[Instance]:
    """The replicas that pods belong to."""
    found = {
        Instance(int(index), pod.labels.get(f"{LWS}template-revision-hash", ""), _size(pod))
        for pod in seen.values()
        if (index := pod.labels.get(f"{LWS}group-index", "")).isdigit()
    }
    return sorted(found)


def _size(pod: Facts) -> int:
    text = pod.annotations.get(SIZE, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def tree_of(owner: JSON, sight: Sight) -> Tree:
    """The groups of the replicas that have pods."""
    this, spec = _Set.of(owner), owner.get("spec") or {}
    wishes = this.wishes
    replicas = [_replica(this, each) for each in instances(sight.seen)]
    roots: list[Node] = list(replicas)
    if wishes.level(REPLICA, LEVELS) == SET and len(replicas) > 1 and this.minimum is not None:
        name = f"{this.name}-{short_uid(owner['metadata'])}"
        wanted = number(spec.get("replicas"), 1)
        roots = [Branch(name, min(wanted, len(replicas)) or 1, tuple(replicas), wishes.topology(), {}, "set")]
    priority, remarks = one_priority([this.leader, this.worker])
    recreated = at(spec, "leaderWorkerTemplate", "restartPolicy") in (None, "", "RecreateGroupOnPodRestart", "Default")
    return Tree(
        tuple(roots),
        priority,
        wishes.whole(recreated and this.minimum is not None),
        (*wishes.remarks, *remarks),
    )


def _replica(this: _Set, instance: Instance) -> Node:
    if instance.size and instance.size != this.size:  # an older revision, of another size
        minimum = None if this.minimum is None else min(this.minimum, instance.size)
        this = replace(this, size=instance.size, minimum=instance.size if this.minimum == this.size else minimum)
    name = f"{this.name}-{instance.index}-{instance.revision}"
    role = {"group-index": str(instance.index)}
    wishes = this.wishes
    top = wishes.topology("replica") or (wishes.topology() if wishes.level(REPLICA, LEVELS) == REPLICA else "")
    top = top or wishes.topology_in(at(this.worker, "metadata", "annotations")) or wishes.kueue_topology(this.worker)[0]
    exclusive = str(wishes.annotations.get(EXCLUSIVE) or "")
    if not this.subgroup_size:
        return Leaf(name, this.minimum, top or exclusive, role, _expected(this, 1, this.size - 1), "replica")
    below = wishes.topology("subgroup") or str(wishes.annotations.get(SUBGROUP_EXCLUSIVE) or "")
    leaves = tuple(
        Leaf(
            f"{name}-{part.suffix}",
            None if this.minimum is None else part.leaders + part.workers,
            below if part.workers else "",
            {**role, "subgroup": part.suffix},
            _expected(this, part.leaders, part.workers),
            f"subgroup-{part.leaders}-{part.workers}",
        )
        for part in subgroups(this.size, this.subgroup_size, leader_excluded=this.leader_excluded)
    )
    minimum = None if this.minimum is None else len(leaves)
    return Branch(name, minimum, leaves, top or exclusive, role, "replica")


class Subgroup(NamedTuple):
    suffix: str
    leaders: int
    workers: int


def subgroups(size: int, subgroup_size: int, *, leader_excluded: bool) -> Iterator[Subgroup]:
    """How the pods of a replica are divided."""
    workers = size - 1
    if leader_excluded:
        yield Subgroup("leader", 1, 0)
        for index in range(workers // subgroup_size):
            yield Subgroup(f"s{index}", 0, subgroup_size)
        return
    extra = workers % subgroup_size == 0  # then the leader comes on top of subgroup 0
    for index in range(workers // subgroup_size if extra else size // subgroup_size):
        leaders = 1 if index == 0 else 0
        yield Subgroup(f"s{index}", leaders, subgroup_size if extra else subgroup_size - leaders)


def _expected(this: _Set, leaders: int, workers: int) -> tuple[Expected, ...]:
    """The members that come when the leader is ready or scheduled."""
    if this.after == CREATED or not workers or this.minimum is None:
        return ()
    if not leaders:
        return (Expected(this.worker, workers, this.after),)
    if this.leader == this.worker:
        return (Expected(this.worker, leaders + workers, this.after),)
    return (Expected(this.leader, leaders, CREATED), Expected(this.worker, workers, this.after))
