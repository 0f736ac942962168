"""Device taints: pods whose devices get a taint with `NoExecute` are deleted once they do not tolerate it any longer.

A taint is in the slice that lists the device, or comes from a DeviceTaintRule. Which tolerations count was recorded in
the claim when it got its devices. Pods that do not run yet are left alone: the scheduler avoids such devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.api.devices import NO_EXECUTE
from muster.api.errors import ApiError
from muster.api.resources import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from muster.client.clock import seconds_of, timestamp
from muster.controllers.controller import Controller
from muster.controllers.objects import JSON, PodView, UnstructuredObject

Key = tuple[str, str]  # namespace and name of a claim
Pool = tuple[str, str]  # driver and name


class DeviceTaintEviction(Controller):
    name = "device-taint-eviction-controller"
    workers = 8

    def setup(self) -> None:
        self._claims = self.watch(RESOURCE_CLAIMS)
        self._slices = self.watch(RESOURCE_SLICES)
        self._rules = self.watch(DEVICE_TAINT_RULES)
        self._pods = self.watch(PODS)
        self._by_pool = self._slices.index("by-pool", _pool_of)
        self._claims.on_change(lambda old, new: self._add(new if new is not None else old))
        self._slices.on_change(self._slice_changed)
        self._rules.on_change(lambda old, new: self._add_all(None))
        self._pods.on_change(self._pod_changed)

    # --- changes -----------------------------------------------------------------------------------

    def _add(self, claim: Any) -> None:
        self.queue.add((claim.metadata.namespace, claim.metadata.name))

    def _add_all(self, pool: Pool | None) -> None:
        """All claims with devices (of one pool)."""
        for claim in self._claims.objects.values():
            if any(pool is None or (each.get("driver"), each.get("pool")) == pool for each in _results(claim)):
                self._add(claim)

    def _slice_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        found = [each for each in (old, new) if each is not None]
        if any(_evicts(each) for each in found):
            for pool in {_pool_of(each) for each in found}:
                self._add_all(pool)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if new is not None and new.spec.node_name and (old is None or not old.spec.node_name):
            for name in _claims_of(new):
                self.queue.add((new.metadata.namespace, name))

    # --- one claim ---------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> float | None:
        claim: UnstructuredObject | None = self._claims.get(*key)
        due = self._due(claim) if claim is not None else None
        if claim is None or due is None:
            return None
        left = due - self.clock.now()
        if left > 0:
            return left
        for pod in list(self._users(claim)):
            await self._evict(pod)
        return None

    def _due(self, claim: UnstructuredObject) -> float | None:
        """When the first device of a claim may not be used any longer; None if none is tainted so."""
        times = [
            until
            for result in _results(claim)
            for taint in self._taints(result)
            if (until := _tolerated_until(taint, result.get("tolerations") or ())) is not None
        ]
        return min(times, default=None)

    def _taints(self, result: JSON) -> Iterator[JSON]:
        """The taints of a device that evict, in the newest slices of its pool and by rules."""
        driver, pool, name = result.get("driver"), result.get("pool"), result.get("device")
        slices: list[UnstructuredObject] = list(self._by_pool.get((driver, pool)))
        newest = max(((each.spec.get("pool") or {}).get("generation") or 0 for each in slices), default=0)
        for each in slices:
            if ((each.spec.get("pool") or {}).get("generation") or 0) == newest:
                for device in each.spec.get("devices") or ():
                    if device.get("name") == name:
                        yield from (taint for taint in device.get("taints") or () if taint.get("effect") == NO_EXECUTE)
        for rule in self._rules.objects.values():
            selector: JSON | None = rule.spec.get("deviceSelector")
            taint: JSON = rule.spec.get("taint") or {}
            told = (("driver", driver), ("pool", pool), ("device", name))
            if selector is None or taint.get("effect") != NO_EXECUTE:
                continue
            if all(selector.get(field) in (None, value) for field, value in told):
                yield taint

    def _users(self, claim: UnstructuredObject) -> Iterator[PodView]:
        """The pods on nodes that use a claim and that it is reserved for, by themselves or by their group."""
        consumers: list[JSON] = claim.status.get("reservedFor") or []
        uids = {each.get("uid") for each in consumers}
        groups = {each.get("name") for each in consumers if each.get("resource") == "podgroups"}
        for pod in self._pods.in_namespace(claim.metadata.namespace):
            group = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None
            if not pod.spec.node_name or pod.finished or pod.going or claim.metadata.name not in _claims_of(pod):
                continue
            if pod.metadata.uid in uids or group in groups:
                yield pod

    async def _evict(self, pod: PodView) -> None:
        new = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": timestamp(self.clock.now()),
        }
        name, namespace = pod.metadata.name, pod.metadata.namespace
        patch = {"status": {"conditions": [new]}}
        try:
            await self.events.normal(PODS, pod.metadata, "DeviceTaintManagerEviction", "Marking for deletion")
            await self.client.patch(PODS, name, patch, namespace, type="strategic", subresource="status")
            await self.client.delete(PODS, name, namespace, uid=pod.metadata.uid)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _results(claim: UnstructuredObject) -> list[JSON]:
    allocation: JSON = claim.status.get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _evicts(found: UnstructuredObject) -> bool:
    """Whether a device of a slice has a taint that evicts: few slices do, so nobody pays for the others."""
    return any(
        taint.get("effect") == NO_EXECUTE
        for device in found.spec.get("devices") or ()
        for taint in device.get("taints") or ()
    )


def _pool_of(found: UnstructuredObject) -> Pool:
    return found.spec.get("driver") or "", (found.spec.get("pool") or {}).get("name") or ""


def _claims_of(pod: PodView) -> list[str]:
    """The names of the claims that a pod uses."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
    names = (entry.resource_claim_name or made.get(entry.name) for entry in pod.spec.resource_claims or ())
    return [name for name in names if name]


def _tolerated_until(taint: JSON, tolerations: list[JSON] | tuple[()]) -> float | None:
    """Until when tolerations allow the use of a device with a taint; None for ever."""
    added = seconds_of(taint.get("timeAdded") or "") or 0.0
    matching = [each for each in tolerations if _matches(each, taint)]
    if not matching:
        return added
    limits = [each["tolerationSeconds"] for each in matching if each.get("tolerationSeconds") is not None]
    if len(limits) < len(matching):
        return None  # one of them has no limit
    return added + max(0, min(limits))


def _matches(toleration: JSON, taint: JSON) -> bool:
    if toleration.get("effect") != NO_EXECUTE or toleration.get("key") not in (None, "", taint.get("key")):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")
