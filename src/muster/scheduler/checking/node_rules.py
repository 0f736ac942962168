"""What a pod requires of its node, checked on the API objects: name, selector, affinity, taints, ports, claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from muster.api.selectors import first_untolerated, node_matches
from muster.api.types import Node, Pod, Taint
from muster.scheduler.cache.cluster import Cluster

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


ONE_POD = "ReadWriteOncePod"


Port = tuple[str, str, int]  # host IP, protocol, number


Claim = tuple[str, str]  # namespace, name


# --- the node itself -------------------------------------------------------------------------------


class NodeRules:
    """The rules of one pod about nodes; nodes that are equal in all that they read are checked once."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self._keys, self._by_name = _reads(pod)
        self._known: dict[object, str | None] = {}

    def refusal(self, node: Node) -> str | None:
        """Why the pod may not be on the node, or None."""
        spec, labels = node.spec, node.metadata.labels or {}
        values = tuple([labels.get(key) for key in self._keys]) if self._keys else ()
        read = (values, spec.taints, spec.unschedulable, node.metadata.name if self._by_name else "")
        if read not in self._known:
            self._known[read] = _refusal(self.pod, node)
        return self._known[read]


def _reads(pod: Pod) -> tuple[tuple[str, ...], bool]:
    """The label keys that a pod's rules about nodes read, and whether they read the name."""
    keys = set(pod.spec.node_selector or ())
    by_name = bool(pod.spec.node_name)
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in (required.node_selector_terms if required else None) or ():
        keys.update(expression.key for expression in term.match_expressions or ())
        by_name = by_name or bool(term.match_fields)
    return tuple(sorted(keys)), by_name


def _refusal(pod: Pod, node: Node) -> str | None:
    spec, name, labels = pod.spec, node.metadata.name, node.metadata.labels or {}
    if spec.node_name and spec.node_name != name:
        return f"it is bound to the node {spec.node_name} by name"
    if any(labels.get(key) != wanted for key, wanted in (spec.node_selector or {}).items()):
        return "the node selector does not match"
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is not None and not node_matches(required, name, labels):
        return "the required node affinity does not match"
    if node.spec.unschedulable and first_untolerated((UNSCHEDULABLE,), spec.tolerations) is not None:
        return "the node is unschedulable"
    taint = first_untolerated(node.spec.taints, spec.tolerations)
    return None if taint is None else f"the taint {taint.key} is not tolerated"


# --- host ports ------------------------------------------------------------------------------------


def ports_of(pod: Pod) -> Iterator[Port]:
    """The ports of the node that a pod occupies while it runs."""
    spec = pod.spec
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    for container in [*(spec.containers or ()), *sidecars]:
        for port in container.ports or ():
            number = port.host_port or (spec.host_network and port.container_port) or 0
            if number:
                yield port.host_ip or "0.0.0.0", port.protocol or "TCP", number


def ports_conflict(one: Port, other: Port) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


# --- claims and volumes ----------------------------------------------------------------------------


def claims_of(pod: Pod) -> list[Claim]:
    """The claims that a pod uses."""
    meta = pod.metadata
    names: list[str] = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{meta.name}-{volume.name}")
    return [(meta.namespace, name) for name in names]


def claims_fault(cluster: Cluster, placed: Sequence[tuple[Pod, int]], evicted: frozenset[str]) -> str | None:
    """The first pod whose claims do not allow its slot: a volume out of reach, or a claim for one pod with several."""
    volumes = cluster.volumes
    users: Counter[Claim] = Counter()
    checked: set[tuple[Claim, int]] = set()
    for pod, slot in placed:
        for key in set(claims_of(pod)):
            users[key] += 1
            claim = volumes.claims.get(key)
            if claim is None or (key, slot) in checked:
                continue
            checked.add((key, slot))
            volume = volumes.volumes.get(claim.spec.volume_name)
            wanted = volume.spec.node_affinity.required if volume and volume.spec.node_affinity else None
            node = cluster.node_objects[cluster.names[slot]]
            if wanted is not None and not node_matches(wanted, node.metadata.name, node.metadata.labels):
                return f"{node.metadata.name} cannot reach the volume of the claim {key[1]}"
    return _shared(cluster, users, evicted)


def _shared(cluster: Cluster, users: Counter[Claim], evicted: frozenset[str]) -> str | None:
    """A claim with access mode ReadWriteOncePod has one user, running pods included."""
    single = {key for key in users if ONE_POD in _modes(cluster, key)}
    if not single:
        return None
    for uid, entry in cluster.pods.items():
        if uid not in evicted and entry.pod.spec.volumes:
            users.update(single.intersection(claims_of(entry.pod)))
    shared = next((key for key in sorted(single) if users[key] > 1), None)
    return None if shared is None else f"the claim {shared[1]} is for one pod, {users[shared]} would use it"


def _modes(cluster: Cluster, key: Claim) -> tuple[str, ...]:
    claim = cluster.volumes.claims.get(key)
    return (claim.spec.access_modes or ()) if claim is not None else ()
