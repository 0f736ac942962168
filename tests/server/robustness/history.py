"""What happened, and whether it may have: checkers over the store's log and over what clients saw.

The log is every change in the order of its revision. Each checker gives its complaints, so that a test can ask for none
and the tests of the checkers for some. They share no code with the server.

Watches: ordered, unique, atomic, reliable (no gap), resumable, bookmarkable, filtered rightly, creations told apart
from changes, deletions with the state they removed. Clients: revisions follow real time, and every read is a state that
the replayed log had at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Obj = dict[str, Any]
Selects = Callable[[Obj], bool]


class Entry(NamedTuple):
    """One change of the log."""

    revision: int
    type: str
    key: str
    obj: Obj  # for a deletion the last state


class Seen(NamedTuple):
    """One event of a watch; a bookmark has neither key nor object."""

    type: str
    revision: int
    key: str = ""
    obj: Obj = {}  # noqa: RUF012 - nobody writes to it


class Session(NamedTuple):
    """A watch, with every reconnection in it: it began after `start` and saw `events`."""

    start: int
    events: list[Seen]
    selects: Selects
    name: str = ""


class Op(NamedTuple):
    """A call of a client. `revision` is None where the client never learned what became of it."""

    kind: str  # write | get | list
    began: float
    ended: float
    key: str = ""
    revision: int | None = None
    obj: Obj | None = None  # what a write or get answered; None where get found nothing
    items: dict[str, Obj] = {}  # noqa: RUF012 - what a list answered
    mark: str = ""  # what a write wrote, to be found again in the log


def everything(_: Obj) -> bool:
    return True


def content(obj: Obj) -> Obj:
    """An object without what the form of the answer adds."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def expected(log: Sequence[Entry], start: int, end: int, selects: Selects) -> list[Seen]:
    """What a watch of a selection has to see between two revisions."""
    state: dict[str, Obj] = {}
    found: list[Seen] = []
    for revision, type, key, obj in log:
        before = state.get(key)
        was = before is not None and selects(before)
        now = type != "DELETED" and selects(obj)
        if type == "DELETED":
            state.pop(key, None)
        else:
            state[key] = obj
        if not start < revision <= end or not (was or now):
            continue
        if now:
            found.append(Seen("MODIFIED" if was else "ADDED", revision, key, content(obj)))
        else:
            found.append(Seen("DELETED", revision, key, content(_at(obj if type == "DELETED" else before, revision))))
    return found


def _at(obj: Obj | None, revision: int) -> Obj:
    assert obj is not None
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


def check_log(log: Sequence[Entry]) -> list[str]:
    """Revisions increase; creations, changes and deletions follow each other as they can."""
    wrong: list[str] = []
    alive: set[str] = set()
    last = 0
    for revision, type, key, obj in log:
        if revision <= last:
            wrong.append(f"log: revision {revision} comes after {last}")
        if (type == "ADDED") == (key in alive):
            wrong.append(
                f"log: {type} of {key} at {revision} while it {'exists' if key in alive else 'does not exist'}"
            )
        if obj["metadata"]["resourceVersion"] != str(revision):
            wrong.append(f"log: the object at {revision} says {obj['metadata']['resourceVersion']}")
        alive.discard(key) if type == "DELETED" else alive.add(key)
        last = revision
    return wrong


def check_watch(session: Session, log: Sequence[Entry]) -> list[str]:
    """The nine guarantees, over one watch and all its reconnections."""
    events = [seen for seen in session.events if seen.type != "BOOKMARK"]
    name = f"watch {session.name}"
    wrong: list[str] = []
    revisions = [seen.revision for seen in events]
    if revisions != sorted(revisions):
        wrong.append(f"{name}: not ordered")
    if len(set(revisions)) != len(revisions):
        wrong.append(f"{name}: not unique")
    end = max((seen.revision for seen in session.events), default=session.start)
    due = expected(log, session.start, end, session.selects)
    missing = [seen.revision for seen in due if seen.revision not in set(revisions)]
    if missing:
        wrong.append(f"{name}: not reliable, lost {missing[:5]}")
    by_revision = {seen.revision: seen for seen in due}
    for seen in events:
        should = by_revision.get(seen.revision)
        if should is None:
            wrong.append(f"{name}: {seen.type} at {seen.revision} is not of its selection, or never happened")
        elif (seen.type, seen.key) != (should.type, should.key):
            wrong.append(f"{name}: {seen.type} {seen.key} at {seen.revision} is {should.type} {should.key}")
        elif content(seen.obj) != should.obj:
            wrong.append(f"{name}: the object of {seen.type} at {seen.revision} is not what was stored")
    return wrong + _check_bookmarks(session, due, name)


