"""Claims and volumes of a plan, judged from the objects: exclusive claims, and where a volume can be reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from muster.api.selectors import node_matches
from muster.api.types import Pod

if TYPE_CHECKING:
    from muster.scheduler.cluster import Cluster

ONE_POD = "ReadWriteOncePod"

Claim = tuple[str, str]


def claims_of(pod: Pod) -> list[Claim]:
    """The claims a pod uses, by namespace and name."""
    meta = pod.metadata
    names: list[str] = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{meta.name}-{volume.name}")
    return [(meta.namespace, name) for name in names]


def claims_fault(cluster: Cluster, seats: Sequence[tuple[Pod, int]], evicted: frozenset[str]) -> str | None:
    """The first seat whose claims do not allow it, in words."""
    storage = cluster.storage
    users: Counter[Claim] = Counter()
    judged: set[tuple[Claim, int]] = set()
    for pod, slot in seats:
        for key in set(claims_of(pod)):
            users[key] += 1
            claim = storage.claims.get(key)
            if claim is None or (key, slot) in judged:
                continue
            judged.add((key, slot))
            volume = storage.volumes.get(claim.spec.volume_name)
            wanted = volume.spec.node_affinity.required if volume and volume.spec.node_affinity else None
            node = cluster.node_objects[cluster.names[slot]]
            if wanted is not None and not node_matches(wanted, node.metadata.name, node.metadata.labels):
                return f"{node.metadata.name} cannot reach the volume of the claim {key[1]}"
    return _shared(cluster, users, evicted)


def _shared(cluster: Cluster, users: Counter[Claim], evicted: frozenset[str]) -> str | None:
    """A claim for one pod only has one user, running pods included."""
    single = {key for key in users if ONE_POD in _modes(cluster, key)}
    if not single:
        return None
    for uid, entry in cluster.pods.items():
        if uid not in evicted and entry.pod.spec.volumes:
            users.update(single.intersection(claims_of(entry.pod)))
    shared = next((key for key in sorted(single) if users[key] > 1), None)
    return None if shared is None else f"the claim {shared[1]} is for one pod, {users[shared]} would use it"


def _modes(cluster: Cluster, key: Claim) -> tuple[str, ...]:
    claim = cluster.storage.claims.get(key)
    return (claim.spec.access_modes or ()) if claim is not None else ()
