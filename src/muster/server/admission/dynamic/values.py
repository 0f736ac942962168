"""The values that expressions see of a write."""

from __future__ import annotations

from muster.cel import Values
from muster.server.admission.dynamic.attributes import Attributes, user_info
from muster.server.resources.kind import Obj
from muster.server.resources.rules.policy_expressions import AUTHORIZER_CODEC, RESOURCE_CODEC


def request_values(attributes: Attributes, version: str) -> Values:
    """Everything but the parameters and variables of a policy."""
    new, old = attributes.objects(version)
    write, kind = attributes.write, attributes.kind
    who = {"user": user_info(write.user)}
    what = {
        "group": kind.group,
        "resource": kind.plural,
        "subresource": write.subresource,
        "namespace": write.namespace,
        "name": write.name,
    }
    namespace = attributes.namespace_object()
    return Values(
        {
            "object": new,
            "oldObject": old,
            "request": attributes.request(version),
            "namespaceObject": None if namespace is None else _namespace(namespace),
            "authorizer": AUTHORIZER_CODEC.encode(who),
            "authorizer.requestResource": RESOURCE_CODEC.encode({**who, **what}),
        }
    )


def _namespace(namespace: Obj) -> Obj:
    metadata: Obj = namespace["metadata"]
    return {**namespace, "metadata": {**metadata, "UID": metadata.get("uid", "")}}
