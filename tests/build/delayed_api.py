"""A scheduler with a slow API server around it: watches lag, calls wait, and a test says what happens next.

    api = a_delayed_api(nodes=[a_node("n0", cpu=4)])
    api.add(a_gang("g", min_count=2), *pods(2, group="g"))
    api.deliver()           # the watches show everything that is stored
    api.cycles()            # the scheduler decides; its calls wait in `api.calls`
    api.remove("PodGroup", "g")
    api.execute(succeed=False)
    api.answer()

Each kind of object has its own watch, so objects of one kind are shown in order and of different kinds in any order.
Conditions and nominations are written at once. The names of objects may be used again; uids never are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from muster.api import groups as api
from muster.api import types
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from tests.build.scheduler import TestWorld


class DelayedApi(TestWorld):
    """A scheduler whose events arrive, and whose calls are carried out, only when a test says so."""

    __test__ = False

    def __init__(self, nodes: Iterable[types.Node] = (), **options: Any) -> None:
        self.watches: dict[str, deque[events.Event]] = {}
        self.calls: list[d.Bind | d.Evict] = []
        self.answers: deque[events.Event] = deque()
        self.uids = 0
        super().__init__(nodes, **options)

    # --- the API server ----------------------------------------------------------------------------

    def _tell(self, event: events.Event) -> None:
        if isinstance(event, events.ObjectUpdated | events.ObjectDeleted):
            self.watches.setdefault(event.kind, deque()).append(event)
            return
        self.deliver()
        self.scheduler.handle(event, self.now)

    def create(self, obj: Any) -> None:
        """Store a new object; one that had its name before had another uid."""
        self.uids += 1
        meta = msgspec.structs.replace(obj.metadata, uid=f"{obj.metadata.uid}-{self.uids}")
        self.add(msgspec.structs.replace(obj, metadata=meta))

    def _carry_out(self, decision: d.Decision) -> None:
        if isinstance(decision, d.Bind | d.Evict):
            self.calls.append(decision)
        else:
            super()._carry_out(decision)

    # --- what happens next -------------------------------------------------------------------------

    def deliver(self, *kinds: str, most: int | None = None) -> None:
        """The watches of these kinds, or all, show what they have not shown, or the next `most` changes."""
        for kind in kinds or list(self.watches):
            shown = self.watches.get(kind, deque())
            for _ in range(len(shown) if most is None else min(most, len(shown))):
                self.scheduler.handle(shown.popleft(), self.now)

    def cycles(self) -> None:
        """Cycles of the scheduler until it has nothing to do at this moment."""
        self.run()

    def execute(self, *, succeed: bool = True, most: int | None = None) -> None:
        """The API server carries out the calls that wait, or the first `most`; it can refuse them."""
        calls, self.calls = self.calls[:most], self.calls[most:] if most is not None else []
        for call in calls:
            pod = self._stored(call.pod)
            if isinstance(call, d.Bind):
                self._execute_bind(call, pod, succeed)
            elif pod is not None and not self._execute_evict(call, pod, succeed):
                self.answers.append(events.EvictionFailed(call.pod.uid, "refused"))

    def _execute_bind(self, call: d.Bind, pod: types.Pod | None, succeed: bool) -> None:
        if pod is None or pod.metadata.deletion_timestamp:
            self.answers.append(events.BindFailed(call.pod.uid, call.node, "gone", events.POD_CHANGED))
            return
        if not succeed:
            self.answers.append(events.BindFailed(call.pod.uid, call.node, "refused"))
            return
        assert not pod.spec.node_name, f"{call.pod.name} is bound twice"
        spec = msgspec.structs.replace(pod.spec, node_name=call.node)
        status = msgspec.structs.replace(pod.status, phase="Running", nominated_node_name="")
        self.add(msgspec.structs.replace(pod, spec=spec, status=status))
        self.answers.append(events.BindSucceeded(call.pod.uid, call.node))

    def _execute_evict(self, call: d.Evict, pod: types.Pod, succeed: bool) -> bool:
        conditions = {c.type: c.status for c in pod.status.conditions or ()}
        marked = call.given_back or conditions.get(api.DISRUPTION_TARGET) == "True"
        if succeed and marked and not pod.metadata.deletion_timestamp:
            self.terminate(call.pod.name)
        return succeed and marked

    def answer(self, most: int | None = None) -> None:
        """The scheduler hears the answers to its calls, or the next `most`."""
        for _ in range(len(self.answers) if most is None else min(most, len(self.answers))):
            self.scheduler.handle(self.answers.popleft(), self.now)

    def settle(self, seconds: float = 240.0) -> None:
        """Everything that waits happens, terminating pods go, and time passes with every timer that runs out."""
        end = self.now + seconds
        self._finish()
        while (due := self.scheduler.wake_at(self.now)) is not None and due <= end:
            self.now = max(due, self.now + 0.001)
            self._finish()
        self.now = end

    def _finish(self) -> None:
        while True:
            self.run()
            self.execute()
            self.reap()
            if not self.answers and not any(self.watches.values()):
                return
            self.deliver()
            self.answer()

    def restart(self) -> None:
        """The scheduler dies with what it had not heard, and a new one starts from what is stored."""
        self.calls, self.watches = [], {}
        self.answers.clear()
        super().restart()

    # --- looking -----------------------------------------------------------------------------------

    def fresh_scheduler(self) -> tuple[Scheduler, list[d.Decision]]:
        """A scheduler without a past, given what is stored now, and the binds and evictions that it decides."""
        fresh = Scheduler(self.scheduler.state.config)
        for (kind, _, _), obj in sorted(self.objects.items(), key=lambda item: item[0]):
            fresh.handle(events.ObjectUpdated(kind, obj), self.now)
        fresh.handle(events.CacheSynced(), self.now)
        found: list[d.Decision] = []
        while (decisions := fresh.next(self.now)) or not fresh.is_idle(self.now):
            found += [decision for decision in decisions if isinstance(decision, d.Bind | d.Evict)]
        return fresh, found


def a_delayed_api(nodes: Iterable[types.Node] = (), **options: Any) -> DelayedApi:
    return DelayedApi(nodes, **options)
