"""`muster topology`: zones, blocks, racks and nodes, their free seats, and the largest gang that fits at each level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec
import numpy as np

from muster.cli import exits, live, output, source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.scheduler.cycle import Brain
    from muster.scheduler.shapes import Shape

LEVELS = ("topology.kubernetes.io/zone", "topology.muster.dev/block", "topology.muster.dev/rack")
GPU = "nvidia.com/gpu"


class Place(msgspec.Struct, frozen=True, rename="camel"):
    """One domain, as `-o json` prints it. `seats` is the largest gang of the asked shape that fits inside."""

    key: str
    value: str
    depth: int
    nodes: int
    free_nodes: int
    seats: int
    used: dict[str, str]


class Map(msgspec.Struct, frozen=True, rename="camel"):
    pod: dict[str, str]
    total_seats: int
    largest: dict[str, int]
    places: tuple[Place, ...]


@click.command(name="topology")
@click.option("--key", "keys", multiple=True, help="A label key that makes a level, widest first; repeatable.")
@click.option("--cpu", default=None, help="CPUs of the pod whose seats are counted.")
@click.option("--memory", default=None, help="Its memory.")
@click.option("--gpu", default=None, help="Its GPUs.  [default: a whole node's]")
@live.option
@source.options
@output.option
def command(
    keys: tuple[str, ...],
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

    def found() -> Map:
        return topology(_brain(source), keys, asked)

    if output_format != "table":
        output.write(found(), output_format, str)
    else:
        live.show(lambda: screen(found(), live.width()), watch)
    return exits.OK


def _brain(asked: source.Source) -> Brain:
    return source.brain_for(asked.facts())


def topology(brain: Brain, keys: tuple[str, ...] = (), asked: dict[str, str] | None = None) -> Map:
    """Count seats by domain at every level."""
    cluster = brain.world.cluster
    levels = list(keys) or [key for key in LEVELS if (cluster.labels(key) > 0).any()]
    pod = asked or _default_pod(brain)
    shape = _shape(brain, pod)
    with cluster.trial() as trial:
        seats = trial.seats(shape)
    alive = cluster.alive[: cluster.size]
    largest: dict[str, int] = {}
    for key in levels:
        sums = np.bincount(cluster.labels(key), weights=seats)[1:]
        largest[key] = int(sums.max()) if len(sums) else 0
    places = tuple(_places(brain, levels, 0, alive, seats))
    return Map(pod, int(seats.sum()), largest, places)


def _default_pod(brain: Brain) -> dict[str, str]:
    cluster = brain.world.cluster
    row = cluster.row.get(GPU)
    most = int(cluster.alloc[row].max()) if row is not None and cluster.size else 0
    return {GPU: str(most)} if most else {"cpu": "1"}


def _shape(brain: Brain, requests: dict[str, str]) -> Shape:
    from muster.api.types import Pod

    body: dict[str, Any] = {
        "metadata": {"name": "asked", "namespace": "default", "uid": "asked"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
    }
    profile = next(iter(brain.world.config.profiles.values()))
    return brain.world.cluster.shape(msgspec.convert(body, Pod), profile)


def _places(brain: Brain, levels: list[str], depth: int, inside: Any, seats: Any) -> Iterator[Place]:
    if depth == len(levels):
        return
    cluster, key = brain.world.cluster, levels[depth]
    column = cluster.labels(key)
    values = sorted((cluster.label_value(key, int(v)), int(v)) for v in np.unique(column[inside]) if v)
    for name, value in sorted(values, key=lambda item: _natural(item[0])):
        here = inside & (column == value)
        yield Place(
            key, name, depth, int(here.sum()), int((seats[here] > 0).sum()), int(seats[here].sum()), _used(brain, here)
        )
        yield from _places(brain, levels, depth + 1, here, seats)


def _natural(name: str) -> list[tuple[int, int | str]]:
    """rack-2 before rack-10."""
    import re

    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


def _used(brain: Brain, here: Any) -> dict[str, str]:
    cluster = brain.world.cluster
    shown = [name for name in (GPU, "cpu") if name in cluster.row][:1]
    used: dict[str, str] = {}
    for name in shown:
        row = cluster.row[name]
        divisor = 1000 if name == "cpu" else 1
        used[name] = f"{int(cluster.used[row][here].sum()) // divisor}/{int(cluster.alloc[row][here].sum()) // divisor}"
    return used


def screen(found: Map, width: int) -> str:
    """Levels indented, a bar for what is in use, the seats that are left."""
    asked = ", ".join(f"{amount} {name}" for name, amount in found.pod.items())
    lines = [f"Seats for pods of {asked}: {found.total_seats} in all"]
    lines += [f"  largest gang in one {key.rsplit('/', 1)[-1]}: {seats}" for key, seats in found.largest.items()]
    lines.append("")
    names = ["  " * place.depth + place.value for place in found.places]
    column = max((len(name) for name in names), default=4)
    for name, place in zip(names, found.places, strict=True):
        used = "  ".join(f"{_bar(text)} {text} {resource}" for resource, text in place.used.items())
        seats = f"{place.seats} seats on {place.free_nodes} of {place.nodes} nodes"
        lines.append(live.fit(f"{name.ljust(column)}  {used}  {seats}", width))
    return "\n".join(lines)


def _bar(text: str, cells: int = 12) -> str:
    used, _, total = text.partition("/")
    full = round(cells * int(used) / int(total)) if int(total) else 0
    return "█" * full + "·" * (cells - full)
