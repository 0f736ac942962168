"""The latest known state of each object: as the watch shows it, and as the server answered our own last write.

Our own write can be newer than what the watch has shown so far, so it is asked first. Only as much of it is kept as
the next API call needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from muster.api.resources import PODS
from muster.client.objects import conditions, metadata
from muster.client.protocol import Obj
from muster.scheduler.interface.keys import ObjectRef

REMEMBERED = 20_000

ObjectKey = tuple[str, str]  # namespace, name
Look = Callable[[str, str, str], Any]  # kind, namespace, name -> the object, or None


class OwnWrite(NamedTuple):
    """An object as the server answered our last write to it."""

    version: str
    conditions: dict[str, str]  # type -> status


class LatestObjects:
    """The objects of all watches, corrected by our own writes."""

    def __init__(self) -> None:
        self._watched: dict[str, dict[ObjectKey, Any]] = {}
        self._written: dict[str, OwnWrite] = {}  # by uid

    def watched(self, kind: str) -> dict[ObjectKey, Any]:
        """The objects of one kind, which the kind's event source keeps up to date."""
        return self._watched.setdefault(kind, {})

    def look(self, kind: str, namespace: str, name: str) -> Any:
        """The object as the watch shows it, or None."""
        objects = self._watched.get(kind)
        return objects.get((namespace, name)) if objects is not None else None

    def is_root(self, group: ObjectRef) -> bool:
        """Whether a group has no parent, as far as is known."""
        known = self.look(group.kind, group.namespace, group.name)
        return getattr(getattr(known, "spec", None), "parent_composite_pod_group_name", None) is None

    def answered(self, obj: Obj) -> None:
        """Remember the server's answer to a write."""
        meta = metadata(obj)
        if len(self._written) >= REMEMBERED:
            del self._written[next(iter(self._written))]
        statuses = {str(each.get("type")): str(each.get("status")) for each in conditions(obj)}
        self._written[str(meta.get("uid"))] = OwnWrite(str(meta.get("resourceVersion")), statuses)

    def forget(self, uid: str) -> None:
        self._written.pop(uid, None)

    def status_of(self, about: ObjectRef, condition: str) -> str | None:
        """The status of one condition, or None if the object does not have it."""
        written, known = self._views(about)
        if written is not None:
            return written.conditions.get(condition)
        for each in (known.status.conditions or ()) if known is not None else ():
            if each.type == condition:
                return each.status
        return None

    def version_of(self, about: ObjectRef) -> str | None:
        """The newest known resource version of the object."""
        written, known = self._views(about)
        if written is not None:
            return written.version or None
        return (known.metadata.resource_version or None) if known is not None else None

    def generation_of(self, about: ObjectRef) -> int:
        known = self._known(about)
        return known.metadata.generation if known is not None else 0

    def _views(self, about: ObjectRef) -> tuple[OwnWrite | None, Any]:
        """Our own last write if it is newer than what the watch shows, and what the watch shows."""
        written = self._written.get(about.uid)
        known = self._known(about)
        if (
            written is not None
            and known is not None
            and _order(known.metadata.resource_version) >= _order(written.version)
        ):
            written = None
        return written, known

    def _known(self, about: ObjectRef) -> Any:
        known = self.look(about.kind, about.namespace, about.name)
        return known if known is not None and known.metadata.uid == about.uid else None


def profile_lookup(latest: LatestObjects, profiles: Collection[str]) -> Callable[[ObjectRef], str]:
    """A function from an object to the profile that schedules it: a pod's own, the first one for everything else."""
    default = next(iter(profiles))

    def profile_of(about: ObjectRef) -> str:
        pod = latest.look(PODS.kind, about.namespace, about.name) if about.kind == PODS.kind else None
        named: str = pod.spec.scheduler_name if pod is not None else ""
        return named if named in profiles else default

    return profile_of


def _order(version: str) -> int:
    return int(version) if version.isdigit() else 0
