"""The options that describe simulated nodes: the same wherever a command makes nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from muster.cli.option_groups import Command, grouped

if TYPE_CHECKING:
    from collections.abc import Callable

    from muster.plane.options import NodeOptions
    from muster.scheduler.simulation.snapshot import Snapshot

MOST_NODES = 100_000


@dataclass(frozen=True, slots=True)
class NodeFlags:
    """A number of equal nodes in racks and blocks."""

    count: int
    cpu: str
    memory: str
    gpu: int
    nodes_per_rack: int
    racks_per_block: int
    devices: tuple[str, ...]

    def options(self) -> NodeOptions:
        """The same for a control plane."""
        from muster.plane.options import NodeOptions

        return NodeOptions(
            self.count, self.cpu, self.memory, self.gpu, self.nodes_per_rack, self.racks_per_block, self.devices
        )

    def snapshot(self) -> Snapshot:
        """A cluster of these nodes and nothing else."""
        import msgspec

        from muster.api.devices import DeviceClass, ResourceSlice
        from muster.api.types import Node
        from muster.nodes.inventory import Inventory
        from muster.nodes.simulated_devices import SimulatedDriver
        from muster.scheduler.simulation.snapshot import Snapshot

        inventory = Inventory(
            self.count,
            self.cpu,
            self.memory,
            self.gpu,
            nodes_per_rack=self.nodes_per_rack,
            racks_per_block=self.racks_per_block,
        )
        drivers = [SimulatedDriver.parse(text) for text in self.devices]
        published = (
            driver.slices(name, inventory.labels(index))
            for index, name in enumerate(inventory.names())
            for driver in drivers
        )
        slices = {each["metadata"]["name"]: each for some in published for each in some}.values()
        return Snapshot(
            {
                "Node": [msgspec.convert(inventory.node(i, 0.0), Node) for i in range(self.count)],
                "DeviceClass": [msgspec.convert(driver.device_class(), DeviceClass) for driver in drivers],
                "ResourceSlice": [msgspec.convert(each, ResourceSlice) for each in slices],
            }
        )


def amount(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Check that a value is a Kubernetes quantity and not below zero."""
    from muster.api import quantity

    try:
        negative = quantity.parse(value).nanos < 0
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a quantity such as 4, 500m or 16Gi") from None
    if negative:
        raise click.BadParameter(f"{value} is below zero")
    return value


def devices(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Check that each value is a name and a number, or a file of drivers, each name once."""
    from muster.nodes.simulated_devices import SimulatedDriver

    try:
        found = [text for value in values for text in (_of_file(value) if _is_file(value) else [value])]
        names = [SimulatedDriver.parse(text).name for text in found]
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error)) from None
    if len(set(names)) < len(names):
        raise click.BadParameter("a name occurs twice")
    return tuple(found)


def _is_file(value: str) -> bool:
    return value.endswith((".yaml", ".yml", ".json"))


def _of_file(path: str) -> list[str]:
    from pathlib import Path

    import yaml

    from muster.nodes.simulated_devices import drivers_of_file

    try:
        return drivers_of_file(yaml.safe_load(Path(path).read_text()))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def options(
    default: int = 0, meaning: str = "Ask an empty cluster of so many simulated nodes."
) -> Callable[[Command], Command]:
    """`--nodes N --node-cpu …`, handed to the command as `nodes`."""
    positive = click.IntRange(1)
    return grouped(
        "nodes",
        NodeFlags,
        click.option("--nodes", "count", type=click.IntRange(0, MOST_NODES), default=default, help=meaning),
        click.option("--node-cpu", "cpu", callback=amount, default="64", show_default=True, help="CPUs of a node."),
        click.option(
            "--node-memory", "memory", callback=amount, default="512Gi", show_default=True, help="Memory of a node."
        ),
        click.option("--node-gpu", "gpu", type=click.IntRange(0), default=0, show_default=True, help="GPUs of a node."),
        click.option("--nodes-per-rack", type=positive, default=8, show_default=True, help="Nodes in a rack."),
        click.option("--racks-per-block", type=positive, default=4, show_default=True, help="Racks in a block."),
        click.option(
            "--devices",
            multiple=True,
            metavar="NAME:COUNT|FILE",
            callback=devices,
            help="Devices of a node for claims, such as gpu:8, of class NAME.example.com; or a file of drivers.",
        ),
    )
