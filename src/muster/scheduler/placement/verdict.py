"""The three answers to a demand, and what each must bring along.

`Placed` brings seats; `Infeasible` brings a proof that `validate` accepts by its own means;
`Undecided` brings what was tried. A proof is either a count (somewhere, at some level, in every
admissible domain, something needed exceeds what is there), a weighing (the same for shapes that
compete for nodes), or a record that the whole space of distinct choices was searched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from muster.scheduler.interface.keys import EntityKey


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """Who sits where. `node` is the node's name, `index` its column."""

    uid: str
    node: str
    index: int


@dataclass(frozen=True, slots=True)
class Shortage:
    """One domain and what a group lacks there."""

    group: EntityKey
    topology: str  # label key, "" for the whole scope
    domain: str  # label value, "" for the whole scope
    seats: int  # how many members could sit there at most
    needed: int
    lacking: tuple[
        tuple[str, int], ...
    ] = ()  # resource or rule, and by how much (resource) or on how many nodes (rule)
    nodes: int = 0  # nodes there that have no seat for lack of the first resource
    within: tuple[str, str] = ("", "")  # label key and value of the enclosing domain that was looked at


@dataclass(frozen=True, slots=True)
class CountingProof:
    """In every admissible domain of `group` fewer than the needed members (or children) can sit."""

    group: EntityKey
    shortages: tuple[Shortage, ...]
    children: tuple[CountingProof, ...] = ()  # a branch fails because too many of its children do


@dataclass(frozen=True, slots=True)
class ExhaustionProof:
    """Every distinct way was tried: nodes that are alike count once."""

    group: EntityKey
    node_classes: int
    shapes: int
    steps: int
    shortages: tuple[Shortage, ...] = ()


@dataclass(frozen=True, slots=True)
class WeightProof:
    """Give every shape a weight: what is needed weighs more than all nodes can hold together."""

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
    """Every minimum on the path to the root holds; extras come after the minimum."""

    assignments: tuple[Assignment, ...]
    placed_groups: frozenset[EntityKey]  # groups whose minimum holds with these seats
    domains: tuple[tuple[EntityKey, str], ...] = ()  # chosen domain of each constrained group
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Infeasible:
    proof: Proof
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Undecided:
    tried: SearchStats


Verdict = Placed | Infeasible | Undecided


@dataclass(slots=True)
class DomainsEvaluated:
    """Counts of the domains that were judged for pod groups which must be in one, for those who look."""

    domains: int = 0
    feasible: int = 0  # in so many of them the counts allow the minimum


@dataclass(slots=True)
class Budget:
    """Search steps that may still be spent. A step is one placement tried or one domain opened, never a second."""

    limit: int
    spent: int = field(default=0)

    def spend(self, steps: int = 1) -> bool:
        """Take steps; False when they are used up."""
        self.spent += steps
        return self.spent <= self.limit

    @property
    def exhausted(self) -> bool:
        return self.spent >= self.limit


class Judged(NamedTuple):
    """The domains that an attempt judged for pod groups which must be in one."""

    profile: str
    domains: int
    feasible: int
