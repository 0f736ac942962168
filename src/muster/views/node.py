"""One node: the pods on it and what each requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from muster.scheduler.interface.keys import EntityKey
from muster.views.natural_order import natural
from muster.views.occupancy import gang_of

if TYPE_CHECKING:
    from muster.scheduler.cycle.view import SchedulerView


class PodOnNode(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that counts on a node, the gang it belongs to, and what it requests (cpu in milli-units)."""

    namespace: str
    name: str
    gang: EntityKey
    phase: str
    requests: dict[str, int]


def pods_on(view: SchedulerView, node: str) -> list[PodOnNode]:
    """The pods of a node, by name."""
    found: list[PodOnNode] = []
    for uid, requests in view.pods_on(node):
        member = view.members.get(uid)
        if member is not None:
            ref, phase = member.ref, member.pod.status.phase
            found.append(PodOnNode(ref.namespace, ref.name, gang_of(member), phase, dict(requests)))
    return sorted(found, key=lambda pod: (pod.namespace, natural(pod.name)))
