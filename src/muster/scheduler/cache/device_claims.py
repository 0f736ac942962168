"""Resource claims and device classes, and what the claims of a pod ask for."""

from __future__ import annotations

from typing import NamedTuple

from muster.api.devices import DeviceClass, ResourceClaim
from muster.api.types import Pod, PodResourceClaim
from muster.scheduler.devices.claim_request import ClaimError, ClaimRequest, claim_request
from muster.scheduler.devices.device import DeviceId

ClaimKey = tuple[str, str]  # namespace and name


class Needs(NamedTuple):
    """What a pod needs of devices: for claims of its own, and by claims that others use too or that have theirs.

    With a `fault` the pod fits nowhere.
    """

    own: tuple[ClaimRequest, ...] = ()
    claims: tuple[ClaimKey, ...] = ()
    fault: str = ""


class DeviceClaims:
    """Claims and classes by name. `users` are the uids of pods that name a claim."""

    def __init__(self) -> None:
        self.claims: dict[ClaimKey, ResourceClaim] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.users: dict[ClaimKey, set[str]] = {}
        self.holders: dict[DeviceId, set[ClaimKey]] = {}  # claims that have a device, as a whole or in part
        self._named: dict[str, tuple[ClaimKey, ...]] = {}  # by uid of the pod
        self._requests: dict[ClaimKey, ClaimRequest] = {}
        self._equal: dict[ClaimRequest, ClaimRequest] = {}  # one object for all that ask for the same

    def put(self, key: ClaimKey, claim: ResourceClaim | None) -> ResourceClaim | None:
        """Set a claim, or remove it; what it was before."""
        old = self.claims.pop(key, None)
        if old is not None and (claim is None or claim.spec != old.spec):
            self._requests.pop(key, None)
        for device in held_devices(old):
            self.holders[device].discard(key)
            if not self.holders[device]:
                del self.holders[device]
        if claim is not None:
            self.claims[key] = claim
        for device in held_devices(claim):
            self.holders.setdefault(device, set()).add(key)
        return old

    def put_class(self, name: str, device_class: DeviceClass | None) -> bool:
        """Set a class, or remove it; whether that can change anything."""
        old = self.classes.pop(name, None)
        if device_class is not None:
            self.classes[name] = device_class
        if (old.spec if old is not None else None) == (device_class.spec if device_class is not None else None):
            return False
        self._requests.clear()
        self._equal.clear()
        return True

    # --- pods that use claims ----------------------------------------------------------------------

    def set_user(self, pod: Pod) -> None:
        """Remember which claims a pod names."""
        uid = pod.metadata.uid
        named = tuple(key for _, key in claim_keys(pod) if key is not None)
        if named == self._named.get(uid, ()):
            return
        self.remove_user(uid)
        if named:
            self._named[uid] = named
        for key in named:
            self.users.setdefault(key, set()).add(uid)

    def holding(self, pod: Pod) -> list[ClaimKey]:
        """The claims with devices that are reserved for a pod."""
        return [
            key
            for _, key in claim_keys(pod)
            if key in self.claims
            and any(found.uid == pod.metadata.uid for found in self.claims[key].status.reserved_for or ())
        ]

    def remove_user(self, uid: str) -> None:
        for key in self._named.pop(uid, ()):
            users = self.users[key]
            users.discard(uid)
            if not users:
                del self.users[key]

    # --- what a pod asks for -----------------------------------------------------------------------

    def request(self, key: ClaimKey) -> ClaimRequest:
        """What a claim asks for. Raises ClaimError if it can be allocated nowhere."""
        found = self._requests.get(key)
        if found is None:
            found = claim_request(self.claims[key].spec.devices, self.classes)
            found = self._requests[key] = self._equal.setdefault(found, found)
        return found

    def needs(self, pod: Pod) -> Needs | None:
        """What the claims of a pod ask for; None if it has none."""
        if not pod.spec.resource_claims:
            return None
        own: list[ClaimRequest] = []
        shared: list[ClaimKey] = []
        for entry, key in claim_keys(pod):
            if key is None:
                if not _needs_no_claim(pod, entry):
                    template = f'from the ResourceClaimTemplate "{entry.resource_claim_template_name}"'
                    return Needs(fault=f'the ResourceClaim for "{entry.name}" has not been created yet {template}')
                continue
            fault = self._fault(pod, entry, key)
            if fault:
                return Needs(fault=fault)
            try:
                if self.claims[key].status.allocation is not None:
                    shared.append(key)
                elif self._belongs_to(pod, key):
                    own.append(self.request(key))
                else:
                    self.request(key)
                    shared.append(key)
            except ClaimError as error:
                return Needs(fault=f"claim {key[0]}/{key[1]}: {error}")
        return Needs(tuple(own), tuple(shared))

    def own_claims(self, pod: Pod) -> list[ClaimKey]:
        """The claims without devices that only this pod uses, in the order of `Needs.own`."""
        return [key for _, key in self._own(pod)]

    def own_entries(self, pod: Pod) -> list[PodResourceClaim]:
        """The entries of the pod that stand for these claims."""
        return [entry for entry, _ in self._own(pod)]

    def _own(self, pod: Pod) -> list[tuple[PodResourceClaim, ClaimKey]]:
        return [
            (entry, key)
            for entry, key in claim_keys(pod)
            if key in self.claims and self.claims[key].status.allocation is None and self._belongs_to(pod, key)
        ]

    def _fault(self, pod: Pod, entry: PodResourceClaim, key: ClaimKey) -> str:
        claim = self.claims.get(key)
        if claim is None:
            return f'resourceclaim "{key[1]}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'resourceclaim "{key[1]}" is being deleted'
        if entry.resource_claim_template_name is not None and not self._made_for(pod, claim):
            who = f"{pod.metadata.namespace}/{pod.metadata.name}"
            return f"ResourceClaim {key[0]}/{key[1]} was not created for Pod {who} (Pod is not owner)"
        return ""

    def _belongs_to(self, pod: Pod, key: ClaimKey) -> bool:
        owners = self.claims[key].metadata.owner_references or ()
        return any(owner.controller and owner.uid == pod.metadata.uid for owner in owners)

    def _made_for(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Whether a claim from a template was made for the pod, or for its group."""
        group = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None
        return any(
            owner.uid == pod.metadata.uid or (owner.kind == "PodGroup" and owner.name == group)
            for owner in claim.metadata.owner_references or ()
            if owner.controller
        )


def held_devices(claim: ResourceClaim | None) -> set[DeviceId]:
    """The devices of a claim, without those that it only administers."""
    allocation = claim.status.allocation if claim is not None else None
    results = (allocation.devices.results if allocation is not None else None) or ()
    return {DeviceId(each.driver, each.pool, each.device) for each in results if not each.admin_access}


def claim_keys(pod: Pod) -> list[tuple[PodResourceClaim, ClaimKey | None]]:
    """The entries of a pod with the claims they stand for; None where none was made for the entry yet."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    found: list[tuple[PodResourceClaim, ClaimKey | None]] = []
    for entry in pod.spec.resource_claims or ():
        name = entry.resource_claim_name or made.get(entry.name)
        found.append((entry, (pod.metadata.namespace, name) if name else None))
    return found


def _needs_no_claim(pod: Pod, entry: PodResourceClaim) -> bool:
    """Whether it was decided that an entry gets no claim."""
    statuses = pod.status.resource_claim_statuses or ()
    return any(status.name == entry.name and not status.resource_claim_name for status in statuses)
