"""Which fields of groups the server lets change on an object that exists.

Kubernetes 1.36 fixes the whole policy, 1.37 lets `minCount` change. `minGroupCount` may change on Muster's own server
and where the groups are Muster's custom resources.
"""

from __future__ import annotations

from muster.api.errors import ApiError
from muster.client.protocol import Client
from muster.engine.api_discovery import CRDS, NATIVE_OLD

OWN_SERVER = "+muster"  # in the version that the embedded server gives


async def changeable_fields(client: Client, groups: str) -> tuple[str, ...]:
    """The fields, by how the server serves groups and what it says of its version."""
    if groups == CRDS:
        return ("minCount", "minGroupCount")
    try:
        version = str((await client.request("GET", "/version")).get("gitVersion", ""))
    except ApiError:  # the version may be a secret; then nothing is promised that a stock server refuses
        version = ""
    if OWN_SERVER in version:
        return ("minCount", "minGroupCount")
    return () if groups == NATIVE_OLD else ("minCount",)
