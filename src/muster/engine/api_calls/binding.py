"""The binding of a pod, carried through until its outcome is known.

A refusal is an outcome. A conflict, a server error or a missing answer does not say whether the binding took place, so
the pod is read: bound to our node is success however it came about; bound elsewhere, deleted or being deleted is
failure; only a pod that is still unbound is bound again. While the server cannot be reached the outcome is waited for,
never guessed.

Right before a bind is sent, at every try, its node is looked at once more. A bind whose node was taken or closed since
is not sent: its pod lost a race. If an earlier try had no answer, or one that leaves open what became of it, the pod is
read for a while before that is said.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from muster.api.errors import ApiError
from muster.api.resources import PODS
from muster.client.backoff import Backoff, is_transient
from muster.client.clock import Clock
from muster.client.error_text import error_text
from muster.client.objects import metadata, part
from muster.client.protocol import Client, Obj
from muster.engine.api_calls.binding_rights import BindingRights, is_missing_right
from muster.engine.api_calls.call import BIND, ApiCall
from muster.engine.binding_lease import BindingLease
from muster.logs import V, keys
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import (
    FORBIDDEN,
    LOST_RACE,
    POD_CHANGED,
    REFUSED,
    BindFailed,
    BindSucceeded,
    Event,
)

log = logging.getLogger(__name__)

TRIES = 6
REFUSALS = (409, 429)  # answers that say for sure that the binding did not take place

Outcome = tuple[str, str]  # why it failed and the cause as `BindFailed` names it; two empty texts for a bound pod
BOUND: Outcome = ("", "")


@dataclass(frozen=True, slots=True)
class BindConditions:
    """What must hold for a bind to be sent."""

    rights: BindingRights
    lease: BindingLease | None = None  # shared with other schedulers
    fault_of: Callable[[Bind], str] = lambda bind: ""  # why the node is no longer free, as far as is known


class NodeTaken(Exception):
    """The node of a bind is no longer free, so it was not sent."""


class BindingCall(ApiCall):
    """One `Bind`. Reports `BindSucceeded` or `BindFailed`, exactly one of them."""

    rank = BIND
    call_type = "pod_binding"

    def __init__(
        self,
        decision: Bind,
        client: Client,
        clock: Clock,
        report: Callable[[Event], None],
        conditions: BindConditions,
    ) -> None:
        pod = decision.pod
        super().__init__(("Pod", pod.namespace, pod.name))
        self.decision = decision
        self._client = client
        self._clock = clock
        self._report = report
        self._conditions = conditions
        self._sent = False  # at least once
        if conditions.lease is not None:
            conditions.lease.enter()

    async def run(self) -> str:
        lease = self._conditions.lease
        bound = None
        try:
            if lease is not None:
                await lease.ensure()
            error, cause = await self._bind()
            bound = self.decision.pod if not error else None
        finally:
            if lease is not None:
                lease.leave(bound)
        uid, node = self.decision.pod.uid, self.decision.node
        where = keys(pod=f"{self.key[1]}/{self.key[2]}", node=node)
        if error:
            where["keys"]["err"] = error
            if cause != FORBIDDEN:  # which is said once for the whole namespace
                log.warning("Binding failed", extra=where)
            self._report(BindFailed(uid, node, error, cause))
        else:
            log.log(V(3), "Bound", extra=where)
            self._report(BindSucceeded(uid, node))
        return error

    async def _bind(self) -> Outcome:
        namespace, rights = self.decision.pod.namespace, self._conditions.rights
        fault = self._conditions.fault_of(self.decision)
        if fault:
            return fault, LOST_RACE
        missing = await rights.refusal(namespace)
        if missing:
            return missing, FORBIDDEN
        outcome: Outcome = ("interrupted", REFUSED)
        try:
            outcome = await self._send()
        finally:
            rights.answered(namespace, outcome[0] if outcome[1] == FORBIDDEN else "")
        return outcome

    async def _send(self) -> Outcome:
        pod, node = self.decision.pod, self.decision.node
        client = self._client.fenced(self._look_again)
        backoff = Backoff(self._clock, first=0.05, most=5.0)
        unsure = False  # whether an earlier try may still take place
        while True:
            try:
                await client.bind(pod.namespace, pod.name, pod.uid, node)
                return BOUND
            except NodeTaken as error:
                if not self._sent:
                    return str(error), LOST_RACE
                reason: Exception = error
            except ApiError as error:
                if error.code != 409 and not is_transient(error):
                    return error_text(error, "create", "pods/binding"), _cause_of(error)
                unsure = unsure or error.code not in REFUSALS
                reason = error
            except (ConnectionError, TimeoutError) as error:
                unsure, reason = True, error
            outcome = await self._outcome(backoff)
            if outcome is not None:
                return outcome
            taken = isinstance(reason, NodeTaken)
            if backoff.tries >= TRIES or (taken and not unsure):
                return (str(reason), LOST_RACE) if taken else (error_text(reason, "create", "pods/binding"), REFUSED)
            await backoff.wait(reason)

    def _look_again(self) -> None:
        """The client asks this whenever the bind is about to leave, also when it sends it again by itself."""
        fault = self._conditions.fault_of(self.decision)
        if fault:
            raise NodeTaken(fault)
        self._sent = True

    async def _outcome(self, backoff: Backoff) -> Outcome | None:
        """Whether the pod is bound to our node, or why it never will be; None if it is still unbound."""
        pod = self.decision.pod
        while True:
            try:
                return self._outcome_in(await self._client.get(PODS, pod.name, pod.namespace))
            except ApiError as error:
                if not is_transient(error):
                    return error_text(error, "get", "pods"), POD_CHANGED if error.code == 404 else REFUSED
                await backoff.wait(error)
            except (ConnectionError, TimeoutError) as error:
                log.log(V(2), "Looking up a bind", extra=keys(pod=f"{pod.namespace}/{pod.name}", err=str(error)))
                await backoff.wait(error)

    def _outcome_in(self, found: Obj) -> Outcome | None:
        meta = metadata(found)
        if self.decision.pod.uid and meta.get("uid") != self.decision.pod.uid:
            return "the pod was deleted and another one has its name", POD_CHANGED
        node = part(found, "spec").get("nodeName")
        if node:
            return BOUND if node == self.decision.node else (f"the pod is already bound to node {node}", POD_CHANGED)
        if meta.get("deletionTimestamp"):
            return "the pod is being deleted", POD_CHANGED
        return None


def _cause_of(error: ApiError) -> str:
    if is_missing_right(error):
        return FORBIDDEN
    return POD_CHANGED if error.code == 404 else REFUSED
