"""From verdicts to the sentences that people read in conditions and events.

They name the level, the domain that came nearest and what it lacks. Texts are cut where the API cuts them; the
nearest domain comes first.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import CountingProof, ExhaustionProof, Infeasible, Proof, Shortage, Undecided

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


def nearest(shortages: Iterable[Shortage], group: EntityKey) -> Shortage | None:
    """The domain in which a group came nearest to its need; of several the one that was named first."""
    own = [s for s in shortages if s.group == group]
    return max(own, key=lambda s: (s.seats - s.needed, s.seats), default=None)


def shortage_text(shortage: Shortage) -> str:
    """One domain and what it lacks: `rack r3 came nearest: 14 of 16 seats; short of cpu by 2 on 2 nodes`."""
    return place_text(shortage, " came nearest:")


def place_text(shortage: Shortage, verb: str = ":") -> str:
    """The same for one of several domains."""
    things = "child groups" if shortage.group.kind == "CompositePodGroup" else "seats"
    if shortage.domain:
        place = f"{domain_text(shortage.topology, shortage.domain)}{verb}"
    else:
        place = f"{domain_text(*shortage.within)} has" if shortage.within[1] else "the cluster has"
    text = f"{place} {shortage.seats} of {shortage.needed} {things}"
    lacks = [lack for lack in shortage.lacking if lack[0] not in ("children", "members")]
    resources = [lack_text(what, amount) for what, amount in lacks if is_resource(what)]
    reasons = [lack_text(what, amount) for what, amount in lacks if not is_resource(what)]
    if resources:
        text += "; short of " + ", ".join(resources)
        text += f" on {count_text(shortage.nodes, 'node')}" if shortage.nodes else ""
    return text + "".join(f"; {reason}" for reason in reasons)


def domain_text(key: str, value: str) -> str:
    """A domain as it is usually written: `rack r3`, and not `rack rack-3`."""
    short = short_key(key)
    return value if value.lower().startswith(short.lower()) else f"{short} {value}"


def count_text(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def have_text(have: int, needed: int, nouns: str) -> str:
    """`3 of 4 members`; more than needed is written as `5 members (4 needed)`."""
    return f"{have} of {needed} {nouns}" if have <= needed else f"{have} {nouns} ({needed} needed)"


def lack_text(what: str, amount: int) -> str:
    """A resource and by how much it is short, or the reason of a plugin and how many nodes it rejects."""
    if is_resource(what):
        return f"{what} by {amount_text(what, amount)}" if amount > 0 else what
    if amount > 0:
        return f"{amount} {what}"
    return f"not in {what}" if what.startswith("one domain") else f"there are no {what}"


def is_resource(what: str) -> bool:
    plain = what in ("cpu", "memory", "pods", "ephemeral-storage") or what.startswith("hugepages-")
    return plain or ("/" in what and " " not in what)


def amount_text(resource: str, amount: int) -> str:
    """An amount in the unit that people write for the resource."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage"):
        for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
            if amount >= size:
                return f"{-(-amount // size)}{unit}"
    return str(amount)


def short_key(key: str) -> str:
    """A label key without its prefix."""
    return key.rsplit("/", 1)[-1]


def kind_word(kind: str) -> str:
    """A kind as it is written on the command line."""
    return kind.lower()


def message_of(verdict: Infeasible | Undecided, group: EntityKey) -> str:
    """The message for one group of a failed tree."""
    shortages = shortages_of(verdict)
    found = nearest(shortages, group) or (shortages[0] if shortages else None)
    text = shortage_text(found) if found is not None else _search_text(verdict)
    if found is not None and found.group != group:
        text = f"{_kind_word(found.group)} {found.group.name}: {text}"
    if isinstance(verdict, Undecided):
        text = f"{UNDECIDED_PREFIX}: {text}"
    return text[:MAX_CONDITION_MESSAGE]


def _search_text(verdict: Infeasible | Undecided) -> str:
    if isinstance(verdict, Undecided):
        return f"{verdict.tried.steps} steps were tried"
    proof = verdict.proof
    if isinstance(proof, ExhaustionProof):
        return (
            f"the members do not fit together: all {proof.steps} distinct ways to seat {proof.shapes} kinds of pods "
            f"on {proof.node_classes} kinds of nodes were tried"
        )
    return "nothing more of it can be placed"


def _kind_word(key: EntityKey) -> str:
    return {"PodGroup": "group", "CompositePodGroup": "composite"}.get(key.kind, "pod")
