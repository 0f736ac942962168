"""Requeue signals: what changed between two cycles that could end the wait of an unschedulable entity.

A burst of events costs one look: nodes and plugins are collected here and taken once per cycle.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.scheduler.interface import cluster_events
from muster.scheduler.interface.cluster_events import ClusterEvents
from muster.scheduler.runtime.profile import Profile

_NONE: frozenset[str] = frozenset()

BINDS_IN_FLIGHT = "BindsInFlight"  # listed among the plugins: rejected because possible victims are just being bound


class RequeueSignals:
    """Nodes that gained room or changed, and plugins whose rejections may be over."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self.nodes: set[int] = set()  # slots
        self.gains = 0  # increases with every change that could make something fit which did not
        self._plugins: set[str] = set()
        self._requeued_by: dict[str, set[str]] = {}  # cluster event -> plugins
        for profile in profiles:
            for plugin in profile.filters:
                for event in plugin.requeue_events:
                    self._requeued_by.setdefault(event, set()).add(plugin.name)

    def capacity(self, slot: int) -> None:
        """A node gained room, or changed in another way."""
        self.gains += 1
        self.nodes.add(slot)

    def event(self, *events: str) -> None:
        """Cluster events happened: plugins that name one of them may no longer reject what they rejected."""
        for event in events:
            self.gains += event != cluster_events.POD_PLACED
            self._plugins |= self._requeued_by.get(event, _NONE)

    def all_of(self, events: ClusterEvents) -> None:
        """`event` for a set of them."""
        self.event(*events)

    def rejection_over(self, rejected_by: str) -> None:
        """What entities name as the reason of their rejection may be over."""
        self.gains += 1
        self._plugins.add(rejected_by)

    def take_plugins(self) -> list[str]:
        """The plugins collected so far, in order; they are taken."""
        plugins, self._plugins = sorted(self._plugins), set()
        return plugins

    @property
    def pending(self) -> bool:
        """Whether anything was collected."""
        return bool(self.nodes or self._plugins)
