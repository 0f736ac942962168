"""Why a gang went where it went: the domains it could choose among, as they were before it was bound.

The answer is counted from the cluster right before the decision: how many of the gang's pods each domain had room for,
how much of that was left over, and which domain it got.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from muster.scheduler.status.messages import count_text, short_key
from muster.views.failures import ViewFailure
from muster.views.natural_order import natural

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.groups.group import Group
    from muster.scheduler.interface.keys import EntityKey

HOSTNAME = "kubernetes.io/hostname"
MOST_DOMAINS = 12


class DomainChoice(msgspec.Struct, frozen=True, rename="camel"):
    """A domain before the decision: seats for pods like the gang's, and how many of its pods it got."""

    key: str
    value: str
    seats: int
    got: int


class PlacedGroup(msgspec.Struct, frozen=True, rename="camel"):
    """One group of the gang: what it needed, and what it could choose among, the chosen domains first."""

    kind: str
    namespace: str
    name: str
    pods: int
    topology: str
    sentence: str
    domains: tuple[DomainChoice, ...]
    others: int  # domains that are not listed


def why_here(scheduler: Scheduler, key: EntityKey, placed: Mapping[str, str]) -> list[PlacedGroup]:
    """For each group of a tree that got pods: the choice it had. `placed` is uid -> node of the decision."""
    view = scheduler.view()
    top = view.groups.get(key)
    if top is None:
        raise ViewFailure(f'{key.kind.lower()} "{key.name}" does not exist in namespace "{key.namespace}" at this time')
    found = (_choice(scheduler, view, leaf, placed) for leaf in top.root().leaves())
    return [each for each in found if each is not None]


def _choice(scheduler: Scheduler, view: SchedulerView, leaf: Group, placed: Mapping[str, str]) -> PlacedGroup | None:
    members = [(member, placed[uid]) for uid, member in leaf.pending.items() if uid in placed]
    if not members:
        return None
    level = next((group for group in _upwards(leaf) if group.topology), None)
    key = level.topology if level is not None and level.topology else HOSTNAME
    shape = scheduler.state.shape_of(members[0][0])
    with scheduler.state.evaluator.trial() as trial:
        seats = trial.seats(shape)
    sums = np.bincount(view.labels(key), weights=np.minimum(seats, 1 << 40))
    got = Counter(view.domain_of(node, key) for _, node in members)
    names = [view.label_value(key, number) for number in range(1, len(sums))]
    choices = [DomainChoice(key, name, int(sums[i]), got.get(name, 0)) for i, name in enumerate(names, 1)]
    choices.sort(key=lambda choice: (-choice.got, -choice.seats, natural(choice.value)))
    sentence = _sentence(choices, len(members), key, one=level is not None)
    shown = tuple(choices[:MOST_DOMAINS])
    return PlacedGroup(*leaf.key, len(members), key, sentence, shown, len(choices) - len(shown))


def _upwards(group: Group | None) -> Iterator[Group]:
    while group is not None:
        yield group
        group = group.parent if not group.cyclic else None


def _sentence(choices: list[DomainChoice], pods: int, key: str, *, one: bool) -> str:
    word = "node" if key == HOSTNAME else short_key(key)
    chosen = [choice for choice in choices if choice.got]
    if not one or len(chosen) != 1:
        room = sum(1 for choice in choices if choice.seats)
        return (
            f"Its {count_text(pods, 'pod')} went to {count_text(len(chosen), word)}; "
            f"{count_text(room, word)} had a seat for such a pod."
        )
    able = [choice for choice in choices if choice.seats >= pods]
    left = chosen[0].seats - pods
    tightest = all(choice.seats >= chosen[0].seats for choice in able)
    text = f"It went to {word} {chosen[0].value}: {len(able)} of {count_text(len(choices), word)} had the "
    text += f"{count_text(pods, 'seat')} it needs together"
    return text + (f", and none with fewer seats left over ({left})." if tightest else f"; {left} are left over there.")
