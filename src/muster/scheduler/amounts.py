"""What a pod asks of a node: its containers, init containers, sidecars, overhead and pod-level resources as numbers.

App containers and sidecars run together; an init container runs beside the sidecars started before
it. The request is the larger of the two peaks, plus overhead. Pod-level resources replace the sum
of the containers where they are given.
"""

from __future__ import annotations

from muster.api.types import Container, PodSpec, Quantities
from muster.scheduler.columns import amount, counted

Amounts = dict[str, int]

# What a container without a request is taken to use when nodes are compared.
FILLER: Amounts = {"cpu": 100, "memory": 200 * 1024 * 1024}


def requested(spec: PodSpec) -> Amounts:
    """What the pod requests, by resource."""
    return _requested(spec, {})


def assumed(spec: PodSpec) -> tuple[int, int]:
    """cpu and memory with the filler for containers that name none; used in scores only."""
    found = _requested(spec, FILLER)
    return found.get("cpu", 0), found.get("memory", 0)


def _requested(spec: PodSpec, filler: Amounts) -> Amounts:
    running: Amounts = {}
    for container in spec.containers or ():
        _add(running, _of(container, filler))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        wanted = _of(container, filler)
        if container.restart_policy == "Always":
            _add(sidecars, wanted)
            _raise(peak, sidecars)
        else:
            _add(wanted, sidecars)
            _raise(peak, wanted)
    _add(running, sidecars)
    _raise(running, peak)
    for resource, size in _numbers(spec.resources.requests if spec.resources else None).items():
        if resource in ("cpu", "memory") or resource.startswith("hugepages-"):
            running[resource] = size
    _add(running, _numbers(spec.overhead))
    return {resource: size for resource, size in running.items() if counted(resource) and resource != "pods"}


def _of(container: Container, filler: Amounts) -> Amounts:
    wanted = _numbers(container.resources.requests if container.resources else None)
    for resource, size in filler.items():
        wanted.setdefault(resource, size)
    return wanted


def _numbers(quantities: Quantities | None) -> Amounts:
    return {resource: amount(resource, text) for resource, text in (quantities or {}).items()}


def _add(total: Amounts, more: Amounts) -> None:
    for resource, size in more.items():
        total[resource] = total.get(resource, 0) + size


def _raise(total: Amounts, other: Amounts) -> None:
    for resource, size in other.items():
        total[resource] = max(total.get(resource, 0), size)
