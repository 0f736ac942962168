"""What would happen if: the answer of `muster simulate`, and for what would wait why, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from muster.scheduler.explain.explanation import Explanation
from muster.scheduler.groups.group import entity_key
from muster.views.documents import ManifestError
from muster.views.explain import explain_with
from muster.views.failures import ViewFailure
from muster.views.manifests import checked_objects, documents_in
from muster.views.simulate import Answer, simulated

if TYPE_CHECKING:
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.interface.keys import EntityKey
    from muster.scheduler.simulation.snapshot import Snapshot

MOST_EXPLANATIONS = 3


class WhatIf(msgspec.Struct, frozen=True):
    """The answer, and explanations of the first submitted gangs that would wait."""

    answer: Answer
    explanations: tuple[Explanation, ...]


def what_if(snapshot: Snapshot, manifests: bytes, namespace: str) -> WhatIf:
    """What would happen if these manifests were submitted now."""
    try:
        documents = checked_objects(documents_in("manifest", manifests))
    except ManifestError as error:
        raise ViewFailure(str(error)) from error
    if not documents:
        raise ViewFailure("there is no manifest: paste or drop YAML or JSON with at least one object")
    answer, scheduler = simulated(snapshot, [documents], namespace)
    waiting = _waiting(scheduler.view(), {each.pod for each in answer.pending})
    return WhatIf(answer, tuple(explain_with(scheduler, *key) for key in waiting))


def _waiting(view: SchedulerView, pods: set[str]) -> list[EntityKey]:
    """The first gangs that the pods (namespace/name) belong to."""
    found: dict[EntityKey, None] = {}
    for member in view.members.values():
        if f"{member.ref.namespace}/{member.ref.name}" in pods:
            found.setdefault(entity_key(member))
    return sorted(found)[:MOST_EXPLANATIONS]
