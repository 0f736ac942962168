"""`validate`: a placement is checked from the API objects before anything of it leaves the scheduler.

It shares no code with the planner, the plugins or the cluster's columns: requests are added up again from pod specs,
rules are checked on labels and taints as they are written, groups are counted pod by pod. Pods of one shape on one node
are checked once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from muster.api.types import Node
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.node_amounts import Amounts, ShapeAmounts, amounts_of, requests
from muster.scheduler.checking.node_rules import claims_fault, ports_conflict, ports_of
from muster.scheduler.checking.pod_rules import RunningPods, between_pods
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.placement.verdict import Assignment, Placed

Nominated = Sequence[tuple[Shape, int]]


def validate(
    placed: Placed,
    request: GroupRequest,
    cluster: Cluster,
    evicted: frozenset[str] = frozenset(),
    nominated: Nominated = (),
) -> str | None:
    """None if the placement is valid, else the first fault in words.

    `evicted` pods are taken to be gone, `nominated` pods of others to be on their slots.
    """
    check = _Check(cluster, frozenset(evicted), nominated)
    return check.pods(placed, request) or check.groups(placed, request) or check.nodes() or check.between_pods()


class _Check:
    """One placement. Shapes are told apart by identity."""

    def __init__(self, cluster: Cluster, evicted: frozenset[str], nominated: Nominated) -> None:
        self.cluster = cluster
        self.evicted = evicted
        self.nominated = nominated
        self.amounts = amounts_of(cluster)
        self.shapes: dict[int, ShapeAmounts] = {}  # distinct shapes of the placement, by their id()
        self.requests: dict[int, Amounts] = {}  # of each shape, without resources that its profile ignores
        self.placed: list[tuple[int, int]] = []  # shape and slot, in the order of the placement
        self.counts: dict[int, dict[int, int]] = {}  # slot -> shape -> pods

    # --- pods ------------------------------------------------------------------------------------

    def pods(self, placed: Placed, request: GroupRequest) -> str | None:
        """Every assignment names a pending member of the request, once, and a node that exists."""
        pending = {member.uid: member for leaf in _leaves(request) for member in leaf.members}
        uids = [assignment.uid for assignment in placed.assignments]
        unknown = set(uids).difference(pending)
        if unknown or len(set(uids)) < len(uids):
            who = min(unknown) if unknown else next(uid for uid, times in Counter(uids).items() if times > 1)
            return f"seat of {who}: not a waiting member, or seated twice"
        for node, slot in {(assignment.node, assignment.index) for assignment in placed.assignments}:
            if self.cluster.index.get(node) != slot:
                return f"the node {node} is not at index {slot}"
        self._read(placed, [pending[uid].shape for uid in uids])
        return None if uids else "the plan seats nobody"

    def _read(self, placed: Placed, shapes: list[Shape]) -> None:
        distinct = {id(shape): shape for shape in shapes}
        self.shapes = {key: self.amounts.shape(shape.pod) for key, shape in distinct.items()}
        self.requests = {
            key: {name: n for name, n in self.shapes[key].requests.items() if not shape.profile.ignores(name)}
            for key, shape in distinct.items()
        }
        self.placed = [
            (id(shape), assignment.index) for shape, assignment in zip(shapes, placed.assignments, strict=True)
        ]
        for (key, slot), count in Counter(self.placed).items():
            self.counts.setdefault(slot, {})[key] = count

    # --- groups ----------------------------------------------------------------------------------

    def groups(self, placed: Placed, request: GroupRequest) -> str | None:
        """Minimums at every level, one domain for every constrained group."""
        by_uid = {assignment.uid: assignment for assignment in placed.assignments}
        satisfied = _satisfied(request, by_uid)
        if not satisfied[request.key]:
            return f"the minimum of {request.key.name} does not hold"
        untrue = [key for key in placed.placed_groups if not satisfied.get(key, False)]
        if untrue:
            return f"{untrue[0].name} is said to hold and does not"
        return self._group(request, by_uid, satisfied)

    def _group(
        self, request: GroupRequest, by_uid: dict[str, Assignment], satisfied: dict[EntityKey, bool]
    ) -> str | None:
        used = [by_uid[m.uid] for leaf in _leaves(request) for m in leaf.members if m.uid in by_uid]
        if not used:
            return None
        if not satisfied[request.key]:
            return f"{request.key.name} has seats although its minimum does not hold"
        if request.topology:
            fault = self._domain(request, used)
            if fault is not None:
                return fault
        for child in () if isinstance(request, PodGroupRequest) else request.children:
            fault = self._group(child, by_uid, satisfied)
            if fault is not None:
                return fault
        return None

    def _domain(self, request: GroupRequest, used: list[Assignment]) -> str | None:
        key = request.topology
        nodes = {assignment.node for assignment in used}
        values = {(self.cluster.node_objects[node].metadata.labels or {}).get(key) for node in nodes}
        if None in values:
            return f"{request.key.name} uses a node without the label {key}"
        values |= set(request.domains)
        if len(values) > 1:
            named = ", ".join(sorted(str(value) for value in values))
            return f"{request.key.name} lies in more than one domain of {key}: {named}"
        return None

    # --- nodes -----------------------------------------------------------------------------------

    def nodes(self) -> str | None:
        """Capacity of every resource, and every rule about nodes, for each shape once."""
        nominated = self._nominated()
        names, objects = self.cluster.names, self.cluster.node_objects
        for slot, counts in self.counts.items():
            node = objects[names[slot]]
            for key in counts:
                refusal = self.shapes[key].rules.refusal(node)
                if refusal is not None:
                    return f"{self.shapes[key].pod.metadata.name} may not be on {node.metadata.name}: {refusal}"
            fault = self._capacity(node, slot, counts, nominated.get(slot))
            if fault is not None:
                return fault
        return None

    def _nominated(self) -> dict[int, Amounts]:
        """What nominated pods of others request of each slot."""
        found: dict[int, Amounts] = {}
        for shape, slot in self.nominated:
            total = found.setdefault(slot, {"pods": 0})
            total["pods"] += 1
            for name, amount in requests(shape.pod).items():
                total[name] = total.get(name, 0) + amount
        return found

    def _capacity(self, node: Node, slot: int, counts: dict[int, int], nominated: Amounts | None) -> str | None:
        requested, allocatable = self.amounts.requested(slot, self.evicted), self.amounts.allocatable(node)
        planned: Amounts = {"pods": sum(counts.values())}
        for key, count in counts.items():
            for name, amount in self.requests[key].items():
                planned[name] = planned.get(name, 0) + amount * count
        for name, amount in planned.items():
            used = requested.get(name, 0) + (nominated.get(name, 0) if nominated else 0)
            have = allocatable.get(name, 0)
            if used + amount > have:
                return f"{node.metadata.name} has {have} {name}; {used} in use and {amount} planned"
        return None

    # --- between pods ----------------------------------------------------------------------------

    def between_pods(self) -> str | None:
        """Ports, claims, and the rules between pods."""
        shapes = self.shapes
        fault = self._ports() if any(shape.ports for shape in shapes.values()) else None
        if fault is None and any(shape.has_volumes for shape in shapes.values()):
            fault = claims_fault(self.cluster, [(shapes[key].pod, slot) for key, slot in self.placed], self.evicted)
        if fault is not None:
            return fault
        running = RunningPods(self.cluster, self.evicted)
        repelling = list(running.repelling(self.counts, [shape.pod for shape in shapes.values()]))
        if not repelling and not any(shape.depends_on_pods for shape in shapes.values()):
            return None
        objects, names = self.cluster.node_objects, self.cluster.names
        placed = [(shapes[key].pod, objects[names[slot]]) for key, slot in self.placed]
        return between_pods(running, placed, {id(shape.pod): shape.pod for shape in shapes.values()}, repelling)

    def _ports(self) -> str | None:
        for slot, counts in self.counts.items():
            new = [port for key in counts for port in self.shapes[key].ports * counts[key]]
            there = [
                port
                for entry in self.cluster.pods_on(slot)
                if entry.pod.metadata.uid not in self.evicted
                for port in ports_of(entry.pod)
            ]
            there += [port for shape, where in self.nominated if where == slot for port in ports_of(shape.pod)]
            for at, port in enumerate(new):
                if any(ports_conflict(port, other) for other in (*there, *new[:at])):
                    return f"the port {port[2]} of {self.cluster.names[slot]} is wanted twice"
        return None


def _leaves(request: GroupRequest) -> list[PodGroupRequest]:
    if isinstance(request, PodGroupRequest):
        return [request]
    return [leaf for child in request.children for leaf in _leaves(child)]


def _satisfied(request: GroupRequest, by_uid: dict[str, Assignment]) -> dict[EntityKey, bool]:
    """Whether the minimum of every group holds once the assigned pods are bound."""
    if isinstance(request, PodGroupRequest):
        bound = request.bound + sum(member.uid in by_uid for member in request.members)
        return {request.key: bound >= request.minimum}
    found: dict[EntityKey, bool] = {}
    count = 0
    for child in request.children:
        found |= _satisfied(child, by_uid)
        count += found[child.key]
    found[request.key] = count >= request.minimum
    return found
