"""`muster topology`: zones, blocks, racks and nodes, their free seats, and the largest gang that fits at each level."""

from __future__ import annotations

import click

from muster.cli import exits, live, output, source
from muster.scheduler.status.messages import count_text, short_key
from muster.views.topology import GPU, HOSTNAME, Domain, TopologyMap, topology


@click.command(name="topology")
@click.option("--key", "keys", multiple=True, help="A label key that makes a level, widest first; repeatable.")
@click.option("--nodes", "each_node", is_flag=True, help="List every node, too.")
@click.option("--cpu", default=None, help="CPUs of the pod whose seats are counted.")
@click.option("--memory", default=None, help="Its memory.")
@click.option("--gpu", default=None, help="Its GPUs.  [default: a whole node's]")
@click.option("--device-class", default="", help="A DeviceClass of which the pod needs one device.")
@live.option
@source.options
@output.option
def command(
    keys: tuple[str, ...],
    each_node: bool,
    cpu: str | None,
    memory: str | None,
    gpu: str | None,
    device_class: str,
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
        scheduler = source.scheduler(show_progress=not watch)
        return topology(scheduler, keys, asked, each_node=each_node, device_class=device_class)

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
    kept = "".join(f", {number} kept for {name}" for name, number in domain.kept.items())
    if domain.key == HOSTNAME:
        return f"{seats}{kept}"
    return f"{seats} on {domain.free_nodes} of {count_text(domain.nodes, 'node')}{kept}"


def _bar(text: str, cells: int) -> str:
    used, _, total = text.partition("/")
    full = round(cells * int(used) / int(total)) if int(total) else 0
    return "█" * full + "·" * (cells - full)
