"""HorizontalPodAutoscalers are stored only: no metrics are measured here. An event on each says so."""

from __future__ import annotations

from muster.api.resources import HORIZONTAL_POD_AUTOSCALERS
from muster.controllers.controller import Controller
from muster.controllers.objects import MetadataOnly

_MESSAGE = "no metrics are measured in this cluster, so nothing is scaled: set the number of replicas yourself"


class AutoscalerNotice(Controller):
    name = "horizontal-pod-autoscaler"

    def setup(self) -> None:
        self._autoscalers = self.watch(HORIZONTAL_POD_AUTOSCALERS)
        self._autoscalers.on_change(self._changed)

    def _changed(self, old: MetadataOnly | None, new: MetadataOnly | None) -> None:
        if new is not None and (old is None or old.metadata.uid != new.metadata.uid):
            self.queue.add((new.metadata.namespace, new.metadata.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        found: MetadataOnly | None = self._autoscalers.get(*key)
        if found is not None:
            await self.events.warning(
                HORIZONTAL_POD_AUTOSCALERS, found.metadata, "FailedComputeMetricsReplicas", _MESSAGE
            )
        return None
