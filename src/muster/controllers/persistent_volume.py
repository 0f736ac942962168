"""PersistentVolumes and their claims: bound to each other, provisioned for the simulated class, released and reclaimed.

A claim of a class that waits for its first consumer is bound when the scheduler has chosen a node. Volumes of other
provisioners are theirs to make and to delete.
"""

from __future__ import annotations

from muster.api.errors import ApiError
from muster.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from muster.controllers.controller import Controller
from muster.controllers.objects import StorageClassView, UnstructuredObject
from muster.controllers.status import JSON, write_status
from muster.controllers.volume_matching import best_volume, claim_of

PROVISIONER = "muster.dev/simulated"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_PROVISIONER_ANNOTATION = "volume.kubernetes.io/storage-provisioner"
_LOOK_AGAIN = 15.0

Key = tuple[str, str, str]  # plural, namespace, name


class PersistentVolumeController(Controller):
    name = "persistent-volume-binder"
    workers = 4

    def setup(self) -> None:
        self._volumes = self.watch(PERSISTENT_VOLUMES)
        self._claims = self.watch(PERSISTENT_VOLUME_CLAIMS)
        self._classes = self.watch(STORAGE_CLASSES)
        self._volumes.on_change(self._volume_changed)
        self._claims.on_change(self._claim_changed)
        self._classes.on_change(lambda old, new: self._review_claims())

    def _volume_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        for volume in (old, new):
            claim = claim_of(volume) if volume is not None else None
            if claim is not None:
                self.queue.add((PERSISTENT_VOLUME_CLAIMS.plural, claim.get("namespace"), claim.get("name")))
        if new is not None:
            self.queue.add((PERSISTENT_VOLUMES.plural, "", new.metadata.name))
            if claim_of(new) is None:
                self._review_claims()

    def _claim_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        claim = new if new is not None else old
        if claim is None:
            return
        self.queue.add((PERSISTENT_VOLUME_CLAIMS.plural, claim.metadata.namespace, claim.metadata.name))
        if claim.spec.get("volumeName"):
            self.queue.add((PERSISTENT_VOLUMES.plural, "", claim.spec["volumeName"]))

    def _review_claims(self) -> None:
        for claim in self._claims.objects.values():
            if claim.status.get("phase") != "Bound":
                self.queue.add((PERSISTENT_VOLUME_CLAIMS.plural, claim.metadata.namespace, claim.metadata.name))

    async def reconcile(self, key: Key) -> float | None:
        plural, namespace, name = key
        if plural == PERSISTENT_VOLUMES.plural:
            volume: UnstructuredObject | None = self._volumes.get("", name)
            if volume is not None and volume.metadata.deletion_timestamp is None:
                await self._review_volume(volume)
            return None
        claim: UnstructuredObject | None = self._claims.get(namespace, name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return None
        return await self._review_claim(claim)

    # Volumes

    async def _review_volume(self, volume: UnstructuredObject) -> None:
        """Write the phase of a volume; delete one that is released and was made here for that."""
        reference = claim_of(volume)
        if reference is None or not reference.get("uid"):
            await self._set_phase(volume, "Available")  # free, or kept for a claim that has not been bound yet
            return
        claim: UnstructuredObject | None = self._claims.get(reference.get("namespace", ""), reference.get("name", ""))
        if claim is not None and claim.metadata.uid == reference["uid"]:
            bound = claim.spec.get("volumeName") == volume.metadata.name
            await self._set_phase(volume, "Bound" if bound else "Available")
            return
        if await self._exists(reference):
            return  # the cache is behind
        await self._set_phase(volume, "Released")
        made_here = (volume.metadata.annotations or {}).get(_PROVISIONED_BY) == PROVISIONER
        if made_here and volume.spec.get("persistentVolumeReclaimPolicy") == "Delete":
            await self._delete(volume)

    async def _exists(self, reference: JSON) -> bool:
        try:
            found = await self.client.get(PERSISTENT_VOLUME_CLAIMS, reference["name"], reference["namespace"])
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return found["metadata"]["uid"] == reference["uid"]

    async def _set_phase(self, volume: UnstructuredObject, phase: str) -> None:
        await write_status(self.client, PERSISTENT_VOLUMES, volume, {**volume.status, "phase": phase})

    async def _delete(self, volume: UnstructuredObject) -> None:
        try:
            await self.client.delete(PERSISTENT_VOLUMES, volume.metadata.name, uid=volume.metadata.uid)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    # Claims

    async def _review_claim(self, claim: UnstructuredObject) -> float | None:
        wanted: str = claim.spec.get("volumeName") or ""
        if wanted and _BIND_COMPLETED in (claim.metadata.annotations or {}):
            await self._keep_bound(claim, self._volumes.get("", wanted))
            return None
        if wanted:
            named: UnstructuredObject | None = self._volumes.get("", wanted)
            volume = best_volume(claim, [named]) if named is not None else None
        else:
            volume = best_volume(claim, self._candidates(claim))
        if volume is not None:
            await self._bind(claim, volume)
            return None
        await write_status(self.client, PERSISTENT_VOLUME_CLAIMS, claim, {**claim.status, "phase": "Pending"})
        return await self._wait(claim) if not wanted else None

    def _candidates(self, claim: UnstructuredObject) -> list[UnstructuredObject]:
        """Volumes that the claim may get now: while it waits for its first consumer, only one that is kept for it."""
        volumes: list[UnstructuredObject] = list(self._volumes.objects.values())
        if self._waits_for_consumer(claim):
            return [each for each in volumes if claim_of(each) is not None]
        return volumes

    def _waits_for_consumer(self, claim: UnstructuredObject) -> bool:
        found = self._class_of(claim)
        waiting = found is not None and found.volume_binding_mode == "WaitForFirstConsumer"
        return waiting and SELECTED_NODE not in (claim.metadata.annotations or {})

    def _class_of(self, claim: UnstructuredObject) -> StorageClassView | None:
        return self._classes.get("", claim.spec.get("storageClassName") or "")

    async def _keep_bound(self, claim: UnstructuredObject, volume: UnstructuredObject | None) -> None:
        reference = claim_of(volume) if volume is not None else None
        if volume is not None and (reference or {}).get("uid") == claim.metadata.uid:
            await self._write_bound(claim, volume)
            return
        if claim.status.get("phase") == "Lost":
            return
        text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        await self.events.warning(PERSISTENT_VOLUME_CLAIMS, claim.metadata, "ClaimLost", text)
        await write_status(self.client, PERSISTENT_VOLUME_CLAIMS, claim, {"phase": "Lost"})

    async def _bind(self, claim: UnstructuredObject, volume: UnstructuredObject) -> None:
        """First the volume names the claim, then the claim the volume: of two claims only one can win."""
        if (claim_of(volume) or {}).get("uid") != claim.metadata.uid:
            await self.client.patch(PERSISTENT_VOLUMES, volume.metadata.name, _claimed(volume, claim))
        meta = claim.metadata
        annotations = {_BIND_COMPLETED: "yes"}
        if not claim.spec.get("volumeName"):
            annotations[_BOUND_BY_CONTROLLER] = "yes"
        patch = {
            "metadata": {"resourceVersion": meta.resource_version, "annotations": annotations},
            "spec": {"volumeName": volume.metadata.name},
        }
        await self.client.patch(PERSISTENT_VOLUME_CLAIMS, meta.name, patch, meta.namespace)
        # The claim's event comes back here, and `_keep_bound` writes the status on the newer version.

    async def _write_bound(self, claim: UnstructuredObject, volume: UnstructuredObject) -> None:
        status = {
            **claim.status,
            "phase": "Bound",
            "accessModes": volume.spec.get("accessModes") or [],
            "capacity": volume.spec.get("capacity") or {},
        }
        await write_status(self.client, PERSISTENT_VOLUME_CLAIMS, claim, status)

    async def _wait(self, claim: UnstructuredObject) -> float | None:
        """No volume fits: make one, or say what the claim waits for."""
        found = self._class_of(claim)
        if self._waits_for_consumer(claim):
            text = "waiting for first consumer to be created before binding"
            await self.events.normal(PERSISTENT_VOLUME_CLAIMS, claim.metadata, "WaitForFirstConsumer", text)
            return _LOOK_AGAIN
        if found is not None and found.provisioner == PROVISIONER:
            await self._provision(claim, found)
            return None
        name: str = claim.spec.get("storageClassName") or ""
        if not name:
            text = "no persistent volumes available for this claim and no storage class is set"
            await self.events.normal(PERSISTENT_VOLUME_CLAIMS, claim.metadata, "FailedBinding", text)
        elif found is None:
            text = f'storageclass.storage.k8s.io "{name}" not found'
            await self.events.warning(PERSISTENT_VOLUME_CLAIMS, claim.metadata, "ProvisioningFailed", text)
        elif found.provisioner != "kubernetes.io/no-provisioner":
            await self._ask_provisioner(claim, found.provisioner)
        return _LOOK_AGAIN

    async def _ask_provisioner(self, claim: UnstructuredObject, provisioner: str) -> None:
        meta = claim.metadata
        if (meta.annotations or {}).get(_PROVISIONER_ANNOTATION) != provisioner:
            patch = {"metadata": {"annotations": {_PROVISIONER_ANNOTATION: provisioner}}}
            await self.client.patch(PERSISTENT_VOLUME_CLAIMS, meta.name, patch, meta.namespace)
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        await self.events.normal(PERSISTENT_VOLUME_CLAIMS, meta, "ExternalProvisioning", text)

    async def _provision(self, claim: UnstructuredObject, found: StorageClassView) -> None:
        """Make the simulated volume of a claim."""
        meta = claim.metadata
        name = f"pvc-{meta.uid}"
        requests: JSON = (claim.spec.get("resources") or {}).get("requests") or {}
        spec: JSON = {
            "capacity": {"storage": requests.get("storage")},
            "accessModes": claim.spec.get("accessModes") or [],
            "volumeMode": claim.spec.get("volumeMode") or "Filesystem",
            "storageClassName": found.metadata.name,
            "persistentVolumeReclaimPolicy": found.reclaim_policy or "Delete",
            "claimRef": _reference(claim),
            "csi": {"driver": PROVISIONER, "volumeHandle": name},
        }
        volume = {"metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}}, "spec": spec}
        try:
            await self.client.create(PERSISTENT_VOLUMES, volume)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return
            text = f'failed to provision volume with StorageClass "{found.metadata.name}": {error}'
            await self.events.warning(PERSISTENT_VOLUME_CLAIMS, meta, "ProvisioningFailed", text)
            raise
        text = f"Successfully provisioned volume {name}"
        await self.events.normal(PERSISTENT_VOLUME_CLAIMS, meta, "ProvisioningSucceeded", text)


def _reference(claim: UnstructuredObject) -> JSON:
    meta = claim.metadata
    return {
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }


def _claimed(volume: UnstructuredObject, claim: UnstructuredObject) -> JSON:
    """The patch that makes a volume name its claim, on the version of the volume that was judged."""
    meta: JSON = {"resourceVersion": volume.metadata.resource_version}
    if claim_of(volume) is None:
        meta["annotations"] = {_BOUND_BY_CONTROLLER: "yes"}
    return {"metadata": meta, "spec": {"claimRef": _reference(claim)}}
