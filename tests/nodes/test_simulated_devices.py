"""Devices that simulated nodes publish."""

from __future__ import annotations

import pytest

from muster.api.resources import DEVICE_CLASSES, RESOURCE_SLICES
from muster.nodes.simulated_devices import PCIE_ROOT, SimulatedDriver
from muster.plane.options import NodeOptions, Options
from muster.plane.plane import Plane


def test_devices_of_a_driver_differ_in_index_and_share_roots_in_pairs() -> None:
    (found,) = SimulatedDriver.parse("gpu:4").slices("n1", {})
    assert found["spec"]["nodeName"] == found["spec"]["pool"]["name"] == "n1"
    assert [device["name"] for device in found["spec"]["devices"]] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    roots = [device["attributes"][PCIE_ROOT]["string"] for device in found["spec"]["devices"]]
    assert roots == ["pci0000:00", "pci0000:00", "pci0000:01", "pci0000:01"]


@pytest.mark.parametrize(
    "text", ["gpu", "gpu:", ":3", "gpu:0", "gpu:129", "GPU:1", "-gpu:1", "g_pu:1", "gpu:x", "gpu:²"]
)
def test_what_is_no_driver_says_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as (gpu|8) in gpu:8"):
        SimulatedDriver.parse(text)


async def test_every_simulated_node_publishes_its_devices_once() -> None:
    options = Options(
        https=False, controllers=False, scheduler=False, nodes=NodeOptions(2, devices=("gpu:2",)), freeze=False
    )
    async with Plane(options) as plane:
        slices = (await plane.client.list(RESOURCE_SLICES)).items
        assert sorted(each["spec"]["nodeName"] for each in slices) == ["node-0", "node-1"]
        (found,) = (await plane.client.list(DEVICE_CLASSES)).items
        assert found["metadata"]["name"] == "gpu.example.com"
