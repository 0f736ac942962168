"""Patches of one object: conditions, nominations, the node of a claim, the claim of a volume.

A condition's transition time moves only when its status does, so it is left out of the patch where the object has that
status already. Patches carry the uid, so a later object of the same name is not touched. An object that is gone needs
no patch; everything else is retried until the server is back.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from typing import Any

import msgspec

from muster.api.errors import ApiError
from muster.api.groups import COMPOSITE_INITIALLY_SCHEDULED, POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED
from muster.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Resource
from muster.client.backoff import Backoff, is_transient
from muster.client.clock import Clock, timestamp
from muster.client.error_text import error_text
from muster.client.objects import conditions, metadata
from muster.client.protocol import Client, Obj, PatchType
from muster.engine.api_calls.call import SCHEDULED, ApiCall
from muster.engine.api_discovery import CRD_GROUP, OLD
from muster.engine.latest_objects import LatestObjects
from muster.logs import keys
from muster.scheduler.interface.decisions import Nominate, PromiseVolume, SelectVolumeNode, SetCondition
from muster.scheduler.interface.keys import ObjectRef

log = logging.getLogger(__name__)

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"  # so that the volume is free again with its claim
GROUP_SCHEDULED = (POD_GROUP_INITIALLY_SCHEDULED, COMPOSITE_INITIALLY_SCHEDULED)
TRIES = 12
GONE = "it is gone"


class PatchCall(ApiCall):
    """A patch of one object that is retried until it is in or can never be."""

    subresource: str | None = "status"

    def __init__(
        self, about: ObjectRef, resource: Resource, client: Client, clock: Clock, latest: LatestObjects
    ) -> None:
        super().__init__((about.kind, about.namespace, about.name))
        self.about = about
        self.resource = resource
        self.client = client
        self.clock = clock
        self.latest = latest

    @abstractmethod
    async def attempt(self, stale: bool) -> None:
        """Send the patch once; `stale` says that the server refused an earlier try: what we know is outdated."""

    async def run(self) -> str:
        backoff = Backoff(self.clock, first=0.1, most=10.0)
        stale = False
        while True:
            try:
                await self.attempt(stale)
                return ""
            except ApiError as error:
                if error.code == 404:
                    return GONE
                refused = error.code in (409, 422)
                if refused and await self._replaced():
                    return GONE
                if not is_transient(error) and (not refused or (stale and error.code == 422)):
                    return self._give_up(error)
                stale = stale or refused
                reason: Exception = error
            except (ConnectionError, TimeoutError) as error:
                reason = error
            if backoff.tries >= TRIES:
                return self._give_up(reason)
            await backoff.wait(reason)

    def _give_up(self, error: Exception) -> str:
        what = self.resource.plural if self.subresource is None else f"{self.resource.plural}/{self.subresource}"
        text = error_text(error, "patch", what, self.resource.group)
        about = f"{self.about.namespace}/{self.about.name}"
        log.warning("Not written", extra=keys(kind=self.about.kind, object=about, err=text))
        return text

    async def _replaced(self) -> bool:
        """Whether the object of this name is another one by now."""
        try:
            found = await self.client.get(self.resource, self.about.name, self.about.namespace)
        except ApiError as error:
            return error.code == 404
        except (ConnectionError, TimeoutError):
            return False
        return bool(self.about.uid) and metadata(found).get("uid") != self.about.uid

    async def patch(self, body: Obj, type_: PatchType) -> None:
        if self.about.uid:
            body.setdefault("metadata", {})["uid"] = self.about.uid
        about = self.about
        answer = await self.client.patch(
            self.resource, about.name, body, about.namespace, type=type_, subresource=self.subresource
        )
        self.latest.answered(answer)


class StatusPatchCall(PatchCall):
    """Conditions of one object, and for a pod its `nominatedNodeName`."""

    call_type = "status_patch"

    def __init__(
        self, about: ObjectRef, resource: Resource, client: Client, clock: Clock, latest: LatestObjects
    ) -> None:
        super().__init__(about, resource, client, clock, latest)
        self.conditions: dict[str, SetCondition] = {}
        self.nominated: str | None = None

    def add(self, decision: SetCondition | Nominate) -> StatusPatchCall:
        if isinstance(decision, Nominate):
            self.nominated = decision.node
        else:
            self.conditions[decision.type] = decision
            if decision.type in GROUP_SCHEDULED and decision.status == "True":
                self.rank = SCHEDULED
        return self

    def merge(self, later: ApiCall) -> bool:
        if not isinstance(later, StatusPatchCall) or later.about != self.about:
            return False
        self.conditions.update(later.conditions)
        self.rank = min(self.rank, later.rank)
        if later.nominated is not None:
            self.nominated = later.nominated
        return True

    async def attempt(self, stale: bool) -> None:
        if not self.conditions and self.nominated is None:
            return
        if self.resource.group == CRD_GROUP:
            return await self._replace_list(stale)
        status: Obj = {}
        if self.conditions:
            status["conditions"] = [self._condition(each, stale) for each in self.conditions.values()]
        if self.nominated is not None:
            status["nominatedNodeName"] = self.nominated or None
        await self.patch({"status": status}, "strategic")

    def _condition(self, decision: SetCondition, stale: bool) -> Obj:
        type_ = self._named(decision.type)
        about = self.about
        body: Obj = {
            "type": type_,
            "status": decision.status,
            "reason": decision.reason,
            "message": decision.message,
        }
        had = self.latest.status_of(about, decision.type)
        if had is None:
            had = self.latest.status_of(about, type_)
        if stale or had != decision.status:
            body["lastTransitionTime"] = timestamp(self.clock.now())
        generation = self.latest.generation_of(about)
        if generation:
            body["observedGeneration"] = generation
        return body

    def _named(self, type_: str) -> str:
        """The condition's name in the served version."""
        renamed = self.resource.version == OLD and type_ == POD_GROUP_INITIALLY_SCHEDULED
        return POD_GROUP_SCHEDULED if renamed else type_

    async def _replace_list(self, stale: bool) -> None:
        """Custom resources know no merge by key: the whole list is written, against the version it was read at."""
        version, listed = (None if stale else self._as_watched()) or await self._as_stored()
        for decision in self.conditions.values():
            body = self._condition(decision, True)
            at = next((i for i, each in enumerate(listed) if each.get("type") == body["type"]), None)
            if at is None:
                listed.append(body)
            else:
                if listed[at].get("status") == body["status"] and listed[at].get("lastTransitionTime"):
                    body["lastTransitionTime"] = listed[at]["lastTransitionTime"]
                listed[at] = body
        await self.patch({"metadata": {"resourceVersion": version}, "status": {"conditions": listed}}, "merge")

    def _as_watched(self) -> tuple[str, list[Obj]] | None:
        """The object's version and conditions as the watch shows them, unless our own last write is newer."""
        about = self.about
        known = self.latest.look(about.kind, about.namespace, about.name)
        newest = self.latest.version_of(about)
        if known is None or newest is None or known.metadata.resource_version != newest:
            return None
        known_conditions = (msgspec.to_builtins(each) for each in known.status.conditions or ())
        return newest, [{"reason": "", "message": "", **each} for each in known_conditions]

    async def _as_stored(self) -> tuple[str, list[Obj]]:
        found = await self.client.get(self.resource, self.about.name, self.about.namespace)
        meta = metadata(found)
        if self.about.uid and meta.get("uid") != self.about.uid:
            raise ApiError(404, "NotFound", "another object has its name")
        return str(meta.get("resourceVersion")), list(conditions(found))


