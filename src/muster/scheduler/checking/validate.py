"""`validate`: a plan is checked from the objects themselves before anything of it leaves the brain.

It shares no code with the planner, the constraints or the cluster's columns: requests are added up
again from pod specs, rules are judged on labels and taints as they are written, groups are counted
seat by seat. Pods of one shape on one node are judged once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from muster.api.types import Node
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.node_amounts import Amounts, NodeAmounts, ShapeAmounts, ledger_of, requests
from muster.scheduler.checking.node_rules import claims_fault, clash, ports_of
from muster.scheduler.checking.pod_rules import RunningPods, between_pods
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.placement.verdict import Assignment, Placed

Held = Sequence[tuple[Shape, int]]


Bench = dict[int, dict[int, int]]  # slot -> how many pods of each kind


def validate(
    placed: Placed,
    request: GroupRequest,
    cluster: Cluster,
    evicted: frozenset[str] = frozenset(),
    held: Held = (),
) -> str | None:
    """None if the plan holds, else the first fault in words."""
    audit = _Audit(cluster, frozenset(evicted), held)
    return audit.people(placed, request) or audit.groups(placed, request) or audit.nodes() or audit.pods()


class _Audit:
    def __init__(self, cluster: Cluster, evicted: frozenset[str], held: Held) -> None:
        self.cluster = cluster
        self.evicted = evicted
        self.held = held
        self.ledger: NodeAmounts = ledger_of(cluster)
        self.kinds: dict[int, ShapeAmounts] = {}  # distinct pods of the plan, by identity of their shape
        self.requests: dict[int, Amounts] = {}  # of each kind, without resources that its profile ignores
        self.bench: Bench = {}
        self.seats: list[tuple[int, int]] = []  # kind and slot, in the order of the plan

    # --- who sits where --------------------------------------------------------------------------

    def people(self, placed: Placed, request: GroupRequest) -> str | None:
        """Every seat names a pending member of the demand, once, and a node that exists."""
        waiting = {member.uid: member for leaf in _leaves(request) for member in leaf.members}
        uids = [seat.uid for seat in placed.assignments]
        strangers = set(uids).difference(waiting)
        if strangers or len(set(uids)) < len(uids):
            who = min(strangers) if strangers else next(uid for uid, times in Counter(uids).items() if times > 1)
            return f"seat of {who}: not a waiting member, or seated twice"
        for node, slot in {(seat.node, seat.index) for seat in placed.assignments}:
            if self.cluster.index.get(node) != slot:
                return f"the node {node} is not at index {slot}"
        shapes = [waiting[uid].shape for uid in uids]
        distinct = {id(shape): shape for shape in shapes}
        self.kinds = {kind: self.ledger.kind(shape.pod) for kind, shape in distinct.items()}
        self.requests = {
            kind: {name: n for name, n in self.kinds[kind].requests.items() if not shape.profile.ignores(name)}
            for kind, shape in distinct.items()
        }
        self.seats = [(id(shape), seat.index) for shape, seat in zip(shapes, placed.assignments, strict=True)]
        for (kind, slot), count in Counter(self.seats).items():
            self.bench.setdefault(slot, {})[kind] = count
        return None if uids else "the plan seats nobody"

    # --- groups ----------------------------------------------------------------------------------

    def groups(self, placed: Placed, request: GroupRequest) -> str | None:
        """Minimums at every level, one domain for every constrained group."""
        seats = {seat.uid: seat for seat in placed.assignments}
        standing = _standing(request, seats)
        if not standing[request.key]:
            return f"the minimum of {request.key.name} does not hold"
        untrue = [key for key in placed.placed_groups if not standing.get(key, False)]
        if untrue:
            return f"{untrue[0].name} is said to hold and does not"
        return self._group(request, seats, standing)

    def _group(
        self, request: GroupRequest, seats: dict[str, Assignment], standing: dict[EntityKey, bool]
    ) -> str | None:
        used = _seats_below(request, seats)
        if not used:
            return None
        if not standing[request.key]:
            return f"{request.key.name} has seats although its minimum does not hold"
        if request.topology:
            fault = self._domain(request, used)
            if fault is not None:
                return fault
        for child in () if isinstance(request, PodGroupRequest) else request.children:
            fault = self._group(child, seats, standing)
            if fault is not None:
                return fault
        return None

    def _domain(self, request: GroupRequest, used: list[Assignment]) -> str | None:
        key = request.topology or ""
        nodes = {seat.node for seat in used}
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
        """Capacity of every resource, and every rule about nodes, for each kind of pod once."""
        held = self._held()
        names, objects = self.cluster.names, self.cluster.node_objects
        for slot, row in self.bench.items():
            node = objects[names[slot]]
            for kind in row:
                refusal = self.kinds[kind].rules.refusal(node)
                if refusal is not None:
                    return f"{self.kinds[kind].pod.metadata.name} may not be on {node.metadata.name}: {refusal}"
            fault = self._capacity(node, slot, row, held.get(slot))
            if fault is not None:
                return fault
        return None

    def _held(self) -> dict[int, Amounts]:
        found: dict[int, Amounts] = {}
        for shape, slot in self.held:
            total = found.setdefault(slot, {"pods": 0})
            total["pods"] += 1
            for name, amount in requests(shape.pod).items():
                total[name] = total.get(name, 0) + amount
        return found

    def _capacity(self, node: Node, slot: int, row: dict[int, int], held: Amounts | None) -> str | None:
        load, capacity = self.ledger.load(slot, self.evicted), self.ledger.capacity(node)
        asked: Amounts = {"pods": sum(row.values())}
        for kind, count in row.items():
            for name, amount in self.requests[kind].items():
                asked[name] = asked.get(name, 0) + amount * count
        for name, amount in asked.items():
            used = load.get(name, 0) + (held.get(name, 0) if held else 0)
            have = capacity.get(name, 0)
            if used + amount > have:
                return f"{node.metadata.name} has {have} {name}; {used} in use and {amount} planned"
        return None

    # --- pods ------------------------------------------------------------------------------------

    def pods(self) -> str | None:
        """Ports, claims, and the rules between pods."""
        kinds = self.kinds
        fault = self._ports() if any(kind.ports for kind in kinds.values()) else None
        if fault is None and any(kind.exclusive for kind in kinds.values()):
            fault = claims_fault(self.cluster, [(kinds[kind].pod, slot) for kind, slot in self.seats], self.evicted)
        if fault is not None:
            return fault
        company = RunningPods(self.cluster, self.evicted)
        guards = list(company.repelling(self.bench, [kind.pod for kind in kinds.values()]))
        if not guards and not any(kind.social for kind in kinds.values()):
            return None
        objects, names = self.cluster.node_objects, self.cluster.names
        sitting = [(kinds[kind].pod, objects[names[slot]]) for kind, slot in self.seats]
        return between_pods(company, sitting, {id(kind.pod): kind.pod for kind in kinds.values()}, guards)

    def _ports(self) -> str | None:
        for slot, row in self.bench.items():
            new = [port for kind in row for port in self.kinds[kind].ports * row[kind]]
            there = [
                port
                for entry in self.cluster.pods_on(slot)
                if entry.pod.metadata.uid not in self.evicted
                for port in ports_of(entry.pod)
            ]
            there += [port for shape, where in self.held if where == slot for port in ports_of(shape.pod)]
            for at, port in enumerate(new):
                if any(clash(port, other) for other in (*there, *new[:at])):
                    return f"the port {port[2]} of {self.cluster.names[slot]} is wanted twice"
        return None


def _leaves(request: GroupRequest) -> list[PodGroupRequest]:
    if isinstance(request, PodGroupRequest):
        return [request]
    return [leaf for child in request.children for leaf in _leaves(child)]


def _standing(request: GroupRequest, seats: dict[str, Assignment]) -> dict[EntityKey, bool]:
    """Whether the minimum of every group holds once the seats are taken."""
    if isinstance(request, PodGroupRequest):
        sitting = request.bound + sum(member.uid in seats for member in request.members)
        return {request.key: sitting >= request.minimum}
    found: dict[EntityKey, bool] = {}
    holding = 0
    for child in request.children:
        found |= _standing(child, seats)
        holding += found[child.key]
    found[request.key] = holding >= request.minimum
    return found


def _seats_below(request: GroupRequest, seats: dict[str, Assignment]) -> list[Assignment]:
    return [seats[member.uid] for leaf in _leaves(request) for member in leaf.members if member.uid in seats]
