"""Holds binds until the devices of their claims are ready: those with binding conditions, which a driver sets to true.

All binds of a plan wait together. When a failure condition is true, when it takes too long, or when a claim is gone
meanwhile, the claims are given back, all binds fail, and the scheduler decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.api.devices import AllocatedDevice, ResourceClaim
from muster.engine.latest_objects import Look
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import REFUSED, BindFailed, Event
from muster.scheduler.interface.keys import ObjectRef

KIND = "ResourceClaim"


class Gate(Protocol):
    """Something that holds binds."""

    @property
    def busy(self) -> bool: ...

    def review(self, now: float) -> None: ...

    def next_due(self) -> float | None: ...


class BindGates:
    """All gates as one."""

    def __init__(self, *gates: Gate) -> None:
        self._gates = gates

    @property
    def busy(self) -> bool:
        """Whether any bind is held."""
        return any(gate.busy for gate in self._gates)

    def review(self, now: float) -> None:
        """Look again: after a change, and when time has passed."""
        for gate in self._gates:
            gate.review(now)

    def next_due(self) -> float | None:
        return min((due for gate in self._gates if (due := gate.next_due()) is not None), default=None)


@dataclass(slots=True)
class HeldBinds:
    """Binds that are released or fail together."""

    binds: Sequence[Bind]
    claims: Sequence[ObjectRef]
    release: Callable[[], None]
    give_back: Callable[[], None]
    deadline: float


class DeviceBindGate:
    """Holds binds back until no device of their claims waits for a condition."""

    def __init__(self, look: Look, report: Callable[[Event], None], timeout: float = 600.0) -> None:
        self._look = look
        self._report = report
        self._timeout = timeout
        self._held: list[HeldBinds] = []

    @property
    def busy(self) -> bool:
        """Whether any bind is held."""
        return bool(self._held)

    def hold(
        self,
        binds: Sequence[Bind],
        claims: Sequence[ObjectRef],
        release: Callable[[], None],
        give_back: Callable[[], None],
        now: float,
    ) -> None:
        """Release the binds once the devices of these claims, which are all written, are ready."""
        self._held.append(HeldBinds(binds, claims, release, give_back, now + self._timeout))
        self.review(now)

    def review(self, now: float) -> None:
        """Look at every claim again: after a change of one, and when time has passed."""
        before, self._held = self._held, []
        for held in before:
            verdict = self._check(held, now)
            if verdict is None:
                self._held.append(held)
            elif not verdict:
                held.release()
            else:
                held.give_back()
                for bind in held.binds:
                    self._report(BindFailed(bind.pod.uid, bind.node, verdict, REFUSED))

    def next_due(self) -> float | None:
        return min((held.deadline for held in self._held), default=None)

    def _check(self, held: HeldBinds, now: float) -> str | None:
        """An empty text when all devices are ready, why they will not be, or None to wait on."""
        waiting = False
        for ref in held.claims:
            claim: ResourceClaim | None = self._look(KIND, ref.namespace, ref.name)
            name = f"{ref.namespace}/{ref.name}"
            if claim is None or claim.metadata.uid != ref.uid:
                return f"the claim {name} is gone"
            if claim.status.allocation is None:
                waiting = True  # our own write is not shown yet
                continue
            for result in claim.status.allocation.devices.results or ():
                true = _true_conditions(claim, result)
                failed = sorted(true & set(result.binding_failure_conditions or ()))
                if failed:
                    return f"the device {result.device} of the claim {name} could not be made ready: {failed[0]}"
                waiting = waiting or not true.issuperset(result.binding_conditions or ())
        if not waiting:
            return ""
        return "devices were not ready in time" if now >= held.deadline else None


def _true_conditions(claim: ResourceClaim, result: AllocatedDevice) -> set[str]:
    """The conditions that a driver says are true of an allocated device."""
    told = (result.driver, result.pool, result.device, result.share_id)
    return {
        condition.type
        for device in claim.status.devices or ()
        if (device.driver, device.pool, device.device, device.share_id) == told
        for condition in device.conditions or ()
        if condition.status == "True"
    }
