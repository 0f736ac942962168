"""What a claim asks for."""

from __future__ import annotations

import pytest

from muster.scheduler.devices.claim_request import ClaimError, Selector, claim_request
from tests.build.devices import a_claim, a_class, a_request

CLASSES = {"gpu": a_class("gpu", "device.driver == 'x'")}


def test_selectors_of_the_class_come_before_those_of_the_request() -> None:
    claim = a_claim(a_request("r", selectors=[{"cel": {"expression": "true"}}], count=2))
    ((way,),) = claim_request(claim.spec.devices, CLASSES).requests
    assert way.selectors == (Selector("device.driver == 'x'", "gpu", 0), Selector("true", "", 0))
    assert [str(selector) for selector in way.selectors] == [
        "class gpu: selector #0 (device.driver == 'x')",
        "selector #0 (true)",
    ]
    assert (way.name, way.count, way.takes_all) == ("r", 2, False)


def test_equal_specs_ask_for_the_same() -> None:
    one, other = (claim_request(a_claim(a_request("r")).spec.devices, CLASSES) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)


def test_a_constraint_on_a_request_covers_its_alternatives() -> None:
    ways = [{"name": "big", "deviceClassName": "gpu"}, {"name": "small", "deviceClassName": "gpu", "count": 2}]
    claim = a_claim(
        {"name": "r", "firstAvailable": ways},
        constraints=[{"matchAttribute": "a/b", "requests": ["r"]}, {"distinctAttribute": "a/b", "requests": ["r/big"]}],
    )
    read = claim_request(claim.spec.devices, CLASSES)
    match, distinct = read.constraints
    assert match.covers("r/big")
    assert match.covers("r/small")
    assert distinct.covers("r/big")
    assert not distinct.covers("r/small")
    assert read.fewest_devices == 1


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (a_request("r", "other"), "request r: device class other does not exist"),
        (a_request("r", count=33), "number of requested devices 33 exceeds the claim limit of 32"),
        ({"name": "r"}, "request r: exactly one of `exactly` or `firstAvailable` is required"),
    ],
)
def test_a_claim_that_fits_nowhere_says_why(request_: dict[str, object], message: str) -> None:
    with pytest.raises(ClaimError, match=message):
        claim_request(a_claim(request_).spec.devices, CLASSES)
