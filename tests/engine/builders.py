"""Brains for the engine's tests."""

from __future__ import annotations

from typing import Any

from muster.scheduler.decisions import Bind, Decision, Ref
from muster.scheduler.events import BindFailed, BindSucceeded, Changed, Event, EvictFailed, Removed, Synced


class Profiles:
    """As much of a config as the engine looks at."""

    def __init__(self, *names: str) -> None:
        self.profiles: dict[str, Any] = dict.fromkeys(names or ("muster",))


class FirstNodeBrain:
    """Binds every pod it is told of to one node, and remembers everything it heard. Bind failures are tried again."""

    def __init__(self, node: str = "n1", *, again: bool = False) -> None:
        self.node = node
        self.again = again
        self.heard: list[Event] = []
        self.synced = False
        self.todo: dict[str, Ref] = {}
        self.asked: dict[str, Ref] = {}
        self.say: list[list[Decision]] = []  # lists to be said before anything else, one a turn

    def handle(self, event: Event, now: float) -> None:
        self.heard.append(event)
        match event:
            case Synced():
                self.synced = True
            case Changed("Pod", pod) if not pod.spec.node_name and pod.metadata.uid not in self.asked:
                meta = pod.metadata
                self.todo[meta.uid] = Ref("Pod", meta.namespace, meta.name, meta.uid)
            case Removed("Pod", _, _, uid):
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
        return [event for event in self.heard if isinstance(event, BindSucceeded | BindFailed | EvictFailed)]
