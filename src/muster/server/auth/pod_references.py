"""The objects that a pod refers to: what its node has to read to run it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Obj = dict[str, Any]
Reference = tuple[str, str]  # resource, name in the pod's namespace

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def references(pod: Obj) -> set[Reference]:
    """ConfigMaps, Secrets, claims, resource claims and the service account of a pod."""
    spec: Obj = pod.get("spec") or {}
    found: set[Reference] = {("serviceaccounts", str(spec.get("serviceAccountName") or ""))}
    found |= {("secrets", str(each.get("name"))) for each in spec.get("imagePullSecrets") or ()}
    for key in _CONTAINERS:
        for container in spec.get(key) or ():
            found |= set(_of_environment(container))
    for volume in spec.get("volumes") or ():
        found |= set(_of_volume(volume, pod["metadata"].get("name") or ""))
    claims = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    found |= {("resourceclaims", str(each.get("resourceClaimName"))) for each in claims}
    found |= {("resourceclaims", str(each.get("resourceClaimName"))) for each in spec.get("resourceClaims") or ()}
    return {each for each in found if each[1] not in ("", "None")}


def _of_environment(container: Obj) -> Iterator[Reference]:
    for each in container.get("envFrom") or ():
        yield "configmaps", str((each.get("configMapRef") or {}).get("name"))
        yield "secrets", str((each.get("secretRef") or {}).get("name"))
    for variable in container.get("env") or ():
        source: Obj = variable.get("valueFrom") or {}
        yield "configmaps", str((source.get("configMapKeyRef") or {}).get("name"))
        yield "secrets", str((source.get("secretKeyRef") or {}).get("name"))


def _of_volume(volume: Obj, pod: str) -> Iterator[Reference]:
    yield "configmaps", str((volume.get("configMap") or {}).get("name"))
    yield "secrets", str((volume.get("secret") or {}).get("secretName"))
    yield "persistentvolumeclaims", str((volume.get("persistentVolumeClaim") or {}).get("claimName"))
    yield "secrets", str(((volume.get("csi") or {}).get("nodePublishSecretRef") or {}).get("name"))
    if volume.get("ephemeral") is not None:
        yield "persistentvolumeclaims", f"{pod}-{volume.get('name')}"
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield "configmaps", str((source.get("configMap") or {}).get("name"))
        yield "secrets", str((source.get("secret") or {}).get("name"))
