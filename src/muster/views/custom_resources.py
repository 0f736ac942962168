"""Manifests for a cluster whose groups are custom resources, as the native ones that a simulated server takes.

The kinds are the same in another API group, and a pod names its group by a label in place of a field.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from muster.api.groups import GROUP
from muster.api.manifests import CRD_GROUP, CRD_LABEL
from muster.views.documents import Document


def name_custom_resources(documents: Iterable[Document]) -> bool:
    """Whether one of the manifests is a group that is a custom resource."""
    return any(_is_custom(document.value) for document in documents)


def as_native(document: Document) -> Document:
    """The same manifest in the native API group, with the field in place of the label."""
    obj = document.value
    if _is_custom(obj):
        return replace(document, value={**obj, "apiVersion": f"{GROUP}/{obj['apiVersion'].rpartition('/')[2]}"})
    if obj.get("kind") == "Pod":
        return replace(document, value=_with_field(obj))
    spec = obj.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("template"), dict):
        return replace(document, value={**obj, "spec": {**spec, "template": _with_field(spec["template"])}})
    return document


def _is_custom(obj: Any) -> bool:
    return str(obj.get("apiVersion") or "").startswith(f"{CRD_GROUP}/")


def _with_field(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod, or a template of one, that names by its field the group that its label names."""
    meta, spec = pod.get("metadata"), pod.get("spec")
    labels = meta.get("labels") if isinstance(meta, dict) else None
    name = labels.get(CRD_LABEL) if isinstance(labels, dict) else None
    if not name or not isinstance(spec, dict):
        return pod
    return {**pod, "spec": {**spec, "schedulingGroup": {"podGroupName": name}}}
