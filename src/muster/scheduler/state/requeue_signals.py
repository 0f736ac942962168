"""Requeue signals: what changed that could end the wait of an unschedulable entity, and when.

Everything is collected here by event handlers and by the owners of state, each with a stamp that increases. A class of
waiting entities that failed at a stamp looks only at what is newer. A burst of events costs one look: equal changes are
one entry. Once every class has looked, the entries are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.scheduler.cache.arrays import ChangeLog
from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.interface import cluster_events
from muster.scheduler.interface.cluster_events import ClusterEvents
from muster.scheduler.queue.gain import HIGHEST, Gain
from muster.scheduler.runtime.profile import Profile

_NONE: frozenset[str] = frozenset()

# Plugins whose results about pods follow from terms: pods that no term selects change nothing for them.
TERM_PLUGINS = frozenset(("InterPodAffinity", "PodTopologySpread"))
_POD_EVENTS = frozenset((cluster_events.POD_PLACED, cluster_events.POD_GONE, cluster_events.POD_CHANGED))


class RequeueSignals:
    """Slots that gained room, pods that came or went, and plugins whose rejections may be over, with their stamps."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self.stamp = 0  # of the latest entry
        self.gains = 0  # increases with every change that could make something fit which did not
        self.slots: dict[Gain, int] = {}
        self.pods: dict[Footprint, int] = {}  # came to a node, left it or changed there
        self.evictable_pods: dict[tuple[Footprint, int], int] = {}  # and the lowest priority that can evict it now
        self.plugins: dict[str, int] = {}
        self.log = ChangeLog()  # slots whose node changed, or the pods on it
        self._requeued_by: dict[str, set[str]] = {}  # cluster event -> plugins
        for profile in profiles:
            for plugin in profile.filters:
                for event in plugin.gains:
                    if event not in _POD_EVENTS or plugin.name not in TERM_PLUGINS:
                        self._requeued_by.setdefault(event, set()).add(plugin.name)

    # --- room --------------------------------------------------------------------------------------

    def capacity(self, slot: int) -> None:
        """A node gained room, or changed in another way."""
        self._gain(Gain(slot, -HIGHEST, HIGHEST, True))

    def pod_gone(self, slot: int, priority: int, *, awaited: bool) -> None:
        """A pod left a node; `awaited`: it was terminating, so its room was counted on."""
        self._gain(Gain(slot, -HIGHEST, -HIGHEST if awaited else priority, True))

    def pod_leaving(self, slot: int, priority: int) -> None:
        """A pod is being deleted: who may preempt can count on its room."""
        self._gain(Gain(slot, -HIGHEST, priority, False))

    def evictable(self, slot: int, priority: int, footprint: Footprint) -> None:
        """A pod of this priority can be evicted from now on by those of a higher one."""
        self._gain(Gain(slot, priority + 1, HIGHEST, False))
        self.evictable_pods[footprint, priority + 1] = self.stamp

    def nomination_cleared(self, slot: int, priority: int) -> None:
        """A seat is no longer kept against entities of this priority or a lower one."""
        self._gain(Gain(slot, -HIGHEST, priority, True))

    def _gain(self, gain: Gain) -> None:
        self.stamp += 1
        self.gains += 1
        self.slots[gain] = self.stamp
        self.log.add(gain.slot)

    def taken(self, slot: int) -> None:
        """A pod was added to a node, or a seat there was nominated."""
        self.log.add(slot)

    # --- rules -------------------------------------------------------------------------------------

    def pod(self, footprint: Footprint) -> None:
        """A pod came to a node, left it or changed there: terms that select it may give another result."""
        self.stamp += 1
        self.pods[footprint] = self.stamp

    def event(self, *events: str) -> None:
        """Cluster events happened: plugins that name one of them may no longer reject what they rejected."""
        for event in events:
            self.stamp += 1
            self.gains += event != cluster_events.POD_PLACED
            for plugin in self._requeued_by.get(event, _NONE):
                self.plugins[plugin] = self.stamp

    def all_of(self, events: ClusterEvents) -> None:
        """`event` for a set of them."""
        self.event(*sorted(events))

    def pods_since(self, stamp: int, priority: int, *, preempts: bool) -> list[Footprint]:
        """The pods that came, went or changed after a stamp, or that an entity of this priority can evict since."""
        found = [footprint for footprint, at in self.pods.items() if at > stamp]
        if preempts:
            evictable = self.evictable_pods.items()
            found += [footprint for (footprint, lowest), at in evictable if at > stamp and lowest <= priority]
        return found

    # --- taking ------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Every waiting class has looked at what was collected."""
        self.slots.clear()
        self.pods.clear()
        self.evictable_pods.clear()
        self.plugins.clear()

    @property
    def pending(self) -> bool:
        """Whether anything was collected."""
        return bool(self.slots or self.pods or self.plugins)
