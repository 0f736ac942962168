"""What a claim asks for, read from its spec and the device classes that it names.

Equal values ask for the same, whatever the claims are called, so results can be kept for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from muster.api import quantity
from muster.api.devices import (
    ALL,
    MOST_RESULTS,
    CapacityRequirements,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
)

_SHOWN = 120  # characters of an expression that messages repeat


class ClaimError(Exception):
    """A claim that can be allocated nowhere, because of the claim or its classes."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A CEL expression over one device, and where it is written."""

    expression: str
    device_class: str  # empty: in the request itself
    position: int

    def __str__(self) -> str:
        """Where it is written, and what, as messages say it."""
        where = f"class {self.device_class}: " if self.device_class else ""
        text = " ".join(self.expression.split())
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return f"{where}selector #{self.position} ({shown})"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to satisfy a request. `count` 0: all matching devices."""

    name: str  # "request" or "request/subrequest"
    device_class: str
    selectors: tuple[Selector, ...]
    count: int
    admin_access: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: tuple[tuple[str, int], ...]
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        # They are keys of what is remembered, and asked for often: worked out once.
        told = (self.name, self.device_class, self.selectors, self.count, self.admin_access, self.capacity)
        object.__setattr__(self, "_hash", hash(told))

    def __hash__(self) -> int:
        return self._hash

    @property
    def takes_all(self) -> bool:
        return self.count == 0


@dataclass(frozen=True, slots=True)
class Constraint:
    """Devices of some requests (None: of all) have the same value of an attribute, or all different ones."""

    attribute: str
    distinct: bool
    requests: frozenset[str] | None

    def covers(self, alternative: str) -> bool:
        return self.requests is None or alternative in self.requests or alternative.partition("/")[0] in self.requests


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Requests, each with its alternatives in order of preference, and the constraints on what they get."""

    requests: tuple[tuple[Alternative, ...], ...]
    constraints: tuple[Constraint, ...]
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.requests, self.constraints)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def ways(self) -> Iterator[Alternative]:
        """All alternatives of all requests."""
        return (way for ways in self.requests for way in ways)

    @property
    def fewest_devices(self) -> int:
        return sum(min(max(1, way.count) for way in ways) for ways in self.requests)


def claim_request(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> ClaimRequest:
    """Raises ClaimError if it can be allocated nowhere."""
    requests: list[tuple[Alternative, ...]] = []
    for request in claim.requests or ():
        if request.exactly is not None:
            requests.append((_alternative(request.name, request.name, request.exactly, classes),))
            continue
        ways = request.first_available or ()
        if not ways:
            raise ClaimError(f"request {request.name}: exactly one of `exactly` or `firstAvailable` is required")
        requests.append(tuple(_alternative(request.name, f"{request.name}/{way.name}", way, classes) for way in ways))
    read = ClaimRequest(tuple(requests), tuple(_constraint(found) for found in claim.constraints or ()))
    if read.fewest_devices > MOST_RESULTS:
        raise ClaimError(f"number of requested devices {read.fewest_devices} exceeds the claim limit of {MOST_RESULTS}")
    return read


def _alternative(
    request: str, name: str, exact: ExactDeviceRequest | DeviceSubRequest, classes: Mapping[str, DeviceClass]
) -> Alternative:
    found = classes.get(exact.device_class_name)
    if found is None:
        raise ClaimError(f"request {request}: device class {exact.device_class_name} does not exist")
    return Alternative(
        name=name,
        device_class=exact.device_class_name,
        selectors=(*_selectors(found.spec.selectors, exact.device_class_name), *_selectors(exact.selectors, "")),
        count=0 if exact.allocation_mode == ALL else max(1, exact.count),
        admin_access=isinstance(exact, ExactDeviceRequest) and bool(exact.admin_access),
        tolerations=exact.tolerations or (),
        capacity=_capacity(exact.capacity),
    )


def _selectors(selectors: tuple[DeviceSelector, ...] | None, device_class: str) -> tuple[Selector, ...]:
    return tuple(
        Selector(found.cel.expression if found.cel is not None else "false", device_class, position)
        for position, found in enumerate(selectors or ())
    )


def _capacity(requirements: CapacityRequirements | None) -> tuple[tuple[str, int], ...]:
    requests = (requirements.requests if requirements is not None else None) or {}
    return tuple(sorted((name, quantity.parse(amount).nanos) for name, amount in requests.items()))


def _constraint(constraint: DeviceConstraint) -> Constraint:
    requests = frozenset(constraint.requests) if constraint.requests else None
    if constraint.match_attribute is not None:
        return Constraint(constraint.match_attribute, False, requests)
    if constraint.distinct_attribute is not None:
        return Constraint(constraint.distinct_attribute, True, requests)
    raise ClaimError('exactly one of "matchAttribute" or "distinctAttribute" is required')
