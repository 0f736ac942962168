"""What admission adds to a new pod: its service account, and tolerations of not-ready and unreachable nodes."""

from __future__ import annotations

from typing import Any

from muster.api.errors import forbidden
from muster.server.resources.kind import Obj, Write

TOLERATION_SECONDS = 300
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


async def admit_service_account(write: Write, new: Obj, old: Obj | None) -> None:
    """A pod runs as the account `default` unless it names another one, which must exist."""
    if write.operation != "CREATE" or write.subresource:
        return
    spec: Obj = new.get("spec") or {}
    name: str = spec.get("serviceAccountName") or "default"
    # Every namespace has the account `default`, if perhaps a moment later than its first pod.
    if name != "default" and write.reader.get("serviceaccounts", "", write.namespace, name) is None:
        why = f'error looking up service account {write.namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden("", "pods", write.name, why)
    spec["serviceAccountName"] = spec["serviceAccount"] = name


async def admit_toleration_seconds(write: Write, new: Obj, old: Obj | None) -> None:
    """A pod without own tolerations of not-ready and unreachable nodes tolerates them for five minutes."""
    if write.operation != "CREATE" or write.subresource:
        return
    spec: Obj = new.get("spec") or {}
    present: list[Obj] = spec.get("tolerations") or []
    missing = [key for key in _LOST if not any(_covers(each, key) for each in present)]
    if missing:
        spec["tolerations"] = [*present, *(_toleration(key) for key in missing)]


def _covers(toleration: Obj, key: str) -> bool:
    named: Any = toleration.get("key") or key
    return named == key and (toleration.get("effect") or "NoExecute") == "NoExecute"


def _toleration(key: str) -> Obj:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
