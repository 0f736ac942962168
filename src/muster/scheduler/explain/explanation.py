"""An explanation as values: what `muster explain -o json` prints and docs/explain.md documents.

Fields are only ever added; `version` changes if the meaning of one does.
"""

from __future__ import annotations

import msgspec

SCHEMA_VERSION = "muster.dev/explanation/v1"


class Shortfall(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that is short and by how much, or the reason of a plugin and how many nodes it rejects."""

    what: str
    amount: str


class Domain(msgspec.Struct, frozen=True, rename="camel"):
    """One domain that was evaluated and what it lacks."""

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


class Rejection(msgspec.Struct, frozen=True, rename="camel"):
    """The reason of a plugin and how many nodes it rejects for one more pod of a shape."""

    pod: str
    text: str
    nodes: int
    of: int  # nodes in all
    pods: int = 1  # pending pods of this shape


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """An entity whose pods use what is short."""

    kind: str
    namespace: str
    name: str
    priority: int
    pods: int
    amounts: dict[str, str]


class ReportedCondition(msgspec.Struct, frozen=True, rename="camel"):
    """The scheduling condition of the object, as it is stored."""

    status: str
    reason: str
    message: str
    since: str


class Suggestion(msgspec.Struct, frozen=True, rename="camel"):
    """A change with which the entity fits: verified by planning with it."""

    action: str  # one of suggestions.ACTIONS
    text: str
    details: dict[str, str | int]
    recreate: str = ""  # what must be made anew, because the server refuses the change of what exists


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """Why one entity is not scheduled, and what would help."""

    kind: str
    namespace: str
    name: str
    verdict: str
    sentence: str
    priority: int
    levels: tuple[Level, ...] = ()
    remark: str = ""
    rules: tuple[Rejection, ...] = ()
    holders: tuple[Holder, ...] = ()
    held_in: str = ""
    devices: tuple[str, ...] = ()  # what its claims find in the cluster, a sentence each
    preemption: str = ""
    reservation: str = ""  # room that is kept for it, or from it
    since: str = ""
    position: int = 0  # in the queue; 0 if it is not in it
    waiting: int = 0  # how many are in the queue
    condition: ReportedCondition | None = None
    wakes: str = ""
    suggestions: tuple[Suggestion, ...] = ()
    events: tuple[str, ...] = ()  # texts of events, where the cluster itself could not be read
    missing: str = ""  # the permission with which more could be explained
    version: str = SCHEMA_VERSION
