"""Zones, blocks, racks and nodes, their free seats, and the largest gang that fits at each level."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from muster.views.failures import ViewFailure
from muster.views.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from muster.scheduler.cache.arrays import Bools, Ints
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.cycle.view import SchedulerView

LEVELS = ("topology.kubernetes.io/zone", "topology.muster.dev/block", "topology.muster.dev/rack")
GPU = "nvidia.com/gpu"
HOSTNAME = "kubernetes.io/hostname"


class Domain(msgspec.Struct, frozen=True, rename="camel"):
    """One domain, as JSON. `seats` is the largest gang of the asked shape that fits inside."""

    key: str
    value: str  # empty for nodes without the label
    depth: int
    nodes: int
    free_nodes: int
    seats: int
    used: dict[str, str]
    kept: dict[str, int]  # seats that are kept inside for groups that wait, by namespace/name


class Amounts(NamedTuple):
    """Of one resource, how much is in use on each node and how much there is, in parts of a unit."""

    name: str
    used: Ints
    total: Ints
    divisor: int


class TopologyMap(msgspec.Struct, frozen=True, rename="camel"):
    """The JSON of `muster topology -o json`."""

    pod: dict[str, str]
    total_seats: int
    largest: dict[str, int]
    places: tuple[Domain, ...]


def topology(
    scheduler: Scheduler,
    keys: tuple[str, ...] = (),
    asked: dict[str, str] | None = None,
    *,
    each_node: bool = False,
    device_class: str = "",
) -> TopologyMap:
    """Count seats by domain at every level. A cluster without known levels is shown node by node.

    With a device class the pod also needs one device of it.
    """
    view = scheduler.view()
    if device_class and device_class not in view.device_classes():
        raise ViewFailure(f'there is no DeviceClass "{device_class}"')
    for key in keys:
        if view.has_nodes and not (view.labels(key) > 0).any():
            raise ViewFailure(f'no node has the label "{key}"')
    levels = list(keys) or levels_of(view)
    if (each_node or not levels) and HOSTNAME not in levels:
        levels.append(HOSTNAME)
    pod = asked or ({"cpu": "1"} if device_class else default_pod(view))
    seats = view.seats(pod)
    resources = _resources(view, list(pod))
    if device_class:
        seats = np.minimum(seats, view.device_seats(device_class))
        pod = {**pod, device_class: "1"}
        there, in_use = view.devices(device_class)
        resources.append(Amounts(device_class, in_use, there, 1))
    largest = largest_gangs(view, levels, seats)
    domains = tuple(_domains(view, levels, resources, 0, view.nodes, seats))
    return TopologyMap(pod, int(seats.sum()), largest, domains)


def levels_of(view: SchedulerView) -> list[str]:
    """The known levels that nodes of this cluster have, widest first."""
    return [key for key in LEVELS if (view.labels(key) > 0).any()]


def largest_gangs(view: SchedulerView, levels: Sequence[str], seats: Ints) -> dict[str, int]:
    """The most seats in one domain of each level, and on one node."""
    largest: dict[str, int] = {}
    for key in dict.fromkeys([*levels, HOSTNAME]):
        sums = np.bincount(view.labels(key), weights=seats)[1:]
        largest[key] = int(sums.max()) if len(sums) else 0
    return largest


def default_pod(view: SchedulerView) -> dict[str, str]:
    """The pod whose seats are counted when none was asked for: it fills a node's GPUs, or takes one CPU."""
    amounts = view.allocatable(GPU)
    most = int(amounts.max()) if amounts is not None and len(amounts) else 0
    return {GPU: str(most)} if most else {"cpu": "1"}


def _domains(
    view: SchedulerView, levels: list[str], resources: list[Amounts], depth: int, inside: Bools, seats: Ints
) -> Iterator[Domain]:
    if depth == len(levels):
        return
    key = levels[depth]
    column = view.labels(key)
    found = {int(value): view.label_value(key, int(value)) if value else "" for value in np.unique(column[inside])}
    for value, name in sorted(found.items(), key=lambda item: (not item[1], natural(item[1]))):
        here = inside & (column == value)
        free = int((seats[here] > 0).sum())
        used, kept = _used(resources, here), _kept(view, key, name)
        yield Domain(key, name, depth, int(here.sum()), free, int(seats[here].sum()), used, kept)
        yield from _domains(view, levels, resources, depth + 1, here, seats)


def _kept(view: SchedulerView, key: str, value: str) -> dict[str, int]:
    """The seats that are kept in a domain for groups that wait or members to come, by the group they are kept for."""
    kept: dict[str, int] = {}
    for reservation in view.reservations():
        seats = sum(view.domain_of(node, key) == value for _, node in reservation.seats)
        if seats:
            kept[f"{reservation.entity.namespace}/{reservation.entity.name}"] = seats
    for seat in view.held_seats():
        if view.domain_of(seat.node, key) == value:
            name = f"{seat.entity.namespace}/{seat.entity.name}"
            kept[name] = kept.get(name, 0) + 1
    return kept


def _resources(view: SchedulerView, names: Sequence[str]) -> list[Amounts]:
    """The resources that were asked for and that some node has; cpu in cores, memory in GiB."""
    found: list[Amounts] = []
    for name in names:
        total, requested = view.allocatable(name), view.requested(name)
        if total is not None and requested is not None:
            found.append(Amounts(name, requested, total, {"cpu": 1000, "memory": 1 << 30}.get(name, 1)))
    return found


def _used(resources: Sequence[Amounts], here: Bools) -> dict[str, str]:
    """Of the resources that were asked for, how much is in use and how much there is."""
    return {
        each.name: f"{int(each.used[here].sum()) // each.divisor}/{int(each.total[here].sum()) // each.divisor}"
        for each in resources
    }
