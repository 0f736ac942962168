"""`status.allocation`, as drivers and kubelets read it."""

from __future__ import annotations

from itertools import count
from typing import Any

from muster.api.devices import ResourceClaim
from muster.scheduler.devices.allocation_result import allocation_of
from muster.scheduler.devices.allocator import Allocated, allocate
from muster.scheduler.devices.claim_request import claim_request
from muster.scheduler.devices.pools import Pools
from muster.scheduler.devices.usage import DeviceUsage
from muster.scheduler.placement.budget import Budget
from tests.build.devices import DRIVER, a_claim, a_class, a_node, a_request, a_slice

OPAQUE = {"opaque": {"driver": DRIVER, "parameters": {"mode": "fast"}}}
CLASSES = {"gpu": a_class("gpu"), "tuned": a_class("tuned", config=[OPAQUE])}


def allocation(claim: ResourceClaim, *slices: Any) -> dict[str, Any]:
    pools = Pools()
    for slice_ in slices:
        pools.set_slice(slice_)
    request = claim_request(claim.spec.devices, CLASSES)
    outcome = allocate([request], pools.at(a_node("n", rack="r1")), DeviceUsage(), lambda *_: True, Budget(1000))
    assert isinstance(outcome, Allocated)
    numbers = count(1)
    return allocation_of(outcome.claims[0], claim.spec.devices, CLASSES, "n", lambda: f"share-{next(numbers)}")


def test_a_device_of_the_node_pins_the_claim_to_it() -> None:
    found = allocation(
        a_claim(a_request("r", tolerations=[{"key": "k", "operator": "Exists"}])), a_slice("s", [{"name": "d"}])
    )
    assert found == {
        "devices": {
            "results": [
                {
                    "request": "r",
                    "driver": DRIVER,
                    "pool": "s",
                    "device": "d",
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
        },
    }


def selecting(key: str, value: str) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}


def test_devices_of_several_nodes_merge_their_selectors() -> None:
    same = [a_slice(name, [{"name": "d"}], nodeSelector=selecting("rack", "r1")) for name in ("a", "b")]
    found = allocation(a_claim(a_request("r", count=2)), *same)
    assert found["nodeSelector"] == selecting("rack", "r1")
    everywhere = allocation(a_claim(a_request("r")), a_slice("s", [{"name": "d"}], allNodes=True))
    assert "nodeSelector" not in everywhere
    bound = allocation(a_claim(a_request("r")), a_slice("s", [{"name": "d", "bindsToNode": True}], allNodes=True))
    assert bound["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n"]


def test_shares_say_what_they_consume() -> None:
    device = {"name": "d", "capacity": {"memory": {"value": "16Gi"}}, "allowMultipleAllocations": True}
    claim = a_claim(a_request("r", count=2, capacity={"requests": {"memory": "4Gi"}}))
    results = allocation(claim, a_slice("s", [device]))["devices"]["results"]
    assert [(found["shareID"], found["consumedCapacity"]) for found in results] == [
        ("share-1", {f"{DRIVER}/memory": "4Gi"}),
        ("share-2", {f"{DRIVER}/memory": "4Gi"}),
    ]


def test_configurations_of_classes_come_first_and_only_those_that_concern_the_choice() -> None:
    slices = a_slice("s", [{"name": "d"}, {"name": "e"}])
    other = {"requests": ["a"], "opaque": {"driver": DRIVER, "parameters": {}}}
    claim = a_claim(a_request("a"), a_request("b", "tuned"), config=[other, OPAQUE, other | {"requests": ["gone"]}])
    assert allocation(claim, slices)["devices"]["config"] == [
        {"source": "FromClass", "requests": ["b"], **OPAQUE},
        {"source": "FromClaim", "requests": ["a"], "opaque": other["opaque"]},
        {"source": "FromClaim", **OPAQUE},
    ]
    alone = a_claim(a_request("b", "tuned"))
    assert allocation(alone, slices)["devices"]["config"] == [{"source": "FromClass", **OPAQUE}]


def test_access_for_administration_and_binding_conditions_are_recorded() -> None:
    device = {"name": "d", "bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    (result,) = allocation(a_claim(a_request("r", adminAccess=True)), a_slice("s", [device]))["devices"]["results"]
    assert result["adminAccess"] is True
    assert (result["bindingConditions"], result["bindingFailureConditions"]) == (["Ready"], ["Failed"])


def test_a_claim_without_requests_is_allocated_with_nothing() -> None:
    assert allocation(a_claim()) == {}
