"""An API call as the call queue sees it, and barriers between calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

SCHEDULED, BIND, STATUS, EVENT = range(4)  # ranks, the most urgent first; SCHEDULED: that a group's minimum is bound
CallKey = tuple[str, str, str]  # kind, namespace and name of the object


class ApiCall(ABC):
    """One write to one object. Subclasses send it in `run`, which returns "" or the error it was given up with."""

    rank = STATUS
    call_type = "write"  # its label in metrics

    def __init__(self, key: CallKey) -> None:
        self.key = key
        self.started = False
        self.ended = False
        self.error = ""  # why it was given up, once it has ended
        self.after: Barrier | None = None
        self.barriers: list[Barrier] = []  # that wait for this call

    @abstractmethod
    async def run(self) -> str: ...

    def merge(self, later: ApiCall) -> bool:
        """Take over a later call to the same object, if one request can do both."""
        return False


class Barrier:
    """Opens when a set of calls has ended, and collects the errors of those that were given up."""

    def __init__(self, calls: Iterable[ApiCall]) -> None:
        self.left = 0
        self.errors: list[str] = []
        self.waiting: list[ApiCall] = []
        for call in calls:
            if call.ended:
                self.errors += [call.error] if call.error else []
            else:
                self.left += 1
                call.barriers.append(self)

    @property
    def open(self) -> bool:
        return self.left == 0
