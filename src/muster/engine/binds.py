"""A bind, carried through until its fate is known.

A refusal is a fact. Anything else (a conflict, a server error, no answer) says nothing about whether the
bind took place, so the pod is looked up: bound to our node is success however it came about, bound
elsewhere, deleted or going is failure, and only a pod that still waits is bound again. While the server
cannot be reached the answer is waited for, never guessed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import PODS
from muster.client.protocol import Client
from muster.engine.lanes import BIND, Write
from muster.engine.logs import V, keys
from muster.engine.pace import Backoff, Pace, is_transient
from muster.engine.refusals import words
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import BindFailed, BindSucceeded, Event

log = logging.getLogger(__name__)

TRIES = 6


class BindWrite(Write):
    """One `Bind`. Reports `BindSucceeded` or `BindFailed`, exactly one of them."""

    rank = BIND
    call = "pod_binding"

    def __init__(self, decision: Bind, client: Client, pace: Pace, report: Callable[[Event], None]) -> None:
        pod = decision.pod
        super().__init__(("Pod", pod.namespace, pod.name))
        self.decision = decision
        self._client = client
        self._pace = pace
        self._report = report

    async def run(self) -> str:
        fault = await self._bind()
        uid, node = self.decision.pod.uid, self.decision.node
        where = keys(pod=f"{self.key[1]}/{self.key[2]}", node=node)
        if fault:
            where["keys"]["err"] = fault
            log.warning("Binding failed", extra=where)
            self._report(BindFailed(uid, node, fault))
        else:
            log.log(V(3), "Bound", extra=where)
            self._report(BindSucceeded(uid, node))
        return fault

    async def _bind(self) -> str:
        pod, node = self.decision.pod, self.decision.node
        backoff = Backoff(self._pace, first=0.05, most=5.0)
        while True:
            try:
                await self._client.bind(pod.namespace, pod.name, pod.uid, node)
                return ""
            except ApiError as error:
                if error.code != 409 and not is_transient(error):
                    return words(error, "create", "pods/binding")
                reason: Exception = error
            except (ConnectionError, TimeoutError) as error:
                reason = error
            fate = await self._fate(backoff)
            if fate is not None:
                return fate
            if backoff.tries >= TRIES:
                return words(reason, "create", "pods/binding")
            await backoff.wait(reason)

    async def _fate(self, backoff: Backoff) -> str | None:
        """ "" if the pod is bound to our node, why it never will be, or None if it still waits."""
        pod = self.decision.pod
        while True:
            try:
                return self._judge(await self._client.get(PODS, pod.name, pod.namespace))
            except ApiError as error:
                if not is_transient(error):
                    return words(error, "get", "pods")
                await backoff.wait(error)
            except (ConnectionError, TimeoutError) as error:
                log.log(V(2), "Looking up a bind", extra=keys(pod=f"{pod.namespace}/{pod.name}", err=str(error)))
                await backoff.wait(error)

    def _judge(self, found: dict[str, Any]) -> str | None:
        meta, spec = found.get("metadata") or {}, found.get("spec") or {}
        if self.decision.pod.uid and meta.get("uid") != self.decision.pod.uid:
            return "the pod was deleted and another one has its name"
        node = spec.get("nodeName")
        if node:
            return "" if node == self.decision.node else f"the pod is already bound to node {node}"
        if meta.get("deletionTimestamp"):
            return "the pod is being deleted"
        return None
