"""LimitRanges: containers get the requests and limits they lack from the namespace; what exceeds it is refused."""

from __future__ import annotations

from collections.abc import Iterable

from muster.api import quota
from muster.api.errors import forbidden
from muster.api.quantity import render
from muster.api.quota import Amounts
from muster.server.resources.kind import Obj, Write

ANNOTATION = "kubernetes.io/limit-ranger"


async def admit_pod_limits(write: Write, new: Obj, old: Obj | None) -> None:
    if write.operation != "CREATE" or write.subresource:
        return
    ranges = write.reader.list("limitranges", "", write.namespace)
    for each in ranges:
        _set_defaults(new, _items(each))
    errors = [text for each in ranges for text in _pod_errors(new, _items(each))]
    if errors:
        raise forbidden("", "pods", write.name, _joined(errors))


async def admit_claim_limits(write: Write, new: Obj, old: Obj | None) -> None:
    if write.operation == "DELETE" or write.subresource:
        return
    asked = quota.parsed(((new.get("spec") or {}).get("resources") or {}).get("requests"))
    errors: list[str] = []
    for each in write.reader.list("limitranges", "", write.namespace):
        for item in _items(each):
            if item.get("type") != "PersistentVolumeClaim":
                continue
            errors += _minimum("PersistentVolumeClaim", quota.parsed(item.get("min")), asked, {})
            errors += _largest_request("PersistentVolumeClaim", quota.parsed(item.get("max")), asked)
    if errors:
        raise forbidden("", "persistentvolumeclaims", write.name, _joined(errors))


def _items(limit_range: Obj) -> list[Obj]:
    return (limit_range.get("spec") or {}).get("limits") or []


def _joined(errors: list[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"


def _containers(pod: Obj) -> list[tuple[str, Obj]]:
    spec: Obj = pod.get("spec") or {}
    found = [("container", each) for each in spec.get("containers") or ()]
    return found + [("init container", each) for each in spec.get("initContainers") or ()]


def _set_defaults(pod: Obj, items: Iterable[Obj]) -> None:
    said: list[str] = []
    for item in items:
        if item.get("type") != "Container":
            continue
        for noun, container in _containers(pod):
            resources: Obj = container.setdefault("resources", {})
            for key, source, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
                present: Obj = resources.get(key) or {}
                added = {name: amount for name, amount in (item.get(source) or {}).items() if name not in present}
                if added:
                    resources[key] = {**present, **added}
                    said.append(f"{', '.join(sorted(added))} {word} for {noun} {container.get('name')}")
    if said:
        metadata: Obj = pod.setdefault("metadata", {})
        text = f"LimitRanger plugin set: {'; '.join(said)}"
        metadata["annotations"] = {**(metadata.get("annotations") or {}), ANNOTATION: text}


def _pod_errors(pod: Obj, items: Iterable[Obj]) -> list[str]:
    found: list[str] = []
    for item in items:
        if item.get("type") == "Container":
            for _, container in _containers(pod):
                resources: Obj = container.get("resources") or {}
                requests, limits = quota.parsed(resources.get("requests")), quota.parsed(resources.get("limits"))
                found += _errors("Container", item, requests, limits)
        elif item.get("type") == "Pod":
            spec: Obj = pod.get("spec") or {}
            found += _errors("Pod", item, quota.effective(spec, "requests"), quota.effective(spec, "limits"))
    return found


def _errors(kind: str, item: Obj, requests: Amounts, limits: Amounts) -> list[str]:
    found = _minimum(kind, quota.parsed(item.get("min")), requests, limits)
    found += _maximum(kind, quota.parsed(item.get("max")), requests, limits)
    return found + _ratio(kind, quota.parsed(item.get("maxLimitRequestRatio")), requests, limits)


def _minimum(kind: str, bounds: Amounts, requests: Amounts, limits: Amounts) -> list[str]:
    found: list[str] = []
    for name, least in bounds.items():
        said = f"minimum {name} usage per {kind} is {render(least)}"
        if name not in requests:
            found.append(f"{said}.  No request is specified")
        elif requests[name].nanos < least.nanos:
            found.append(f"{said}, but request is {render(requests[name])}")
        elif name in limits and limits[name].nanos < least.nanos:
            found.append(f"{said}, but limit is {render(limits[name])}")
    return found


def _maximum(kind: str, bounds: Amounts, requests: Amounts, limits: Amounts) -> list[str]:
    found: list[str] = []
    for name, most in bounds.items():
        said = f"maximum {name} usage per {kind} is {render(most)}"
        if name not in limits:
            found.append(f"{said}.  No limit is specified")
        elif limits[name].nanos > most.nanos:
            found.append(f"{said}, but limit is {render(limits[name])}")
        elif name in requests and requests[name].nanos > most.nanos:
            found.append(f"{said}, but request is {render(requests[name])}")
    return found


def _largest_request(kind: str, bounds: Amounts, requests: Amounts) -> list[str]:
    return [
        f"maximum {name} usage per {kind} is {render(most)}, but request is {render(requests[name])}"
        for name, most in bounds.items()
        if name in requests and requests[name].nanos > most.nanos
    ]


def _ratio(kind: str, bounds: Amounts, requests: Amounts, limits: Amounts) -> list[str]:
    found: list[str] = []
    for name, most in bounds.items():
        said = f"{name} max limit to request ratio per {kind} is {render(most)}, but"
        request, limit = requests.get(name), limits.get(name)
        if request is None or not request.nanos:
            found.append(f"{said} no request is specified or request is 0")
        elif limit is None or not limit.nanos:
            found.append(f"{said} no limit is specified or limit is 0")
        elif limit.nanos * 10**9 > most.nanos * request.nanos:
            found.append(f"{said} provided ratio is {limit.nanos / request.nanos:f}")
    return found
