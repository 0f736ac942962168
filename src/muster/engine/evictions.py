"""A victim's deletion: never before what announces it is written, never of another pod of the same name.

The delete carries the uid and the newest version we know. When the pod has changed since, it is read
again: if the mark that announced the eviction is no longer there, someone took it back and the pod stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from muster.api.errors import ApiError
from muster.api.groups import DISRUPTION_TARGET
from muster.api.resources import PODS
from muster.client.protocol import Client
from muster.engine.facts import Facts
from muster.engine.lanes import Write
from muster.engine.logs import V, keys
from muster.engine.pace import Backoff, Pace, is_transient
from muster.engine.refusals import words
from muster.engine.statuses import GONE
from muster.scheduler.interface.decisions import Evict
from muster.scheduler.interface.events import Event, EvictionFailed

log = logging.getLogger(__name__)

TRIES = 8


class EvictWrite(Write):
    """One `Evict`. Reports `EvictFailed` if the pod stays; that it is gone is for the watch to say."""

    call = "pod_delete"

    def __init__(
        self,
        decision: Evict,
        client: Client,
        pace: Pace,
        facts: Facts,
        report: Callable[[Event], None],
    ) -> None:
        pod = decision.pod
        super().__init__(("Pod", pod.namespace, pod.name))
        self.decision = decision
        self.withdrawn = False  # the brain thought better of it before the delete was sent
        self._client = client
        self._pace = pace
        self._facts = facts
        self._report = report

    async def run(self) -> str:
        if self.withdrawn:
            return ""
        unsaid = [fault for fault in (self.after.faults if self.after else ()) if fault != GONE]
        fault = f"not announced: {unsaid[0]}" if unsaid else await self._delete()
        pod = self.decision.pod
        if fault:
            log.warning("Eviction failed", extra=keys(pod=f"{pod.namespace}/{pod.name}", err=fault))
            self._report(EvictionFailed(pod.uid, fault))
        else:
            who = self.decision.preemptor
            where = keys(pod=f"{pod.namespace}/{pod.name}", preemptor=f"{who.namespace}/{who.name}")
            log.log(V(2), "Evicted", extra=where)
        return fault

    async def _delete(self) -> str:
        pod = self.decision.pod
        backoff = Backoff(self._pace, first=0.1, most=5.0)
        about = ("Pod", pod.namespace, pod.name, pod.uid)
        version = self._facts.version_of(*about)
        marked = self._facts.status_of(*about, DISRUPTION_TARGET) == "True"
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
                    version = (known.get("metadata") or {}).get("resourceVersion")
                elif not is_transient(error):
                    return words(error, "delete", "pods")
                reason: Exception = error
            except (ConnectionError, TimeoutError) as error:
                reason = error
            if backoff.tries >= TRIES:
                return words(reason, "delete", "pods")
            await backoff.wait(reason)

    async def _read_again(self, marked: bool) -> dict[str, Any] | str | None:
        """The pod as it is now; None if it is gone; text if it must stay."""
        pod = self.decision.pod
        try:
            found = await self._client.get(PODS, pod.name, pod.namespace)
        except ApiError as error:
            return None if error.code == 404 else ({} if is_transient(error) else words(error, "get", "pods"))
        except (ConnectionError, TimeoutError):
            return {}
        if pod.uid and (found.get("metadata") or {}).get("uid") != pod.uid:
            return None
        conditions = (found.get("status") or {}).get("conditions") or ()
        still = any(each.get("type") == DISRUPTION_TARGET and each.get("status") == "True" for each in conditions)
        if marked and not still:
            return "its mark was taken back"
        return found
