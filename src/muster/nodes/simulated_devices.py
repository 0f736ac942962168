"""Simulated device drivers: what `muster up --devices gpu:8` publishes for the simulated nodes.

A driver called `gpu.example.com` with a device class of the same name has so many devices on every node, alike but for
their index and the PCIe root that they share in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.api.resources import DEVICE_CLASSES, RESOURCE_SLICES

DOMAIN = "example.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
MOST_DEVICES = 128  # in one slice

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SimulatedDriver:
    """So many devices of one name on every simulated node."""

    name: str
    count: int

    @property
    def driver(self) -> str:
        return f"{self.name}.{DOMAIN}"

    @staticmethod
    def parse(text: str) -> SimulatedDriver:
        """`gpu:8`. Raises ValueError for anything else."""
        name, _, number = text.partition(":")
        valid = name.isascii() and name.replace("-", "a").isalnum() and name == name.lower() and len(name) <= 40
        if not valid or name.startswith("-") or name.endswith("-"):
            raise ValueError(f"{text!r} does not begin with a name in lower case, such as gpu in gpu:8")
        if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= MOST_DEVICES:
            raise ValueError(
                f"{text!r} does not end with a number of devices from 1 to {MOST_DEVICES}, such as 8 in gpu:8"
            )
        return SimulatedDriver(name, int(number))

    def device_class(self) -> Obj:
        """The class that selects the devices of this driver."""
        return {
            "apiVersion": DEVICE_CLASSES.api_version,
            "kind": DEVICE_CLASSES.kind,
            "metadata": {"name": self.driver},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{self.driver}"'}}]},
        }

    def slice(self, node: str) -> Obj:
        """The devices of one node."""
        return {
            "apiVersion": RESOURCE_SLICES.api_version,
            "kind": RESOURCE_SLICES.kind,
            "metadata": {"name": f"{node}-{self.driver}"},
            "spec": {
                "driver": self.driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [self._device(index) for index in range(self.count)],
            },
        }

    def _device(self, index: int) -> Obj:
        return {
            "name": f"{self.name}-{index}",
            "attributes": {
                "index": {"int": index},
                "model": {"string": f"simulated-{self.name}"},
                "driverVersion": {"version": "1.0.0"},
                PCIE_ROOT: {"string": f"pci0000:{index // 2:02x}"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
