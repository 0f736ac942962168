"""The entities that use most of what an entity lacks, in the domain where it came nearest."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.cache.arrays import Bools
from muster.scheduler.explain.explanation import Holder
from muster.scheduler.groups.group import entity_key, priority_of
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import Shortage
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.messages import amount_text, is_resource


@dataclass(slots=True)
class ResourceShare:
    """What one entity uses of some resources on some nodes."""

    priority: int
    sums: list[int]
    uids: list[str] = field(default_factory=list[str])


def short_resources(state: SchedulerState, shortage: Shortage) -> list[str]:
    """The resources a shortage names, as far as the cluster knows them."""
    return [what for what, _ in shortage.lacking if is_resource(what) and what in state.cluster.row]


def inside_of(state: SchedulerState, key: str, domain: str) -> Bools:
    """The nodes of a domain; all of them without one."""
    cluster = state.cluster
    if not domain:
        return np.ones(cluster.size, dtype=np.bool_)
    return cluster.labels(key) == cluster.label_id(key, domain)


def shares(state: SchedulerState, resources: list[str], inside: Bools) -> dict[EntityKey, ResourceShare]:
    """What every entity uses of some resources on some nodes; with no resource named, how many pods it has there."""
    cluster = state.cluster
    rows = [cluster.row[name] for name in resources or ["pods"]]
    found: dict[EntityKey, ResourceShare] = {}
    for uid, entry in cluster.pods.items():
        if entry.slot < 0 or not inside[entry.slot]:
            continue
        vector = entry.footprint.vector
        amounts = [int(vector[row]) if row < len(vector) else 0 for row in rows]
        if not any(amounts):
            continue
        member = state.forest.members[uid]
        key = entity_key(member)
        share = found.get(key)
        if share is None:
            top = member.group.root() if member.group is not None else None
            priority = priority_of(top) if top is not None and top.exists else member.traits[1]
            share = found[key] = ResourceShare(priority, [0] * len(rows))
        share.uids.append(uid)
        share.sums = [a + b for a, b in zip(share.sums, amounts, strict=True)]
    return found


def holders(state: SchedulerState, own: EntityKey, shortage: Shortage, most: int) -> tuple[Holder, ...]:
    """The other entities that use most of what is short, the largest first."""
    names = short_resources(state, shortage)
    if not names:
        return ()
    used = shares(state, names, inside_of(state, shortage.topology, shortage.domain))
    used.pop(own, None)
    largest = sorted(used.items(), key=lambda item: (-item[1].sums[0], item[0]))[:most]
    return tuple(
        Holder(
            *key,
            share.priority,
            len(share.uids),
            {name: amount_text(name, amount) for name, amount in zip(names, share.sums, strict=True)},
        )
        for key, share in largest
    )
