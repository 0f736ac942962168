"""Updates `metadata.managedFields` on every write, in the version that the client writes.

Writers inside this process name no manager and send no User-Agent: what they create is not tracked until somebody
applies to it.
"""

from __future__ import annotations

from muster.server import codec, metadata
from muster.server.apply import managed
from muster.server.call import Call
from muster.server.resources.kind import Obj


def manager_of(call: Call) -> str:
    request = call.request
    return managed.manager_of(request.arg("fieldManager"), request.headers.get("user-agent", ""))


def write_owners(call: Call, new: Obj, old: Obj | None, now: float) -> list[Obj]:
    """The managedFields of an object about to be created, or put in the place of `old`."""
    request = call.request
    tracked = bool(request.arg("fieldManager")) or "user-agent" in request.headers
    if not tracked and (old is None or "managedFields" not in old["metadata"]):
        return []
    view = call.view
    return managed.update(
        old if old is None or view.direct else codec.to_version(view.kind, view.version, codec.copy(old)),
        new if view.direct else codec.to_version(view.kind, view.version, codec.copy(new)),
        view.schema,
        manager=manager_of(call),
        api_version=view.api_version,
        now=metadata.timestamp(now),
        subresource=call.path.subresource,
        track=tracked,
    )


def set_owners(obj: Obj, entries: list[Obj]) -> None:
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)
