"""The three answers to a request, and what each must contain.

`Placed` has assignments; `Infeasible` has a proof that `check_proof` can check by its own means; `Undecided` has what
was tried. A proof is either a count (at some level, in every admissible domain, what is needed exceeds what is
there), a dual certificate (the same for shapes that compete for nodes), or a record that all distinct choices were
searched.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from muster.scheduler.interface.keys import EntityKey


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """A pod and the node it is to be bound to. `node` is the node's name, `index` its column."""

    uid: str
    node: str
    index: int


@dataclass(frozen=True, slots=True)
class Shortage:
    """One domain and what a group lacks there."""

    group: EntityKey
    topology: str  # label key, "" for all nodes in question
    domain: str  # label value, "" for all nodes in question
    seats: int  # how many pods (or children) can be placed there at most
    needed: int
    # A resource and by how much it is short, or the reason of a plugin and how many nodes it rejects.
    lacking: tuple[tuple[str, int], ...] = ()
    nodes: int = 0  # nodes there that have no seat for lack of the first resource
    within: tuple[str, str] = ("", "")  # label key and value of the enclosing domain


@dataclass(frozen=True, slots=True)
class CountingProof:
    """In every admissible domain of `group` fewer pods (or children) than needed can be placed."""

    group: EntityKey
    shortages: tuple[Shortage, ...]
    children: tuple[CountingProof, ...] = ()  # a composite fails because too many of its children do


@dataclass(frozen=True, slots=True)
class ExhaustionProof:
    """Every distinct placement was tried: equal nodes count once."""

    group: EntityKey
    node_classes: int
    shapes: int
    steps: int
    shortages: tuple[Shortage, ...] = ()


@dataclass(frozen=True, slots=True)
class WeightProof:
    """A dual certificate: with these weights, what is needed weighs more than all nodes can hold together."""

    group: EntityKey
    weights: tuple[tuple[int, int], ...]  # shape id and its weight
    required: int
    available: int
    shortages: tuple[Shortage, ...] = ()


Proof = CountingProof | WeightProof | ExhaustionProof


@dataclass(frozen=True, slots=True)
class SearchStats:
    """What an undecided search did before its budget ended."""

    steps: int
    orders: int = 0
    domains: int = 0
    shortages: tuple[Shortage, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """Every minimum on the path to the root holds. Extras come after the pods of the minimum."""

    assignments: tuple[Assignment, ...]
    placed_groups: frozenset[EntityKey]  # groups whose minimum holds with these assignments
    domains: tuple[tuple[EntityKey, str], ...] = ()  # chosen domain of each constrained group
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Infeasible:
    """There is no placement now, and the proof shows why."""

    proof: Proof
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Undecided:
    """The budget ended before the search did: a placement may exist."""

    tried: SearchStats


Verdict = Placed | Infeasible | Undecided


@dataclass(slots=True)
class DomainsEvaluated:
    """How many domains one attempt evaluated for PodGroups with a topology constraint; a counter for metrics."""

    profile: str = ""  # scheduler name of the entity
    domains: int = 0
    feasible: int = 0  # in so many of them the counts allow the minimum
