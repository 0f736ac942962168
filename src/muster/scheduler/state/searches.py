"""Searches that go on in later cycles: undecided after their first slice, each on its own copy of the nodes.

At most `MOST_SEARCHES` are kept, so what they hold is bounded; entities beyond that wait for a place. Every cycle that
has the time runs one slice, in turn. Slices end by steps, so what is found when does not depend on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.planning.paused_search import PausedSearch

MOST_SEARCHES = 8


@dataclass(slots=True)
class KeptSearch:
    """One search, what it was asked, and what the cluster could offer when it began."""

    key: EntityKey
    paused: PausedSearch
    asked: object  # the request without what may change while the search goes on
    gains: int  # `RequeueSignals.gains` when the search began
    version: int  # of the state at that time


class Searches:
    """The searches under way, in the order of their next slices, and the entities that wait for a place."""

    def __init__(self) -> None:
        self._kept: dict[EntityKey, KeptSearch] = {}
        self._waiting: dict[EntityKey, None] = {}
        self._others_first = False  # the last cycle ran a slice

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: EntityKey) -> KeptSearch | None:
        return self._kept.get(key)

    def keep(self, search: KeptSearch) -> bool:
        """Go on with a search later; False if there are too many."""
        if search.key not in self._kept and len(self._kept) >= MOST_SEARCHES:
            self._waiting[search.key] = None
            return False
        self._waiting.pop(search.key, None)
        self._kept[search.key] = search
        return True

    def drop(self, key: EntityKey) -> EntityKey | None:
        """End a search, whatever it found; the entity that waited longest for a place, if one is free now."""
        self._waiting.pop(key, None)
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        kept.paused.close()
        following = next(iter(self._waiting), None)
        if following is not None:
            del self._waiting[following]
        return following

    def take_turn(self, *, others_wait: bool) -> KeptSearch | None:
        """The search whose slice is next. While entities are in line, slices and entities take turns."""
        if not self._kept or (others_wait and self._others_first):
            self._others_first = False
            return None
        self._others_first = True
        key = next(iter(self._kept))
        kept = self._kept[key] = self._kept.pop(key)  # to the end of the order
        return kept
