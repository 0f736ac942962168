"""The deletion of a preemption victim: never before DisruptionTarget is written, never of another pod of that name.

The delete carries the uid and the newest resource version we know. When the pod has changed since, it is read again: if
the condition DisruptionTarget that announced the eviction is no longer there, somebody removed it and the pod stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from muster.api.errors import ApiError
from muster.api.groups import DISRUPTION_TARGET
from muster.api.resources import PODS
from muster.client.backoff import Backoff, is_transient
from muster.client.clock import Clock
from muster.client.error_text import error_text
from muster.client.objects import conditions, metadata
from muster.client.protocol import Client, Obj
from muster.engine.api_calls.call import ApiCall
from muster.engine.api_calls.patches import GONE
from muster.engine.latest_objects import LatestObjects
from muster.logs import V, keys
from muster.scheduler.interface.decisions import Evict
from muster.scheduler.interface.events import Event, EvictionFailed

log = logging.getLogger(__name__)

TRIES = 8


class EvictionCall(ApiCall):
    """One `Evict`. Reports `EvictionFailed` if the pod stays; that it is gone is for the watch to show."""

    call_type = "pod_delete"

    def __init__(
        self,
        decision: Evict,
        client: Client,
        clock: Clock,
        latest: LatestObjects,
        report: Callable[[Event], None],
    ) -> None:
        pod = decision.pod
        super().__init__(("Pod", pod.namespace, pod.name))
        self.decision = decision
        self.cancelled = False  # the preemption was cancelled before the delete was sent
        self._client = client
        self._clock = clock
        self._latest = latest
        self._report = report

    async def run(self) -> str:
        if self.cancelled:
            return ""
        unwritten = [error for error in (self.after.errors if self.after else ()) if error != GONE]
        error = f"not announced: {unwritten[0]}" if unwritten else await self._delete()
        pod = self.decision.pod
        if error:
            log.warning("Eviction failed", extra=keys(pod=f"{pod.namespace}/{pod.name}", err=error))
            self._report(EvictionFailed(pod.uid, error))
        else:
            preemptor = self.decision.preemptor
            where = keys(pod=f"{pod.namespace}/{pod.name}", preemptor=f"{preemptor.namespace}/{preemptor.name}")
            log.log(V(2), "Evicted", extra=where)
        return error

    async def _delete(self) -> str:
        pod = self.decision.pod
        backoff = Backoff(self._clock, first=0.1, most=5.0)
        version = self._latest.version_of(pod)
        marked = self._latest.status_of(pod, DISRUPTION_TARGET) == "True"
        while True:
            try:
                await self._client.delete(PODS, pod.name, pod.namespace, uid=pod.uid or None, resource_version=version)
                return ""
            except ApiError as error:
                if error.code == 404:
                    return ""
                if error.code == 409:
                    known = await self._read_again(marked)
                    if known is None or isinstance(known, str):
                        return known or ""
                    version = metadata(known).get("resourceVersion")
                elif not is_transient(error):
                    return error_text(error, "delete", "pods")
                reason: Exception = error
            except (ConnectionError, TimeoutError) as error:
                reason = error
            if backoff.tries >= TRIES:
                return error_text(reason, "delete", "pods")
            await backoff.wait(reason)

    async def _read_again(self, marked: bool) -> Obj | str | None:
        """The pod as it is now; None if it is gone; text if it must stay."""
        pod = self.decision.pod
        try:
            found = await self._client.get(PODS, pod.name, pod.namespace)
        except ApiError as error:
            return None if error.code == 404 else ({} if is_transient(error) else error_text(error, "get", "pods"))
        except (ConnectionError, TimeoutError):
            return {}
        if pod.uid and metadata(found).get("uid") != pod.uid:
            return None
        if marked and not any(_is_target(each) for each in conditions(found)):
            return "its mark was taken back"
        return found


def _is_target(condition: Obj) -> bool:
    return condition.get("type") == DISRUPTION_TARGET and condition.get("status") == "True"
