"""What a root asks for, as the planner sees it: a tree of branches and leaves with what is still missing.

The cycle builds a demand from the forest and the queue; the planner never looks at API objects. A
single pod is a leaf of one. Members are already in the order in which they want to be placed
(priority, creation time, uid). `need` counts what is missing for the minimum: a leaf whose running
members already meet it has need 0 and any pending members are extras.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey


class PendingPod(msgspec.Struct, frozen=True, gc=False):
    """One pending pod. A group has thousands, and they are made anew for every attempt: hence a struct."""

    uid: str
    namespace: str
    name: str
    shape: Shape
    priority: int


@dataclass(frozen=True, slots=True)
class PodGroupRequest:
    """A PodGroup (or a single pod) with its pending members."""

    key: EntityKey
    minimum: int  # minCount; 1 for basic and for single pods
    bound: int  # members that count already (running, assumed, completed after success)
    members: tuple[PendingPod, ...]
    topology: str | None = None  # label key whose value all members share
    domains: tuple[str, ...] = ()  # values in use by bound members: one pins, two or more are a conflict

    @property
    def need(self) -> int:
        return max(0, self.minimum - self.bound)

    @property
    def met(self) -> bool:
        return self.bound >= self.minimum


@dataclass(frozen=True, slots=True)
class CompositeRequest:
    """A CompositePodGroup with its child groups."""

    key: EntityKey
    minimum: int  # minGroupCount; 1 for basic
    children: tuple[GroupRequest, ...]
    topology: str | None = None
    domains: tuple[str, ...] = ()


GroupRequest = PodGroupRequest | CompositeRequest


def leaves(request: GroupRequest) -> Iterator[PodGroupRequest]:
    """The leaves of a tree, left to right."""
    if isinstance(request, PodGroupRequest):
        yield request
    else:
        for child in request.children:
            yield from leaves(child)
