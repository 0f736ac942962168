"""The pods of StatefulSets: their names, their identity, and the claims of their volumes.

Pure. Pod `web-2` of set `web` is named after its ordinal, keeps that name for life, and uses the claims
`<template>-web-2`, which outlive it unless the retention policy says otherwise.
"""

from __future__ import annotations

import re

from muster.api.resources import PODS, STATEFUL_SETS
from muster.controllers.objects import PodView, UnstructuredObject, json_of
from muster.controllers.pod_control import controller_reference, pod_from
from muster.controllers.revisions import HASH_LABEL
from muster.controllers.status import JSON

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
_NAME = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})")


def pod_name(stateful_set: UnstructuredObject, ordinal: int) -> str:
    return f"{stateful_set.metadata.name}-{ordinal}"


def ordinal_of(stateful_set: UnstructuredObject, name: str) -> int | None:
    """The ordinal in a pod's name; None where it is no name of a pod of this set."""
    found = _NAME.fullmatch(name)
    return int(found.group(2)) if found is not None and found.group(1) == stateful_set.metadata.name else None


def first_ordinal(stateful_set: UnstructuredObject) -> int:
    return int((stateful_set.spec.get("ordinals") or {}).get("start") or 0)


def pod_for(stateful_set: UnstructuredObject, ordinal: int, template: JSON, revision: str) -> JSON:
    """The pod of an ordinal, from the template of a revision."""
    name = pod_name(stateful_set, ordinal)
    pod = pod_from(template, STATEFUL_SETS, stateful_set.metadata, "")
    del pod["metadata"]["generateName"]
    pod["metadata"]["name"] = name
    pod["metadata"]["labels"] |= {HASH_LABEL: revision, POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}
    claims = claim_names(stateful_set, ordinal)
    volumes = [each for each in pod["spec"].get("volumes") or () if each.get("name") not in claims]
    volumes += [{"name": key, "persistentVolumeClaim": {"claimName": claim}} for key, claim in claims.items()]
    pod["spec"] |= {"hostname": name, "subdomain": stateful_set.spec.get("serviceName") or ""}
    if volumes:
        pod["spec"]["volumes"] = volumes
    return pod


def claim_names(stateful_set: UnstructuredObject, ordinal: int) -> dict[str, str]:
    """The claims of a pod, by the name of their template."""
    templates: list[JSON] = stateful_set.spec.get("volumeClaimTemplates") or []
    names = [str((each.get("metadata") or {}).get("name") or "") for each in templates]
    return {name: f"{name}-{pod_name(stateful_set, ordinal)}" for name in names}


def claims_for(stateful_set: UnstructuredObject, ordinal: int) -> list[JSON]:
    """The claims of a pod, as they are created."""
    names = claim_names(stateful_set, ordinal)
    selected: dict[str, str] = (stateful_set.spec.get("selector") or {}).get("matchLabels") or {}
    made: list[JSON] = []
    for template in stateful_set.spec.get("volumeClaimTemplates") or ():
        meta: JSON = dict(template.get("metadata") or {})
        meta["labels"] = {**(meta.get("labels") or {}), **selected}
        meta["name"] = names[str(meta.get("name") or "")]
        meta["namespace"] = stateful_set.metadata.namespace
        if _retention(stateful_set, "whenDeleted"):
            meta["ownerReferences"] = [controller_reference(STATEFUL_SETS, stateful_set.metadata)]
        made.append({"metadata": meta, "spec": template.get("spec") or {}})
    return made


def claim_owners(
    stateful_set: UnstructuredObject, claim: UnstructuredObject, ordinal: int, pod: PodView | None, *, condemned: bool
) -> list[JSON]:
    """The owners that a claim should have, under the retention policy; owners of other kinds stay.

    A claim that goes with its set is owned by the set. One that goes when the set shrinks is owned by its pod, from
    the moment the pod is to be removed, so that the garbage collector deletes it after the pod.
    """
    name = pod_name(stateful_set, ordinal)
    kept = [
        json_of(each)
        for each in claim.metadata.owner_references or ()
        if (each.kind, each.name) not in ((STATEFUL_SETS.kind, stateful_set.metadata.name), (PODS.kind, name))
    ]
    if condemned and _retention(stateful_set, "whenScaled"):
        if pod is not None:
            kept.append(controller_reference(PODS, pod.metadata))
    elif _retention(stateful_set, "whenDeleted"):
        kept.append(controller_reference(STATEFUL_SETS, stateful_set.metadata))
    return kept


def _retention(stateful_set: UnstructuredObject, key: str) -> bool:
    """Whether claims are deleted in that case."""
    return (stateful_set.spec.get("persistentVolumeClaimRetentionPolicy") or {}).get(key) == "Delete"
