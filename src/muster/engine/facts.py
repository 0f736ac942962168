"""What the shell knows about an object it is about to write: the watch's latest form, and our own last write.

Our own write may be newer than what the watch has shown so far, so it is asked first. Only as much is kept
as the next write needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

REMEMBERED = 20_000

Look = Callable[[str, str, str], Any]  # kind, namespace, name -> the projection, or None


class Written(NamedTuple):
    """An object as the server answered our last write to it."""

    version: str
    conditions: dict[str, str]  # type -> status


class Facts:
    """The informers' view, corrected by our own writes."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._written: dict[str, Written] = {}

    def answered(self, obj: dict[str, Any]) -> None:
        """Remember the server's answer to a write."""
        meta = obj.get("metadata") or {}
        conditions = (obj.get("status") or {}).get("conditions") or ()
        if len(self._written) >= REMEMBERED:
            del self._written[next(iter(self._written))]
        statuses = {str(each.get("type")): str(each.get("status")) for each in conditions}
        self._written[str(meta.get("uid"))] = Written(str(meta.get("resourceVersion")), statuses)

    def forget(self, uid: str) -> None:
        self._written.pop(uid, None)

    def status_of(self, kind: str, namespace: str, name: str, uid: str, condition: str) -> str | None:
        """The status of one condition, or None if the object does not have it."""
        written, known = self._views(kind, namespace, name, uid)
        if written is not None:
            return written.conditions.get(condition)
        for each in (known.status.conditions or ()) if known is not None else ():
            if each.type == condition:
                return each.status
        return None

    def version_of(self, kind: str, namespace: str, name: str, uid: str) -> str | None:
        """The newest version of the object that we know of."""
        written, known = self._views(kind, namespace, name, uid)
        if written is not None:
            return written.version or None
        return (known.metadata.resource_version or None) if known is not None else None

    def generation_of(self, kind: str, namespace: str, name: str, uid: str) -> int:
        known = self._known(kind, namespace, name, uid)
        return known.metadata.generation if known is not None else 0

    def _views(self, kind: str, namespace: str, name: str, uid: str) -> tuple[Written | None, Any]:
        """Our own last write if it is newer than what the watch shows, and what the watch shows."""
        written = self._written.get(uid)
        known = self._known(kind, namespace, name, uid)
        if (
            written is not None
            and known is not None
            and _order(known.metadata.resource_version) >= _order(written.version)
        ):
            written = None
        return written, known

    def _known(self, kind: str, namespace: str, name: str, uid: str) -> Any:
        known = self.look(kind, namespace, name)
        return known if known is not None and known.metadata.uid == uid else None


def _order(version: str) -> int:
    return int(version) if version.isdigit() else 0
