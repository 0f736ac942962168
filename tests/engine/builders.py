"""Brains for the engine's tests."""

from __future__ import annotations

from typing import Any

from muster.scheduler.interface.decisions import Bind, Decision, SetCondition
from muster.scheduler.interface.events import (
    BindFailed,
    BindSucceeded,
    CacheSynced,
    Event,
    EvictionFailed,
    ObjectDeleted,
    ObjectUpdated,
)
from muster.scheduler.interface.keys import ObjectRef


class Profiles:
    """As much of a config as the engine looks at."""

    def __init__(self, *names: str) -> None:
        self.profiles: dict[str, Any] = dict.fromkeys(names or ("muster",))


class FirstNodeScheduler:
    """Binds every pod it is told of to one node, and remembers everything it heard. Bind failures are tried again."""

    def __init__(self, node: str = "n1", *, again: bool = False) -> None:
        self.node = node
        self.again = again
        self.heard: list[Event] = []
        self.synced = False
        self.todo: dict[str, ObjectRef] = {}
        self.asked: dict[str, ObjectRef] = {}
        self.say: list[list[Decision]] = []  # lists to be said before anything else, one a turn

    def handle(self, event: Event, now: float) -> None:
        self.heard.append(event)
        match event:
            case CacheSynced():
                self.synced = True
            case ObjectUpdated("Pod", pod) if not pod.spec.node_name and pod.metadata.uid not in self.asked:
                meta = pod.metadata
                self.todo[meta.uid] = ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
            case ObjectDeleted("Pod", _, _, uid):
                self.todo.pop(uid, None)
            case BindFailed(uid, _, _) if self.again:
                self.todo[uid] = self.asked[uid]
            case _:
                pass

    def next(self, now: float) -> list[Decision]:
        if not self.synced:
            return []
        if self.say:
            return self.say.pop(0)
        made: list[Decision] = [Bind(ref, self.node) for ref in self.todo.values() if self.node]
        if made:
            self.asked.update(self.todo)
            self.todo = {}
        return made

    def wake_at(self, now: float) -> float | None:
        return now if self.synced and (self.say or (self.todo and self.node)) else None

    def results(self) -> list[Event]:
        return [event for event in self.heard if isinstance(event, BindSucceeded | BindFailed | EvictionFailed)]


def ref(obj: dict[str, Any], kind: str = "Pod") -> ObjectRef:
    meta = obj["metadata"]
    return ObjectRef(kind, meta["namespace"], meta["name"], meta["uid"])


def condition(obj: dict[str, Any], type_: str) -> dict[str, Any]:
    found = [each for each in obj.get("status", {}).get("conditions", []) if each["type"] == type_]
    assert len(found) <= 1
    return found[0] if found else {}


def unschedulable(pod: ObjectRef, message: str) -> SetCondition:
    return SetCondition(pod, "PodScheduled", "False", "Unschedulable", message)
