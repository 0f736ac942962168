"""What the user of a client may do, asked of the server before it is needed."""

from __future__ import annotations

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.objects import part
from muster.client.protocol import Client

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CHANGE = ("create", "patch", "delete")
READ = ("list", "watch")


async def missing_rights(client: Client, resource: Resource, verbs: tuple[str, ...]) -> str:
    """The rights on a resource that are missing, in words; empty if none is, or if nobody answers such questions."""
    missing = [verb for verb in verbs if not await _is_allowed(client, resource, verb)]
    return f"{', '.join(missing)} {resource.plural} in {resource.group or 'the core group'}" if missing else ""


async def _is_allowed(client: Client, resource: Resource, verb: str) -> bool:
    asked = {"group": resource.group, "version": resource.version, "resource": resource.plural, "verb": verb}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    try:
        answer = await client.request("POST", _REVIEWS, body)
    except ApiError as error:
        return error.code not in (401, 403)  # a server without reviews refuses the write itself, if it does
    return bool(part(answer, "status").get("allowed"))
