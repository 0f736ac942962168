"""Conditions of pods and groups, written once and only when they change.

`InitiallyScheduled` is sticky: once True it is never taken back. `scheduling.muster.dev/QuorumMet` follows the
present state of a group that ran once. The last value of each condition is kept here, seeded from the
object's own status, so a restart repeats nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muster.api import groups as api
from muster.api import types
from muster.scheduler.groups.group import Group
from muster.scheduler.interface.decisions import Decision, SetCondition
from muster.scheduler.interface.keys import ObjectRef

POD_SCHEDULED = "PodScheduled"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
ConditionValue = tuple[str, str, str]  # status, reason, message


class ConditionWriter:
    """The last conditions of every object, which new ones to write, and decisions posted for the next cycle."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], ConditionValue] = {}  # (uid, type) -> value; objects without uid have none
        self._posted: list[Decision] = []

    def observe(self, uid: str, conditions: tuple[types.Condition, ...] | None) -> None:
        """Take over the conditions of an object's status, where nothing newer was decided since."""
        for condition in conditions or ():
            key = (uid, condition.type)
            if key not in self._last:
                self._last[key] = (condition.status, condition.reason, condition.message)

    def forget(self, uid: str) -> None:
        for key in [(uid, kind) for kind in _KINDS]:
            self._last.pop(key, None)

    def last(self, uid: str, type_: str) -> ConditionValue | None:
        return self._last.get((uid, type_))

    def set(self, about: ObjectRef, type_: str, status: str, reason: str, message: str = "") -> SetCondition | None:
        """The decision to write a condition, or None if the object has it already."""
        value = (status, reason, message)
        if self._last.get((about.uid, type_)) == value:
            return None
        self._last[about.uid, type_] = value
        return SetCondition(about, type_, status, reason, message)

    def is_disruption_target(self, uid: str) -> bool:
        """Whether the last `DisruptionTarget` of the object is True for a preemption by a scheduler."""
        last = self._last.get((uid, api.DISRUPTION_TARGET))
        return last is not None and last[:2] == ("True", PREEMPTION_BY_SCHEDULER)

    # --- decisions of event handlers ---------------------------------------------------------------

    def post(self, decision: Decision) -> None:
        """Keep a decision for the next cycle: events are handled without deciding anything."""
        self._posted.append(decision)

    @property
    def has_posted(self) -> bool:
        return bool(self._posted)

    def take_posted(self) -> list[Decision]:
        posted, self._posted = self._posted, []
        return posted

    # --- groups ------------------------------------------------------------------------------------

    def initially_scheduled(self, group: Group, status: str, reason: str, message: str = "") -> SetCondition | None:
        """The sticky condition of a group; True is never taken back."""
        type_ = api.POD_GROUP_INITIALLY_SCHEDULED if group.is_leaf else api.COMPOSITE_INITIALLY_SCHEDULED
        if group.obj is None or (status != "True" and group.scheduled_once):
            return None
        return self.set(group.ref, type_, status, reason, message)

    def review(self, group: Group, losing_pods: Callable[[Group], bool]) -> Iterator[SetCondition]:
        """The conditions to write for the present state of one group."""
        if group.obj is None:
            return
        if group.quorum_bound:
            yield from self._met(group)
            if self.is_disruption_target(group.ref.uid) and not losing_pods(group):
                text = "the group is bound again"
                yield from _some(self.set(group.ref, api.DISRUPTION_TARGET, "False", "QuorumBound", text))
        elif group.scheduled_once:
            what = "members" if group.is_leaf else "child groups"
            text = f"{group.confirmed} of {group.minimum} {what} are bound"
            reason = "Preempted" if self.is_disruption_target(group.ref.uid) else "BelowMinimum"
            yield from _some(self.set(group.ref, api.QUORUM_MET, "False", reason, text))

    def _met(self, group: Group) -> Iterator[SetCondition]:
        yield from _some(self.initially_scheduled(group, "True", "Scheduled"))
        group.set_scheduled_once()
        yield from _some(self.set(group.ref, api.QUORUM_MET, "True", "QuorumBound"))


_KINDS = (
    POD_SCHEDULED,
    api.POD_GROUP_INITIALLY_SCHEDULED,
    api.POD_GROUP_SCHEDULED,
    api.COMPOSITE_INITIALLY_SCHEDULED,
    api.QUORUM_MET,
    api.DISRUPTION_TARGET,
)


def _some(decision: SetCondition | None) -> Iterator[SetCondition]:
    if decision is not None:
        yield decision
