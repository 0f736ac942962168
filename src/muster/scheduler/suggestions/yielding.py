"""Somebody else who runs: whose end alone would make room."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muster.scheduler.explanation import Suggestion
from muster.scheduler.holders import Share, inside_of, shares, short_resources
from muster.scheduler.planning.demand import GroupKey
from muster.scheduler.suggestions.question import Question
from muster.scheduler.words import kind_word, say_count

MOST_TRIED = 8
MOST_GIVEN = 2
MOST_DOMAINS = 3


def wait_for_others(question: Question) -> Iterator[Suggestion]:
    """The smallest of those who hold what is short."""
    given = 0
    for key, uids in _candidates(question):
        if question.fits(evicted=uids, without=key):
            given += 1
            yield Suggestion(
                "wait-for",
                f"wait for {kind_word(key.kind)} {key.namespace}/{key.name} to end ({say_count(len(uids), 'pod')}), "
                "or remove it",
                {"kind": key.kind, "namespace": key.namespace, "name": key.name, "pods": len(uids)},
            )
            if given == MOST_GIVEN:
                return


def _candidates(question: Question) -> list[tuple[GroupKey, list[str]]]:
    """Who holds most of what is short where the root came nearest, then anywhere; tried smallest first."""
    world = question.world
    held: dict[GroupKey, Share] = {}
    for shortage in question.shortages[:MOST_DOMAINS]:
        resources = short_resources(world, shortage)[:1]
        found = shares(world, resources, inside_of(world, shortage.topology, shortage.domain))
        largest = sorted(found.items(), key=lambda item: (-item[1].sums[0], item[0]))[:MOST_TRIED]
        held |= {key: share for key, share in largest if key not in held}
    held.pop(question.root.key, None)
    chosen = sorted(held.items(), key=lambda item: (-item[1].sums[0], item[0]))[:MOST_TRIED]
    everywhere = shares(world, [], np.ones(world.cluster.size, dtype=np.bool_))
    whole = [(key, everywhere[key].uids) for key, _ in chosen]
    return sorted(whole, key=lambda item: (len(item[1]), item[0]))
