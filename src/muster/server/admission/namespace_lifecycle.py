"""Refuses creates in namespaces that do not exist or are terminating, and deletes of the built-in namespaces."""

from __future__ import annotations

from muster.api.errors import forbidden, not_found
from muster.server.resources.kind import Obj, Write

IMMORTAL = frozenset(("default", "kube-system", "kube-public"))


async def admit_namespace(write: Write, new: Obj, old: Obj | None) -> None:
    """For every namespaced kind, and for namespaces themselves."""
    if write.kind.plural == "namespaces" and not write.kind.group:
        if write.operation == "DELETE" and write.name in IMMORTAL:
            raise forbidden("", "namespaces", write.name, "this namespace may not be deleted")
        return
    if write.operation != "CREATE" or not write.kind.namespaced:
        return
    namespace = write.reader.get("namespaces", "", "", write.namespace)
    if namespace is None:
        raise not_found("", "namespaces", write.namespace)
    if "deletionTimestamp" in namespace["metadata"]:
        why = f"unable to create new content in namespace {write.namespace} because it is being terminated"
        refusal = forbidden(write.kind.group, write.kind.plural, write.name, why)
        refusal.details["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {write.namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise refusal
