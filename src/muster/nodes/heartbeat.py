"""Node leases: one task renews those of all nodes in turn, at a bounded rate however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import LEASES
from muster.client.clock import Clock, micro_timestamp
from muster.client.protocol import Client

NAMESPACE = "kube-node-lease"
_SHORTEST_INTERVAL = 10.0
_RENEWALS_PER_SECOND = 50
_DURATIONS = 4  # renewals that may be missed before a lease runs out
_TICK = 1.0
_AT_ONCE = 32


def interval(nodes: int) -> float:
    """Seconds between two renewals of one node."""
    return max(_SHORTEST_INTERVAL, nodes / _RENEWALS_PER_SECOND)


class Heartbeat:
    """Renews the lease of every node that `powered` returns: (name, uid) pairs."""

    def __init__(self, client: Client, clock: Clock, powered: Callable[[], Sequence[tuple[str, str]]]) -> None:
        self._client = client
        self._clock = clock
        self._powered = powered
        self._renewed: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            await self.beat()
            await self._clock.sleep(_TICK)

    async def beat(self) -> None:
        """Renew the leases that are due, the oldest first, within the rate limit."""
        nodes = self._powered()
        now = self._clock.now()
        every = interval(len(nodes))
        # A renewal in the future was made before the clock was set back.
        due = [each for each in nodes if not 0.0 <= now - self._renewed.get(each[0], 0.0) < every]
        due.sort(key=lambda each: self._renewed.get(each[0], 0.0))
        pace = max(_RENEWALS_PER_SECOND, _AT_ONCE)
        for start in range(0, min(len(due), pace), _AT_ONCE):
            batch = due[start : start + _AT_ONCE]
            await asyncio.gather(*(self._renew(name, uid, every) for name, uid in batch))

    async def now(self, name: str, uid: str) -> None:
        """Renew one lease at once."""
        await self._renew(name, uid, interval(len(self._powered())))

    async def _renew(self, name: str, uid: str, every: float) -> None:
        now = self._clock.now()
        spec: dict[str, Any] = {
            "holderIdentity": name,
            "leaseDurationSeconds": int(every * _DURATIONS),
            "renewTime": micro_timestamp(now),
        }
        self._renewed[name] = now
        try:
            await self._client.patch(LEASES, name, {"spec": spec}, NAMESPACE)
        except ApiError as error:
            if error.code == 404:
                await self._create(name, uid, spec)
        except (ConnectionError, TimeoutError):
            self._renewed.pop(name, None)

    async def _create(self, name: str, uid: str, spec: dict[str, Any]) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        lease = {"metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]}, "spec": spec}
        try:
            await self._client.create(LEASES, lease, NAMESPACE)
        except (ApiError, ConnectionError, TimeoutError):
            self._renewed.pop(name, None)  # the next beat tries again