class ClaimAnnotationCall(PatchCall):
    """`SelectNode`: the annotation that names the node of a claim's pod to its provisioner."""

    call_type = "claim_patch"
    subresource = None

    def __init__(self, decision: SelectVolumeNode, client: Client, clock: Clock, latest: LatestObjects) -> None:
        super().__init__(decision.claim, PERSISTENT_VOLUME_CLAIMS, client, clock, latest)
        self.node = decision.node

    async def attempt(self, stale: bool) -> None:
        annotations: dict[str, Any] = {SELECTED_NODE: self.node or None}
        await self.patch({"metadata": {"annotations": annotations}}, "merge")


class VolumeClaimRefCall(PatchCall):
    """`KeepVolume`: set `claimRef` of a free volume to a claim; the volume controller does the rest."""

    call_type = "volume_patch"
    subresource = None

    def __init__(self, decision: PromiseVolume, client: Client, clock: Clock, latest: LatestObjects) -> None:
        super().__init__(
            ObjectRef(PERSISTENT_VOLUMES.kind, "", decision.volume), PERSISTENT_VOLUMES, client, clock, latest
        )
        self.claim = decision.claim

    async def attempt(self, stale: bool) -> None:
        claim = self.claim
        ref = {"apiVersion": "v1", "kind": claim.kind, "namespace": claim.namespace, "name": claim.name}
        if claim.uid:
            ref["uid"] = claim.uid
        body: Obj = {"metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}, "spec": {"claimRef": ref}}
        version = self.latest.version_of(self._watched())
        if version:  # somebody else may have taken it meanwhile
            body["metadata"]["resourceVersion"] = version
        await self.patch(body, "merge")

    def _watched(self) -> ObjectRef:
        """The volume with the uid that the watch shows: the decision names it without one."""
        known = self.latest.look(self.about.kind, "", self.about.name)
        return ObjectRef(self.about.kind, "", self.about.name, known.metadata.uid if known is not None else "")
