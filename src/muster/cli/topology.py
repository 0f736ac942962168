"""`muster topology`: zones, blocks, racks and nodes, their free seats, and the largest gang that fits at each level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec
import numpy as np

from muster.cli import exits, live, output, source
from muster.scheduler.status.messages import count_text, short_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.scheduler.cache.arrays import Bools, Ints
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.cycle.view import SchedulerView

LEVELS = ("topology.kubernetes.io/zone", "topology.muster.dev/block", "topology.muster.dev/rack")
GPU = "nvidia.com/gpu"
HOSTNAME = "kubernetes.io/hostname"


class Domain(msgspec.Struct, frozen=True, rename="camel"):
    """One domain, as `-o json` prints it. `seats` is the largest gang of the asked shape that fits inside."""

    key: str
    value: str  # empty for nodes without the label
    depth: int
    nodes: int
    free_nodes: int
    seats: int
    used: dict[str, str]


class TopologyMap(msgspec.Struct, frozen=True, rename="camel"):
    """The JSON of `muster topology -o json`."""

    pod: dict[str, str]
    total_seats: int
    largest: dict[str, int]
    places: tuple[Domain, ...]


@click.command(name="topology")
@click.option("--key", "keys", multiple=True, help="A label key that makes a level, widest first; repeatable.")
@click.option("--nodes", "each_node", is_flag=True, help="List every node, too.")
@click.option("--cpu", default=None, help="CPUs of the pod whose seats are counted.")
@click.option("--memory", default=None, help="Its memory.")
@click.option("--gpu", default=None, help="Its GPUs.  [default: a whole node's]")
@live.option
@source.options
@output.option
def command(
    keys: tuple[str, ...],
    each_node: bool,
    cpu: str | None,
    memory: str | None,
    gpu: str | None,
    watch: bool,
    source: source.Source,
    output_format: str,
) -> int:
    """Show the topology of the cluster and what fits where.

    Without --cpu, --memory and --gpu the pod whose seats are counted fills a node's GPUs, or takes one CPU.
    """
    asked = {name: amount for name, amount in (("cpu", cpu), ("memory", memory), (GPU, gpu)) if amount is not None}
    _check(asked)

    def found() -> TopologyMap:
        return topology(source.scheduler(show_progress=not watch), keys, asked, each_node=each_node)

    if output_format != "table":
        output.write(found(), output_format, str)
    else:
        live.show(lambda: screen(found(), live.width()), watch)
    return exits.OK


def _check(asked: dict[str, str]) -> None:
    from muster.api import quantity

    for name, amount in asked.items():
        try:
            if quantity.milli(amount) <= 0:
                raise ValueError(amount)
        except ValueError:
            raise click.UsageError(f"{amount!r} is no amount of {name}; for instance: 4, 500m, 64Gi") from None


def topology(
    scheduler: Scheduler, keys: tuple[str, ...] = (), asked: dict[str, str] | None = None, *, each_node: bool = False
) -> TopologyMap:
    """Count seats by domain at every level. A cluster without known levels is shown node by node."""
    view = scheduler.view()
    for key in keys:
        if view.has_nodes and not (view.labels(key) > 0).any():
            raise exits.Failure(f'no node has the label "{key}"', exits.BAD_INPUT)
    levels = list(keys) or [key for key in LEVELS if (view.labels(key) > 0).any()]
    if (each_node or not levels) and HOSTNAME not in levels:
        levels.append(HOSTNAME)
    pod = asked or _default_pod(view)
    seats = view.seats(pod)
    largest: dict[str, int] = {}
    for key in dict.fromkeys([*levels, HOSTNAME]):
        sums = np.bincount(view.labels(key), weights=seats)[1:]
        largest[key] = int(sums.max()) if len(sums) else 0
    domains = tuple(_domains(view, levels, list(pod), 0, view.nodes, seats))
    return TopologyMap(pod, int(seats.sum()), largest, domains)


def _default_pod(view: SchedulerView) -> dict[str, str]:
    amounts = view.allocatable(GPU)
    most = int(amounts.max()) if amounts is not None and len(amounts) else 0
    return {GPU: str(most)} if most else {"cpu": "1"}


def _domains(
    view: SchedulerView, levels: list[str], resources: list[str], depth: int, inside: Bools, seats: Ints
) -> Iterator[Domain]:
    if depth == len(levels):
        return
    key = levels[depth]
    column = view.labels(key)
    found = {int(value): view.label_value(key, int(value)) if value else "" for value in np.unique(column[inside])}
    for value, name in sorted(found.items(), key=lambda item: (not item[1], output.natural(item[1]))):
        here = inside & (column == value)
        free = int((seats[here] > 0).sum())
        yield Domain(key, name, depth, int(here.sum()), free, int(seats[here].sum()), _used(view, resources, here))
        yield from _domains(view, levels, resources, depth + 1, here, seats)


def _used(view: SchedulerView, resources: list[str], here: Bools) -> dict[str, str]:
    """Of the resources that were asked for, how much is in use and how much there is; memory in GiB."""
    used: dict[str, str] = {}
    for name in resources:
        total, requested = view.allocatable(name), view.requested(name)
        if total is not None and requested is not None:
            divisor = {"cpu": 1000, "memory": 1 << 30}.get(name, 1)
            used[name] = f"{int(requested[here].sum()) // divisor}/{int(total[here].sum()) // divisor}"
    return used


def screen(found: TopologyMap, width: int) -> str:
    """The domains as text, levels indented: a bar for what is in use, and the seats that are left."""
    asked = ", ".join(f"{amount} {short_key(name)}" for name, amount in found.pod.items())
    lines = [f"{count_text(found.total_seats, 'free seat')} for pods of {asked}; the largest gang of them"]
    lines += [f"  {_where(key)}: {seats}" for key, seats in found.largest.items()]
    lines.append("")
    names = ["  " * domain.depth + (domain.value or f"(no {short_key(domain.key)})") for domain in found.places]
    column = max((len(name) for name in names), default=4)
    used = [[f"{text} {short_key(resource)}" for resource, text in domain.used.items()] for domain in found.places]
    cells = 12 if width >= 80 else 6
    wide = max((len(text) for texts in used for text in texts), default=0)
    for name, domain, texts in zip(names, found.places, used, strict=True):
        pairs = zip(domain.used.values(), texts, strict=True)
        bars = "  ".join(f"{_bar(amount, cells)} {text.ljust(wide)}" for amount, text in pairs)
        lines.append(live.fit(f"{name.ljust(column)}  {bars}  {_seats(domain)}".rstrip(), width))
    return "\n".join(lines)


def _where(key: str) -> str:
    return "on one node" if key == HOSTNAME else f"in one {short_key(key)}"


def _seats(domain: Domain) -> str:
    seats = count_text(domain.seats, "seat")
    return seats if domain.key == HOSTNAME else f"{seats} on {domain.free_nodes} of {count_text(domain.nodes, 'node')}"


def _bar(text: str, cells: int) -> str:
    used, _, total = text.partition("/")
    full = round(cells * int(used) / int(total)) if int(total) else 0
    return "█" * full + "·" * (cells - full)
