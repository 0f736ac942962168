"""Groups that compete for the domains of one key: an assignment is proposed, its domains are packed, and so on.

`DomainFilling` proposes which domain each group takes, from rows that need no packing. Here the groups of each domain
are packed; where that fails, the certificate that shows it becomes a row for all domains, or else that one set is ruled
out, and the next proposal is made. What is found is a placement. That nothing is found proves that there is none only
if nothing was left out and no packing gave up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.planning.domain_filling import DomainFilling
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.exact import DualCertificate, Relaxed
from muster.scheduler.planning.node_matrix import Ints, NodeSet
from muster.scheduler.planning.packing_instance import PackingInstance, ScopedRequest
from muster.scheduler.planning.prices import DEAREST

MOST_PROPOSALS = 100


STEPS_PER_DOMAIN = 400  # for packing the groups of one domain


Refuted = tuple[PackingInstance, DualCertificate]


# Packs PodGroups that share nodes, with so many steps: whether they fit; or the certificate that they do not; or None.
Pack = Callable[[tuple[ScopedRequest, ...], int], Pausing["bool | Refuted | None"]]


@dataclass(frozen=True, slots=True, eq=False)
class Competing:
    """Groups that each need one domain of a key, all of them, and the domains that counting leaves to each."""

    groups: tuple[GroupRequest, ...]
    leaves: tuple[tuple[PodGroupRequest, ...], ...]  # the PodGroups of each group, all of which are needed
    domains: tuple[tuple[int, NodeSet], ...]  # value ids and nodes
    feasible: tuple[frozenset[int], ...]  # value ids, of each group

    def parts(self, group: int, nodes: NodeSet) -> tuple[ScopedRequest, ...]:
        return tuple(ScopedRequest(leaf, nodes) for leaf in self.leaves[group])


def needed_leaves(request: GroupRequest) -> tuple[PodGroupRequest, ...] | None:
    """The PodGroups of a group if all of them, and all of their pods or those of one shape, are needed, in one domain.

    None where something can be chosen below the group, or a further domain.
    """
    if isinstance(request, PodGroupRequest):
        fixed = len(request.identical) == 1 or request.need == request.pending
        return (request,) if fixed else None
    if request.need < len(request.open) or any(child.topology for child in request.open):
        return None
    below = [needed_leaves(child) for child in request.open]
    return None if None in below else tuple(leaf for part in below for leaf in part or ())


def find_domains(
    competing: Competing, relaxed: Relaxed, settled: Sequence[ScopedRequest], pack: Pack, budget: Budget
) -> Pausing[list[int] | bool]:
    """The index of a domain for each group so that the groups of each domain pack, beside what is settled there.

    True if there is none; False if none was found.
    """
    rows = _rows(competing, relaxed, settled)
    filling = DomainFilling(rows, budget)
    packed: set[tuple[int, frozenset[int]]] = set()
    for _ in range(MOST_PROPOSALS):
        proposed = yield from filling.fill()
        if proposed is None:
            return filling.complete
        failed = False
        for domain in sorted(set[int](proposed.tolist())):
            inside = frozenset(np.flatnonzero(proposed == domain).tolist())
            if (domain, inside) in packed:
                continue
            nodes = competing.domains[domain][1]
            parts = tuple(part for group in sorted(inside) for part in competing.parts(group, nodes))
            parts += tuple(part for part in settled if part.nodes.bits & nodes.bits)
            answer = yield from pack(parts, STEPS_PER_DOMAIN)
            if budget.exhausted:
                return False
            if answer is True:
                packed.add((domain, inside))
                continue
            failed = True
            rows.rule_out(domain, np.array(sorted(inside)))
            if isinstance(answer, tuple):
                rows.add_weights(_by_type(relaxed.instance, *answer))
            elif answer is None:
                filling.complete = False
        if not failed:
            return proposed.tolist()
    return False


def _rows(competing: Competing, relaxed: Relaxed, settled: Sequence[ScopedRequest]) -> DomainRows:
    """The rows to begin with: the prices of all groups together and others near them, each shape, each resource."""
    instance = relaxed.instance
    domain_of = np.full(instance.matrix.size, -1, dtype=np.int64)
    for at, (_, nodes) in enumerate(competing.domains):
        domain_of[nodes.nodes] = at
    allowed = np.array([[value in able for value, _ in competing.domains] for able in competing.feasible])
    shared = [at for at, (_, nodes) in enumerate(competing.domains) if any(p.nodes.bits & nodes.bits for p in settled)]
    found = DomainRows(relaxed.patterns, domain_of[instance.nodes], _demands(competing, instance), allowed, shared)
    units = np.eye(instance.types, dtype=np.int64)
    near = [relaxed.weights + relaxed.weights * units // part for part in (4, -4, 2, -2)]
    for weights in np.vstack((relaxed.weights, units, instance.requests.T, *near)):
        found.add_weights(weights)
    return found


def _demands(competing: Competing, instance: PackingInstance) -> Ints:
    """[group, type]: how many pods each group needs."""
    type_of = {shape: at for at, shape in enumerate(instance.shapes)}
    found = np.zeros((len(competing.groups), instance.types), dtype=np.int64)
    for group, leaves in enumerate(competing.leaves):
        for leaf in leaves:
            for pods in leaf.identical:
                found[group, type_of[pods.shape]] += min(leaf.need, pods.count)
    return found


def _by_type(instance: PackingInstance, other: PackingInstance, certificate: DualCertificate) -> Ints:
    """The weights of a certificate about another instance, for the types of this one."""
    weight_of = dict(zip(other.shapes, certificate.weights, strict=True))
    weights = [weight_of.get(shape, 0) for shape in instance.shapes]
    scale = max(1, max(weights) // DEAREST)
    return np.array([weight // scale for weight in weights], dtype=np.int64)
