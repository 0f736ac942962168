"""The fields that field selectors may ask for, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from muster.server.resources.kind import Obj

Read = Callable[[Obj], str]


def field(*path: str, absent: str = "") -> Read:
    """Reads one field; `absent` is what an object without it shows."""

    def read(obj: Obj) -> str:
        # Plain steps: every write of every object comes here, once a field.
        value: Any = obj
        for step in path:
            value = value.get(step) if type(value) is dict else None
        if type(value) is str:
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        return absent if value is None else str(value)

    return read


POD: Mapping[str, Read] = {
    "spec.nodeName": field("spec", "nodeName"),
    "spec.restartPolicy": field("spec", "restartPolicy"),
    "spec.schedulerName": field("spec", "schedulerName"),
    "spec.serviceAccountName": field("spec", "serviceAccountName"),
    "spec.hostNetwork": field("spec", "hostNetwork", absent="false"),
    "status.phase": field("status", "phase"),
    "status.podIP": field("status", "podIP"),
    "status.nominatedNodeName": field("status", "nominatedNodeName"),
    "spec.schedulingGroup.podGroupName": field("spec", "schedulingGroup", "podGroupName"),
}
REPLICAS: Mapping[str, Read] = {"status.replicas": field("status", "replicas", absent="0")}
