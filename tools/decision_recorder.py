"""Hashes what schedulers decide, so that two versions of the code can be compared.

`Recorder.install` wraps the scheduler class and the planner's entry point wherever they are imported. While a
`Recording` is open, every event, every scheduling cycle with its decisions and every verdict goes into a hash. What is
hashed contains no name of a Python class that a renaming changes: decisions and events are encoded with their log tags,
verdicts as plain lists of their values. The names below are tried in order, so that one file serves both versions of
the code.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

SCHEDULER = (
    ("muster.scheduler.cycle.scheduler", "Scheduler"),
    ("muster.scheduler.cycle.scheduler", "Brain"),
    ("muster.scheduler.cycle", "Scheduler"),
    ("muster.scheduler.cycle", "Brain"),
)
PLAN = (("muster.scheduler.planning.plan", "plan"), ("muster.scheduler.planning.planner", "plan"))
FIRST_SLICE = (("muster.scheduler.planning.plan", "plan_first_slice"), *PLAN)
TRIAL = (("muster.scheduler.runtime.trial", "Trial"), ("muster.scheduler.trial", "Trial"))

Entry = dict[str, int | str]

_decisions = msgspec.json.Encoder()
_events = msgspec.json.Encoder(enc_hook=lambda value: f"not encodable: {type(value).__name__}", order="deterministic")
_values = msgspec.json.Encoder()


def find(places: tuple[tuple[str, str], ...]) -> Any:
    """The object at the first of these places (module, name) that exists."""
    for module_name, name in places:
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if not (error.name and f"{module_name}.".startswith(f"{error.name}.")):
                raise
            continue
        if hasattr(module, name):
            return getattr(module, name)
    raise LookupError(f"none of these exists: {', '.join('.'.join(place) for place in places)}")


def plain(value: Any) -> Any:
    """A value as lists, numbers and strings, without the names of classes and fields."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, msgspec.Struct):
        return [plain(getattr(value, name)) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return sorted(([plain(key), plain(held)] for key, held in value.items()), key=repr)
    if isinstance(value, set | frozenset):
        return sorted((plain(each) for each in value), key=repr)
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # numpy
        return value.tolist()
    raise TypeError(f"cannot compare a {type(value).__name__}")


class Recording:
    """Counts and hashes of what the schedulers of one test or one benchmark did."""

    def __init__(self) -> None:
        self.schedulers = self.events = self.turns = self.decisions = self.plans = self.choices = 0
        self._numbers: dict[int, int] = {}  # id of a scheduler -> its number in order of creation
        self._inputs, self._outputs = hashlib.sha256(), hashlib.sha256()
        self._search, self._verdicts = hashlib.sha256(), hashlib.sha256()

    @property
    def empty(self) -> bool:
        return not (self.schedulers or self.plans or self.choices)

    def result(self) -> Entry:
        """`hash` stands for the decisions, `inputs` for the events, `search` and `verdicts` for the calls of `plan`."""
        return {
            "schedulers": self.schedulers,
            "events": self.events,
            "turns": self.turns,
            "decisions": self.decisions,
            "plans": self.plans,
            "choices": self.choices,
            "inputs": self._inputs.hexdigest(),
            "hash": self._outputs.hexdigest(),
            "search": self._search.hexdigest(),
            "verdicts": self._verdicts.hexdigest(),
        }

    def created(self, scheduler: object) -> None:
        # An id is used again after its owner is gone; the new owner is announced here before it does anything.
        self._numbers[id(scheduler)] = self.schedulers
        self.schedulers += 1

    def heard(self, scheduler: object, event: Any, now: float) -> None:
        self.events += 1
        self._inputs.update(self._head(scheduler, now) + _events.encode(event) + b"\n")

    def decided(self, scheduler: object, now: float, decisions: list[Any]) -> None:
        self.turns += 1
        self.decisions += len(decisions)
        self._outputs.update(self._head(scheduler, now) + _decisions.encode(decisions) + b"\n")

    def planned(self, budget: Any, before: int, verdict: Any) -> None:
        """One call of `plan`: `search` has what came out and the steps, `verdicts` all that the verdict says."""
        self.plans += 1
        kind, seats = type(verdict).__name__, _seats(verdict)
        self._search.update(_values.encode([kind, budget.limit, budget.spent - before, seats]) + b"\n")
        proof = type(verdict.proof).__name__ if hasattr(verdict, "proof") else ""
        self._verdicts.update(_values.encode([kind, proof, plain(verdict)]) + b"\n")

    def chose(self, method: str, node: Any) -> None:
        """What a trial answered to the question for the best node or nodes."""
        self.choices += 1
        self._outputs.update(_values.encode([method, plain(node)]) + b"\n")

    def _head(self, scheduler: object, now: float) -> bytes:
        return f"{self._numbers.get(id(scheduler), -1)} {float(now)!r} ".encode()


def _seats(verdict: Any) -> list[Any]:
    """Pod and node of each assignment: the first field of `Placed`, whatever it is called."""
    if type(verdict).__name__ != "Placed":
        return []
    seats = getattr(verdict, dataclasses.fields(verdict)[0].name)
    return [plain(seat)[:2] for seat in seats]


class Recorder:
    """Wraps the code under test and passes what it does to the open recording."""

    def __init__(self) -> None:
        self._open: Recording | None = None
        self._undo: list[tuple[Any, str, Any]] = []
        self._inside = False

    def install(self, *, trials: bool = False) -> None:
        """Wrap schedulers and `plan`; with `trials` also the choice of nodes, which slows all planning down."""
        import muster.scheduler

        for found in pkgutil.walk_packages(muster.scheduler.__path__, "muster.scheduler."):
            importlib.import_module(found.name)
        self._wrap_scheduler(find(SCHEDULER))
        for plan in dict.fromkeys((find(PLAN), find(FIRST_SLICE))):
            self._wrap_plan(plan)
        if trials:
            trial = find(TRIAL)
            for name in ("best", "place_many"):
                self._replace(trial, name, self._watched_choice(name, getattr(trial, name)))

    def uninstall(self) -> None:
        while self._undo:
            owner, name, value = self._undo.pop()
            setattr(owner, name, value)

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        outer, self._open = self._open, Recording()
        try:
            yield self._open
        finally:
            self._open = outer

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _wrap_scheduler(self, scheduler: Any) -> None:
        init, handle, next_ = scheduler.__init__, scheduler.handle, scheduler.next

        @functools.wraps(init)
        def watched_init(this: Any, *args: Any, **kwargs: Any) -> None:
            if self._open is not None:
                self._open.created(this)
            init(this, *args, **kwargs)

        @functools.wraps(handle)
        def watched_handle(this: Any, event: Any, now: float) -> None:
            if self._open is not None:
                self._open.heard(this, event, now)
            handle(this, event, now)

        @functools.wraps(next_)
        def watched_next(this: Any, now: float) -> list[Any]:
            decisions = next_(this, now)
            if self._open is not None:
                self._open.decided(this, now, decisions)
            return decisions

        self._replace(scheduler, "__init__", watched_init)
        self._replace(scheduler, "handle", watched_handle)
        self._replace(scheduler, "next", watched_next)

    def _wrap_plan(self, plan: Callable[..., Any]) -> None:
        @functools.wraps(plan)
        def watched_plan(*args: Any, **kwargs: Any) -> Any:
            if self._open is None:
                return plan(*args, **kwargs)
            budget = next(each for each in (*args, *kwargs.values()) if hasattr(each, "spent"))
            before = budget.spent
            verdict = plan(*args, **kwargs)
            paused = type(verdict).__name__ == "PausedSearch"  # its verdict shows in the decisions of a later cycle
            self._open.planned(budget, before, None if paused else verdict)
            return verdict

        for module in list(sys.modules.values()):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if value is plan:
                    self._replace(module, name, watched_plan)

    def _watched_choice(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._open is None or self._inside:
                return method(*args, **kwargs)
            self._inside = True
            try:
                found = method(*args, **kwargs)
            finally:
                self._inside = False
            self._open.chose(name, found)
            return found

        return watched
