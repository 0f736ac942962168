"""The answer to "why does it wait", as values: what `muster explain -o json` prints and docs/explain.md documents.

Fields are only ever added; `version` changes if the meaning of one does.
"""

from __future__ import annotations

import msgspec

SCHEMA_VERSION = "muster.dev/explanation/v1"


class Shortfall(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that is short and by how much, or a rule and how many nodes it keeps away."""

    what: str
    amount: str


class Domain(msgspec.Struct, frozen=True, rename="camel"):
    """One place that was considered and what it lacks."""

    key: str
    value: str
    seats: int
    needed: int
    nodes: int  # nodes there that have no seat for lack of the first resource
    lacking: tuple[Shortfall, ...]
    text: str
    when_empty: int | None = None  # seats if nothing else ran there; None where that cannot be counted


class Level(msgspec.Struct, frozen=True, rename="camel"):
    """One group of the tree. A composite counts child groups, a pod group counts pods."""

    kind: str
    name: str
    depth: int
    minimum: int
    bound: int
    pending: int
    met: bool
    topology: str | None
    domain: str | None
    nearest: tuple[Domain, ...] = ()
    exists: bool = True


class Rule(msgspec.Struct, frozen=True, rename="camel"):
    """A rule and how many nodes it keeps from one more pod of a shape."""

    pod: str
    text: str
    nodes: int
    of: int  # nodes in all
    pods: int = 1  # pending pods of this shape


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """Who holds what the root would need."""

    kind: str
    namespace: str
    name: str
    priority: int
    pods: int
    amounts: dict[str, str]


class ReportedCondition(msgspec.Struct, frozen=True, rename="camel"):
    """What the object itself says: its condition."""

    status: str
    reason: str
    message: str
    since: str


class Suggestion(msgspec.Struct, frozen=True, rename="camel"):
    """A change after which the root fits: verified by planning with it."""

    action: str  # one of suggestions.ACTIONS
    text: str
    details: dict[str, str | int]


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """The whole answer for one root."""

    kind: str
    namespace: str
    name: str
    verdict: str
    sentence: str
    priority: int
    levels: tuple[Level, ...] = ()
    remark: str = ""
    rules: tuple[Rule, ...] = ()
    holders: tuple[Holder, ...] = ()
    held_in: str = ""
    preemption: str = ""
    since: str = ""
    position: int = 0  # in the queue; 0 if it is not in it
    waiting: int = 0  # how many are in the queue
    condition: ReportedCondition | None = None
    wakes: str = ""
    suggestions: tuple[Suggestion, ...] = ()
    events: tuple[str, ...] = ()  # what events say, where the cluster itself could not be seen
    missing: str = ""  # the right that would tell more
    version: str = SCHEMA_VERSION
