"""Failed binds: when an entity whose binds failed may be tried again, and what is said about it.

The binds of one attempt are a round. A round with a refused bind is followed by a backoff that doubles from round to
round, as failed attempts are; a missing right is waited for with the longest one. A lost race is none of the server's
doing: the entity is planned again at once from the new facts. Where only the server knows these facts so far (the pod
is gone or bound elsewhere), the backoff lasts until the watch has shown them too. Entities that lose race after race
are backed off as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.scheduler.interface.events import FORBIDDEN, LOST_RACE, POD_CHANGED, REFUSED
from muster.scheduler.interface.keys import EntityKey

MOST_RACES = 5  # lost one after the other without a backoff

_SEVERITY = (LOST_RACE, POD_CHANGED, REFUSED, FORBIDDEN)


@dataclass(slots=True)
class FailedRound:
    """What failed in the present round, the failures before it, and when the entity may be tried again."""

    cause: str = ""  # the gravest of the present round; empty if nothing failed
    pod: str = ""  # the first pod by name of those with that cause
    reason: str = ""
    rounds: int = 0  # with a failure, one after the other
    races: int = 0  # lost, one after the other
    until: float = 0.0
    unseen: set[str] = field(default_factory=set[str])  # pods whose change the watch has not shown


class BindFailures:
    """Failed binds by entity. An entity without failures has no record."""

    def __init__(self, initial_backoff: float, max_backoff: float) -> None:
        self._initial = initial_backoff
        self._most = max_backoff
        self._rounds: dict[EntityKey, FailedRound] = {}

    def __bool__(self) -> bool:
        return bool(self._rounds)

    def failed(self, key: EntityKey, uid: str, pod: str, cause: str, reason: str, *, seen: bool) -> None:
        """A bind of the entity failed; `seen`: the watch has shown what became of the pod."""
        record = self._rounds.setdefault(key, FailedRound())
        if seen:
            cause = LOST_RACE
        elif cause == POD_CHANGED:
            record.unseen.add(uid)
        graver = _SEVERITY.index(cause) - (_SEVERITY.index(record.cause) if record.cause else -1)
        if graver > 0 or (graver == 0 and pod < record.pod):
            record.cause, record.pod, record.reason = cause, pod, reason

    def end_round(self, key: EntityKey, now: float) -> FailedRound | None:
        """Every bind of the round is answered. The failure, if the entity must wait because of it."""
        record = self._rounds.get(key)
        if record is None:
            return None
        cause = record.cause
        if not cause:
            del self._rounds[key]
            return None
        record.races = record.races + 1 if cause == LOST_RACE else 0
        if cause == LOST_RACE and record.races < MOST_RACES:
            record.cause, record.until = "", 0.0
            return None
        record.rounds += 1
        delay = self._most if cause == FORBIDDEN else self._initial * 2 ** min(record.rounds - 1, 20)
        record.until = now + min(self._most, delay)
        failure = FailedRound(cause, record.pod, record.reason, record.rounds, record.races, record.until)
        record.cause = ""
        return failure

    def until(self, key: EntityKey) -> float:
        """Before this time the entity is not tried again."""
        record = self._rounds.get(key)
        return record.until if record is not None else 0.0

    def pod_changed(self, key: EntityKey, uid: str) -> None:
        """The watch shows a change of a pod; with the last one that was missing the wait is over."""
        record = self._rounds.get(key)
        if record is not None and uid in record.unseen:
            record.unseen.discard(uid)
            if not record.unseen:
                record.until = 0.0
                record.cause = LOST_RACE if record.cause == POD_CHANGED else record.cause

    def forget(self, key: EntityKey) -> None:
        """Nothing is left to bind."""
        self._rounds.pop(key, None)
