"""Selectors in the language that device classes and claims use."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.devices.allocator import SelectorError
from muster.scheduler.devices.claim_request import Selector
from muster.scheduler.devices.device import Device
from muster.scheduler.devices.pools import Pools
from muster.scheduler.devices.selectors import DeviceSelectors
from tests.build.devices import a_node, a_slice

GPU: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "h100"},
        "index": {"int": 3},
        "healthy": {"bool": True},
        "driverVersion": {"version": "12.4.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:01"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
}
OWN = "device.attributes['gpu.example.com']"


def device(**fields: Any) -> Device:
    pools = Pools()
    pools.set_slice(a_slice("s", [GPU | fields]))
    return pools.at(a_node())[0].devices[0]


def matches(expression: str, **fields: Any) -> bool:
    return DeviceSelectors()(Selector(expression, "", 0), device(**fields))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("device.driver == 'gpu.example.com'", True),
        (f"{OWN}.model == 'h100' && {OWN}.index < 4", True),
        (f"{OWN}.healthy", True),
        (f"{OWN}.driverVersion.isGreaterThan(semver('12.3.9'))", True),
        (f"{OWN}.driverVersion.major() == 11", False),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) == 0", True),
        ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('100G'))", False),
        ("device.attributes['resource.kubernetes.io'].pcieRoot.startsWith('pci0000')", True),
        ("'other.example.com' in device.attributes", False),
        ("has(device.attributes['other.example.com'].model)", False),
        ("device.attributes['other.example.com'].?model.orValue('none') == 'none'", True),
        (f"{OWN}.?cuda.orValue(true)", True),
        ("device.allowMultipleAllocations", False),
        ("cel.bind(own, device.attributes['gpu.example.com'], own.model in ['a100', 'h100'])", True),
    ],
)
def test_what_a_selector_can_ask(expression: str, expected: bool) -> None:
    assert matches(expression) is expected


def test_a_shareable_device_says_so() -> None:
    assert matches("device.allowMultipleAllocations", allowMultipleAllocations=True)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{OWN}.cuda == 1", r"CEL runtime error: no such key: cuda; consider using CEL optional chaining"),
        (f"{OWN}.model", r"CEL runtime error: must evaluate to bool"),
        ("device.speed > 1", r"CEL compile error: .*undefined field 'speed'"),
        ("device.driver ==", r"CEL compile error"),
        ("1 + 1", r"CEL compile error: must evaluate to bool"),
    ],
)
def test_an_error_names_the_selector_the_device_and_the_reason(expression: str, message: str) -> None:
    with pytest.raises(SelectorError, match=rf"(?s)^selector #0 \(.*\) on device gpu.example.com/s/gpu-0: {message}"):
        matches(expression)


def test_a_selector_is_evaluated_once_for_devices_that_look_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools()
    same = {key: value for key, value in GPU.items() if key != "name"}
    pools.set_slice(a_slice("s", [{"name": f"gpu-{number}", **same} for number in range(8)]))
    selectors, asked = DeviceSelectors(), []
    evaluate = selectors._evaluate
    monkeypatch.setattr(
        selectors, "_evaluate", lambda selector, found: asked.append(found) or evaluate(selector, found)
    )
    for found in pools.at(a_node())[0].devices:
        assert selectors(Selector("device.driver.startsWith('gpu')", "", 0), found)
    assert len(asked) == 1