def _check_bookmarks(session: Session, due: Iterable[Seen], name: str) -> list[str]:
    wrong: list[str] = []
    told: set[int] = set()
    passed = session.start
    for seen in session.events:
        if seen.type != "BOOKMARK":
            if seen.revision <= passed:
                wrong.append(f"{name}: {seen.revision} comes after the bookmark {passed}")
            told.add(seen.revision)
            continue
        early = [each.revision for each in due if each.revision <= seen.revision and each.revision not in told]
        if early:
            wrong.append(f"{name}: bookmark {seen.revision} before {early[:5]}")
        passed = seen.revision
    return wrong


def check_clients(ops: Sequence[Op], log: Sequence[Entry]) -> list[str]:
    """No acknowledged write is lost or changed, revisions follow real time, reads show what was there."""
    wrong = _check_acknowledged(ops, log) + _check_real_time(ops)
    states = _states(log)
    for op in ops:
        if op.kind == "list" and op.revision is not None:
            shown = {key: content(obj) for key, obj in op.items.items()}
            if shown != _state_at(states, op.revision):
                wrong.append(f"list at {op.revision}: not the state at that revision")
    return wrong + _check_gets(ops, log)


def _check_acknowledged(ops: Sequence[Op], log: Sequence[Entry]) -> list[str]:
    wrong: list[str] = []
    by_revision = {entry.revision: entry for entry in log}
    for op in ops:
        if op.kind != "write" or op.revision is None or op.obj is None:
            continue
        entry = by_revision.get(op.revision)
        if entry is None:
            wrong.append(f"the acknowledged write of {op.key} at {op.revision} is lost")
        elif entry.key != op.key or content(entry.obj) != content(op.obj):
            wrong.append(f"the acknowledged write of {op.key} at {op.revision} is not what is stored")
    return wrong


def _check_real_time(ops: Sequence[Op]) -> list[str]:
    """What ended before another call began has the smaller revision."""
    wrong: list[str] = []
    ends = sorted((op.ended, op.revision) for op in ops if op.kind == "write" and op.revision is not None)
    at, newest = 0, 0
    for op in sorted(ops, key=lambda op: op.began):
        while at < len(ends) and ends[at][0] < op.began:
            newest = max(newest, ends[at][1])
            at += 1
        if op.revision is None or op.kind == "get":
            continue
        if op.revision < newest or (op.kind == "write" and op.revision == newest):
            wrong.append(f"{op.kind} of {op.key} got {op.revision} after {newest} was acknowledged")
    return wrong


def _check_gets(ops: Sequence[Op], log: Sequence[Entry]) -> list[str]:
    """A get shows a state of its object between the last acknowledged write before it began and its own end."""
    wrong: list[str] = []
    writes = {op.revision: op for op in ops if op.kind == "write" and op.revision is not None}
    by_key: dict[str, list[Entry]] = {}
    for entry in log:
        by_key.setdefault(entry.key, []).append(entry)
    for op in ops:
        if op.kind != "get":
            continue
        entries = by_key.get(op.key, [])
        floor = max((each.revision or 0 for each in writes.values() if each.ended < op.began), default=0)
        if op.obj is None:
            gaps = _absences(entries)
            if not any(end > floor for _, end in gaps):
                wrong.append(f"get of {op.key} found nothing although it was there")
            continue
        found = next((at for at, entry in enumerate(entries) if entry.revision == op.revision), None)
        if found is None or content(entries[found].obj) != content(op.obj):
            wrong.append(f"get of {op.key} at {op.revision} shows what was never stored")
        elif found + 1 < len(entries) and entries[found + 1].revision <= floor:
            wrong.append(f"get of {op.key} at {op.revision} is stale: {floor} was acknowledged before")
        elif op.revision in writes and writes[op.revision].began > op.ended:
            wrong.append(f"get of {op.key} at {op.revision} is from the future")
    return wrong


def _absences(entries: Sequence[Entry]) -> list[tuple[int, float]]:
    """The spans of revisions at which the object was not there."""
    spans: list[tuple[int, float]] = []
    gone: int | None = 0
    for entry in entries:
        if entry.type == "DELETED":
            gone = entry.revision
        elif gone is not None:
            spans.append((gone, entry.revision))
            gone = None
    return spans if gone is None else [*spans, (gone, float("inf"))]


def _states(log: Sequence[Entry]) -> list[tuple[int, dict[str, Obj]]]:
    state: dict[str, Obj] = {}
    states: list[tuple[int, dict[str, Obj]]] = [(0, {})]
    for entry in log:
        state = {**state}
        if entry.type == "DELETED":
            state.pop(entry.key, None)
        else:
            state[entry.key] = content(entry.obj)
        states.append((entry.revision, state))
    return states


def _state_at(states: Sequence[tuple[int, dict[str, Obj]]], revision: int) -> dict[str, Obj]:
    found: dict[str, Obj] = {}
    for at, state in states:
        if at > revision:
            break
        found = state
    return found
