"""The split between an object's spec and its status: each endpoint writes its own half only."""

from __future__ import annotations

from collections.abc import Callable

from muster.server.resources.kind import Obj, Preparer


def keep_status(new: Obj, old: Obj | None, subresource: str) -> None:
    """The main endpoint ignores status (wiped on create, kept on update); /status ignores everything else."""
    if subresource == "status" and old is not None:
        _only_status(new, old)
    elif old is None:
        new.pop("status", None)
    else:
        _restore(new, old, "status")


def initial_status(make: Callable[[Obj], Obj]) -> Preparer:
    """Like `keep_status`, with a status to start from."""

    def prepare(new: Obj, old: Obj | None, subresource: str) -> None:
        keep_status(new, old, subresource)
        if old is None:
            new["status"] = make(new)

    return prepare


def _only_status(new: Obj, old: Obj) -> None:
    """All but the status is the stored object's; labels, annotations and managers may still be written."""
    for key in {*new, *old} - {"status", "metadata", "apiVersion", "kind"}:
        _restore(new, old, key)
    metadata: Obj = new.get("metadata") or {}
    before: Obj = old.get("metadata") or {}
    for key in ("ownerReferences", "finalizers", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
        _restore(metadata, before, key)


def _restore(new: Obj, old: Obj, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)
