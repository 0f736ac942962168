"""A new claim that names no storage class gets the default class of the cluster, where there is one."""

from __future__ import annotations

from muster.server.resources.kind import Obj, Write

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


async def admit_default_storage_class(write: Write, new: Obj, old: Obj | None) -> None:
    if write.operation != "CREATE" or write.subresource:
        return
    spec: Obj = new.get("spec") or {}
    if spec.get("storageClassName") is not None:  # empty: no class is wanted
        return
    classes = write.reader.list("storageclasses", "storage.k8s.io")
    marked = [each for each in classes if (each["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"]
    if marked:
        newest = max(
            marked, key=lambda each: (each["metadata"].get("creationTimestamp") or "", each["metadata"]["name"])
        )
        spec["storageClassName"] = newest["metadata"]["name"]
