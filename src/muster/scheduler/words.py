"""From verdicts to the sentences that people read in conditions and events.

The words name the level, the domain that came nearest and what it lacks. Texts are cut where the API
cuts them, never in the middle of the facts: the nearest domain comes first.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.scheduler.planning.demand import GroupKey
from muster.scheduler.planning.verdict import (
    CountingProof,
    ExhaustionProof,
    Infeasible,
    Proof,
    Shortage,
    Undecided,
)

UNDECIDED_PREFIX = "no placement found within the budget, one may exist"
MAX_CONDITION_MESSAGE = 1024


def shortages_of(verdict: Infeasible | Undecided) -> tuple[Shortage, ...]:
    """Every shortage a verdict names, the deepest cause first."""
    if isinstance(verdict, Undecided):
        return verdict.tried.shortages
    return tuple(_shortages(verdict.proof))


def _shortages(proof: Proof) -> Iterable[Shortage]:
    if isinstance(proof, CountingProof):
        for child in proof.children:
            yield from _shortages(child)
    yield from proof.shortages


def nearest(shortages: Iterable[Shortage], group: GroupKey) -> Shortage | None:
    """The domain in which a group came nearest to its need."""
    own = [s for s in shortages if s.group == group]
    return max(own, key=lambda s: (s.seats - s.needed, s.seats, s.domain), default=None)


def say_shortage(shortage: Shortage) -> str:
    """One domain and what it lacks: `rack r3 came nearest: 14 of 16 seats; short of nvidia.com/gpu by 16`."""
    place = f"{_short_key(shortage.topology)} {shortage.domain}" if shortage.domain else "the cluster"
    verb = "came nearest" if shortage.domain else "has"
    text = f"{place} {verb}: {shortage.seats} of {shortage.needed} seats"
    if not shortage.domain:
        text = f"{place} {verb} {shortage.seats} of {shortage.needed} seats"
    if shortage.lacking:
        text += "; short of " + ", ".join(_say_lack(what, amount) for what, amount in shortage.lacking)
    return text


def _say_lack(what: str, amount: int) -> str:
    return f"{what} by {amount}" if amount > 0 else what


def _short_key(key: str) -> str:
    return key.rsplit("/", 1)[-1]


def say_verdict(verdict: Infeasible | Undecided, group: GroupKey) -> str:
    """What one group of a failed tree is told."""
    shortages = shortages_of(verdict)
    found = nearest(shortages, group) or (shortages[0] if shortages else None)
    text = say_shortage(found) if found is not None else _say_search(verdict)
    if found is not None and found.group != group:
        text = f"{_kind_word(found.group)} {found.group.name}: {text}"
    if isinstance(verdict, Undecided):
        text = f"{UNDECIDED_PREFIX}: {text}"
    return text[:MAX_CONDITION_MESSAGE]


def _say_search(verdict: Infeasible | Undecided) -> str:
    if isinstance(verdict, Undecided):
        return f"{verdict.tried.steps} steps were tried"
    proof = verdict.proof
    if isinstance(proof, ExhaustionProof):
        return (
            f"the members do not fit together: all {proof.steps} distinct ways to seat {proof.shapes} kinds of pods "
            f"on {proof.node_classes} kinds of nodes were tried"
        )
    return "too few members can be seated"


def _kind_word(key: GroupKey) -> str:
    return {"PodGroup": "group", "CompositePodGroup": "composite"}.get(key.kind, "pod")
