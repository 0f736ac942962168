"""What the commands read of a scheduler's state: groups, pods, the queue, and the nodes as arrays.

This is the only module of the command line that knows how a scheduler stores its state. Nothing is changed through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from muster.scheduler.arrays import Bools, Ids, Ints
    from muster.scheduler.cycle import Brain
    from muster.scheduler.groups import Group, Member
    from muster.scheduler.planning.demand import GroupKey
    from muster.scheduler.queue import Root


class SchedulerView:
    """Read-only access to one scheduler; always shows its state of now."""

    def __init__(self, scheduler: Brain) -> None:
        self._scheduler = scheduler
        self._forest = scheduler.world.forest
        self._cluster = scheduler.world.cluster

    # --- groups and pods ---------------------------------------------------------------------------

    @property
    def groups(self) -> Mapping[GroupKey, Group]:
        """Every group that exists or that somebody names."""
        return self._forest.groups

    @property
    def members(self) -> Mapping[str, Member]:
        """Every pod, by uid."""
        return self._forest.members

    def queue(self) -> Iterable[Root]:
        """The pending pods and trees of groups, in the order in which they are tried."""
        return self._scheduler.roots()

    # --- nodes -------------------------------------------------------------------------------------

    @property
    def has_nodes(self) -> bool:
        return bool(self._cluster.index)

    @property
    def nodes(self) -> Bools:
        """Which places of the arrays below are nodes; places of removed nodes stay free for a while."""
        return self._cluster.alive[: self._cluster.size]

    def labels(self, key: str) -> Ids:
        """The number of each node's label value; 0 for nodes without the label."""
        return self._cluster.labels(key)

    def label_value(self, key: str, number: int) -> str:
        """The label value that has this number."""
        return self._cluster.label_value(key, number)

    def domain_of(self, node: str, key: str) -> str:
        """The value of one node's label; empty without it."""
        return self._scheduler.world.domain_of(node, key)

    def allocatable(self, resource: str) -> Ints | None:
        """Of one resource, how much each node has (cpu in milli-units); None for a resource that no node has."""
        row = self._cluster.row.get(resource)
        return self._cluster.alloc[row] if row is not None else None

    def requested(self, resource: str) -> Ints | None:
        """Of one resource, how much the pods on each node request."""
        row = self._cluster.row.get(resource)
        return self._cluster.used[row] if row is not None else None

    def seats(self, requests: Mapping[str, str]) -> Ints:
        """On each node, how many more pods with these requests would fit, by every rule of the first profile."""
        from muster.api.types import Pod

        body: dict[str, Any] = {
            "metadata": {"name": "asked", "namespace": "default", "uid": "asked"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": dict(requests)}}]},
        }
        profile = next(iter(self._scheduler.world.config.profiles.values()))
        shape = self._cluster.shape(msgspec.convert(body, Pod), profile)
        with self._cluster.trial() as trial:
            return trial.seats(shape)


def view_of(scheduler: Brain) -> SchedulerView:
    """The state of a scheduler, to be read."""
    return SchedulerView(scheduler)
