"""Claims made from templates: their names, owners and form; and which consumers of a claim still count."""

from __future__ import annotations

from typing import Any

from muster.api.devices import POD_CLAIM_NAME
from muster.api.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS, Resource
from muster.api.types import ObjectMeta, PodResourceClaim
from muster.controllers.objects import JSON, UnstructuredObject, controller_of

LONGEST_NAME = 57
"""Room for the owner's and the entry's name in a generated name; the server adds five characters and two dashes."""


def claim_from(template: UnstructuredObject, owner: ObjectMeta, kind: Resource, entry: str) -> JSON:
    """The claim that a template makes for an entry of a pod or a group."""
    made: JSON = template.spec.get("metadata") or {}
    metadata: JSON = {
        "generateName": generated_name(owner.name, entry),
        "annotations": {**(made.get("annotations") or {}), POD_CLAIM_NAME: entry},
        "ownerReferences": [
            {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if made.get("labels"):
        metadata["labels"] = made["labels"]
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": metadata,
        "spec": template.spec.get("spec") or {},
    }


def generated_name(owner: str, entry: str) -> str:
    """Both names, cut in proportion where they are too long together."""
    length = len(owner) + len(entry)
    if length > LONGEST_NAME:
        owner = owner[: LONGEST_NAME * len(owner) // length]
        entry = entry[: LONGEST_NAME - len(owner)]
    return f"{owner}-{entry}-"


def made_for(claim: UnstructuredObject, owner: ObjectMeta, entry: str) -> bool:
    """Whether a claim was made from a template for an entry of a pod or a group."""
    controller = controller_of(claim.metadata)
    named = (claim.metadata.annotations or {}).get(POD_CLAIM_NAME)
    return controller is not None and controller.uid == owner.uid and named == entry


def same_entry(entry: PodResourceClaim, other: JSON) -> bool:
    """Whether an entry of a pod stands for one of its group: all three names are equal."""
    return (entry.name, entry.resource_claim_name, entry.resource_claim_template_name) == (
        other.get("name"),
        other.get("resourceClaimName"),
        other.get("resourceClaimTemplateName"),
    )


def consumer_of(resource: Resource, metadata: ObjectMeta) -> JSON:
    """An entry of `status.reservedFor`."""
    entry: JSON = {"resource": resource.plural, "name": metadata.name, "uid": metadata.uid}
    return {"apiGroup": resource.group, **entry} if resource.group else entry


def is_pod(consumer: dict[str, Any]) -> bool:
    return consumer.get("resource") == PODS.plural and not consumer.get("apiGroup")


def is_group(consumer: dict[str, Any]) -> bool:
    return consumer.get("resource") == POD_GROUPS.plural and consumer.get("apiGroup") == POD_GROUPS.group
