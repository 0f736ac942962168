"""The kinds that the stand-ins serve, as CustomResourceDefinitions without a schema of their own."""

from __future__ import annotations

from typing import Any

from muster.api.membership import JOB_SETS, LEADER_WORKER_SETS
from muster.api.resources import Resource

KINDS = {"jobset": JOB_SETS, "lws": LEADER_WORKER_SETS}
_SHORT_NAMES = {"jobset": [], "lws": ["lws"]}
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_COLUMNS = {
    "jobset": [
        {"name": "TerminalState", "type": "string", "jsonPath": ".status.terminalState"},
        {"name": "Restarts", "type": "integer", "jsonPath": ".status.restarts"},
        {"name": "Suspended", "type": "boolean", "jsonPath": ".spec.suspend"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
    "lws": [
        {"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"},
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
}


def definition(name: str) -> dict[str, Any]:
    """The definition of the kind that a stand-in serves."""
    resource: Resource = KINDS[name]
    subresources: dict[str, Any] = {"status": {}}
    if name == "lws":
        subresources["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    schema = {"type": "object", "properties": {"spec": _ANY, "status": _ANY}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            # Groups that end in k8s.io are Kubernetes' own; a server asks for this where they are not approved.
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in"},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "shortNames": _SHORT_NAMES[name],
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": subresources,
                    "additionalPrinterColumns": _COLUMNS[name],
                }
            ],
        },
    }
