"""A cluster at one time as a document: everything a decision depends on, and nothing else.

Only the projections that the scheduler reads are written, so a snapshot holds no Secrets, no environment and no
configuration values by construction. A snapshot gives the same verdict wherever it is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from muster.api.gates import FeatureGates, resolve
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.events import KINDS, CacheSynced, ObjectUpdated
from muster.scheduler.runtime.config import Config

FORMAT = "muster.dev/snapshot"
VERSION = 1
Through = Callable[[Iterable[ObjectUpdated]], Iterable[ObjectUpdated]]


class BadSnapshot(ValueError):
    """The document is no snapshot that this version can open."""


class Snapshot(msgspec.Struct, frozen=True, rename="camel"):
    """The objects by kind, the scheduler names whose pods are scheduled, which fields of groups may change."""

    objects: dict[str, list[Any]]
    schedulers: tuple[str, ...] = ()
    taken_at: str = ""
    changeable: tuple[str, ...] = ("minCount",)
    gates: dict[str, bool] = {}  # of its scheduler, those that are not at their default
    groups_by_label: bool = False  # groups are custom resources, and pods name them by a label
    format: str = FORMAT
    version: int = VERSION

    def __len__(self) -> int:
        return sum(map(len, self.objects.values()))

    def feature_gates(self) -> FeatureGates:
        """The gates that its scheduler runs with."""
        return resolve(self.gates)[0]

    def events(self) -> Iterator[ObjectUpdated]:
        """The objects of the snapshot as events, groups and nodes before pods."""
        for kind in sorted(self.objects, key=lambda kind: (kind == "Pod", kind)):
            for obj in self.objects[kind]:
                yield ObjectUpdated(kind, obj)


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as JSON; the same cluster gives the same bytes."""
    objects = {kind: sorted(found, key=_name) for kind, found in sorted(snapshot.objects.items()) if found}
    return msgspec.json.encode(msgspec.structs.replace(snapshot, objects=objects), order="sorted")


def _name(obj: Any) -> tuple[str, str]:
    return (obj.metadata.namespace, obj.metadata.name)


class _Raw(msgspec.Struct, rename="camel"):
    format: str = ""
    version: int = 0
    objects: dict[str, list[msgspec.Raw]] = {}
    schedulers: tuple[str, ...] = ()
    taken_at: str = ""
    changeable: tuple[str, ...] = ("minCount",)
    gates: dict[str, bool] = {}
    groups_by_label: bool = False


def decode(data: bytes) -> Snapshot:
    """Read a snapshot; BadSnapshot says what is wrong with one that cannot be read."""
    try:
        raw = msgspec.json.decode(data, type=_Raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadSnapshot(f"it is not a snapshot: {error}") from error
    if raw.format != FORMAT:
        raise BadSnapshot(f"it is not a snapshot: its format is {raw.format or 'missing'}, not {FORMAT}")
    if raw.version > VERSION:
        raise BadSnapshot(f"it has version {raw.version}, this muster reads up to {VERSION}: use a newer muster")
    objects: dict[str, list[Any]] = {}
    for kind, found in raw.objects.items():
        if kind in KINDS:
            try:
                objects[kind] = [msgspec.json.decode(each, type=KINDS[kind]) for each in found]
            except msgspec.DecodeError as error:
                raise BadSnapshot(f"a {kind} in it is malformed: {error}") from error
    return Snapshot(objects, raw.schedulers, raw.taken_at, raw.changeable, raw.gates, raw.groups_by_label)


def scheduler_of(snapshot: Snapshot, config: Config, through: Through = iter, *, now: float = 0.0) -> Scheduler:
    """A scheduler that has handled the objects of a snapshot. `through` may count the events as they pass."""
    scheduler = Scheduler(config, seed=config.seed, gates=snapshot.feature_gates())
    for event in through(snapshot.events()):
        scheduler.handle(event, now)
    scheduler.handle(CacheSynced(), now)
    return scheduler
