"""ControllerRevisions: the templates that a StatefulSet or a DaemonSet had, numbered, for rollouts and their undoing.

A revision holds the pod template as the patch that `kubectl rollout undo` applies. An equal template gets the
revision it had before, with a new highest number.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS, Resource
from muster.client.protocol import Client
from muster.controllers.informers import ObjectStore
from muster.controllers.job_group_objects import safe_hash
from muster.controllers.objects import RevisionView, UnstructuredObject, controller_uid
from muster.controllers.pod_control import controller_reference
from muster.controllers.status import JSON

HASH_LABEL = "controller-revision-hash"  # on pods, and on the revisions of DaemonSets
_NAME_HASH_LABEL = "controller.kubernetes.io/hash"  # on those of StatefulSets
_NAME_PREFIX_LIMIT = 223
_HISTORY_LIMIT = 10


class Revisions:
    """The revisions of all objects of one kind."""

    def __init__(self, client: Client, store: ObjectStore, owner: Resource) -> None:
        self._client = client
        self._owner = owner
        self._hash_label = HASH_LABEL if owner == DAEMON_SETS else _NAME_HASH_LABEL
        self._owned = store.index("by-controller", controller_uid)

    def of(self, owner: UnstructuredObject) -> list[RevisionView]:
        """The revisions of an object, oldest first."""
        return sorted(self._owned.get(owner.metadata.uid), key=lambda each: (each.revision, each.metadata.name))

    async def update_revision(self, owner: UnstructuredObject, known: list[RevisionView], collisions: int) -> Any:
        """The revision of the present template, made or renumbered where needed; None after a collision of names."""
        data = template_patch(owner)
        newest = known[-1].revision if known else 0
        same = next((each for each in reversed(known) if each.data == data), None)
        if same is None:
            return await self._create(owner, data, newest + 1, collisions)
        if same.revision == newest:
            return same
        patch = {"revision": newest + 1}
        await self._client.patch(CONTROLLER_REVISIONS, same.metadata.name, patch, same.metadata.namespace)
        return RevisionView(same.metadata, same.data, newest + 1)

    async def _create(self, owner: UnstructuredObject, data: JSON, number: int, collisions: int) -> RevisionView | None:
        digest = safe_hash(json.dumps(data, sort_keys=True) + (str(collisions) if collisions else ""))
        meta = owner.metadata
        labels: dict[str, str] = ((owner.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        body: JSON = {
            "metadata": {
                "name": f"{meta.name[:_NAME_PREFIX_LIMIT]}-{digest}",
                "namespace": meta.namespace,
                "labels": {**labels, self._hash_label: digest},
                "ownerReferences": [controller_reference(self._owner, meta)],
            },
            "data": data,
            "revision": number,
        }
        try:
            made = await self._client.create(CONTROLLER_REVISIONS, body, meta.namespace)
        except ApiError as error:
            if error.code != 409:
                raise
            made = await self._client.get(CONTROLLER_REVISIONS, body["metadata"]["name"], meta.namespace)
            owned = any(each.get("uid") == meta.uid for each in made["metadata"].get("ownerReferences") or ())
            if not owned or made.get("data") != data:
                return None
        return RevisionView.of(made)

    async def prune(self, owner: UnstructuredObject, known: list[RevisionView], live: Collection[str]) -> None:
        """Delete the oldest revisions beyond the limit, but none of those that are named as live."""
        limit = int(owner.spec.get("revisionHistoryLimit", _HISTORY_LIMIT))
        unused = [each for each in known if each.metadata.name not in live]
        for each in unused[: max(0, len(unused) - limit)]:
            meta = each.metadata
            try:
                await self._client.delete(CONTROLLER_REVISIONS, meta.name, meta.namespace, uid=meta.uid)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise


def template_patch(owner: UnstructuredObject) -> JSON:
    """What a revision holds: the template, as a patch that replaces the whole of it.

    Its keys are sorted, as Go writes them: clients compare it byte by byte with what they would have written.
    """
    return _sorted({"spec": {"template": {**(owner.spec.get("template") or {}), "$patch": "replace"}}})


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def template_of(revision: RevisionView) -> JSON:
    template: JSON = (revision.data.get("spec") or {}).get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}


def revision_hash(revision: RevisionView) -> str:
    """The name by which pods name their revision."""
    labels = revision.metadata.labels or {}
    return labels.get(_NAME_HASH_LABEL) or labels.get(HASH_LABEL, "")
