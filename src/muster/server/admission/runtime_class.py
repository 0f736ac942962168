"""RuntimeClasses: a pod that names one gets its overhead, node selector and tolerations."""

from __future__ import annotations

from muster.api.errors import ApiError, forbidden
from muster.server.resources.kind import Obj, Write

_NO_OVERHEAD = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


async def admit_runtime_class(write: Write, new: Obj, old: Obj | None) -> None:
    if write.operation != "CREATE" or write.subresource:
        return
    spec: Obj = new.get("spec") or {}
    name: str = spec.get("runtimeClassName") or ""
    if not name and not spec.get("overhead"):
        return
    found = write.reader.get("runtimeclasses", "node.k8s.io", "", name) if name else {}
    if found is None:
        raise _refuse(write, f'pod rejected: RuntimeClass "{name}" not found')
    _set_overhead(write, spec, (found.get("overhead") or {}).get("podFixed"))
    _schedule(write, spec, found.get("scheduling") or {})


def _set_overhead(write: Write, spec: Obj, overhead: Obj | None) -> None:
    given = spec.get("overhead")
    if given and given != overhead:
        raise _refuse(write, _NO_OVERHEAD if overhead is None else _OTHER_OVERHEAD)
    if overhead is not None:
        spec["overhead"] = dict(overhead)


def _schedule(write: Write, spec: Obj, scheduling: Obj) -> None:
    selector: Obj = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            one, other = f"runtimeClass.scheduling.nodeSelector[{key}]", f"pod.spec.nodeSelector[{key}]"
            raise _refuse(write, f"conflict: {one} = {value}; {other} = {selector[key]}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    present: list[Obj] = spec.get("tolerations") or []
    added = [dict(each) for each in scheduling.get("tolerations") or () if each not in present]
    if added:
        spec["tolerations"] = [*present, *added]


def _refuse(write: Write, why: str) -> ApiError:
    return forbidden("", "pods", write.name, why)
