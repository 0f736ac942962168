"""Resource claims: makes those that pods and groups want from templates, and gives devices back when nobody uses them.

A claim is reserved for pods, or for a group as a whole. Once the last of them is gone or has ended, the allocation is
cleared and the finalizer goes; a claim that was made for a pod goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muster.api.devices import CLAIM_FINALIZER
from muster.api.errors import ApiError
from muster.api.gates import RESOURCE_CLAIMS as GROUP_CLAIMS
from muster.api.resources import POD_GROUPS, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from muster.api.types import ObjectMeta, PodResourceClaim
from muster.controllers.claim_objects import claim_from, consumer_of, is_group, is_pod, made_for, same_entry
from muster.controllers.controller import Controller
from muster.controllers.finalizers import remove_finalizer
from muster.controllers.objects import JSON, PodView, UnstructuredObject, controller_of, controller_uid

FIELD_MANAGER = "ResourceClaimController"

Key = tuple[str, str, str]  # plural, namespace, name


class ResourceClaimController(Controller):
    name = "resource-claim-controller"
    workers = 10

    def setup(self) -> None:
        self._pods = self.watch(PODS)
        self._groups = self.watch(POD_GROUPS)
        self._claims = self.watch(RESOURCE_CLAIMS)
        self._templates = self.watch(RESOURCE_CLAIM_TEMPLATES)
        self._made_for = self._claims.index("by-controller", controller_uid)
        self._members = self._pods.index("with-claims-by-group", _group_of)
        self._waiting: dict[tuple[str, str], set[Key]] = {}  # template -> who wants claims from it
        self._pods.on_change(self._pod_changed)
        self._groups.on_change(self._group_changed)
        self._claims.on_change(self._claim_changed)
        self._templates.on_change(self._template_changed)

    # --- changes -----------------------------------------------------------------------------------

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        pod = new if new is not None else old
        assert pod is not None
        if not pod.spec.resource_claims:
            return
        namespace = pod.metadata.namespace
        if new is not None:
            self.queue.add((PODS.plural, namespace, pod.metadata.name))
        if new is None or new.finished or new.going or new.spec.node_name:
            for name in _claim_names(pod):
                self.queue.add((RESOURCE_CLAIMS.plural, namespace, name))

    def _group_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        group = new if new is not None else old
        assert group is not None
        namespace, name = group.metadata.namespace, group.metadata.name
        if group.spec.get("resourceClaims"):
            self.queue.add((POD_GROUPS.plural, namespace, name))
            if new is None:
                for claim in self._claims.in_namespace(namespace):
                    if any(is_group(each) and each.get("name") == name for each in _consumers(claim)):
                        self.queue.add((RESOURCE_CLAIMS.plural, namespace, claim.metadata.name))
        if (old is None) != (new is None):
            self._add_members(namespace, name)

    def _claim_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        claim: Any = new if new is not None else old
        namespace = claim.metadata.namespace
        self.queue.add((RESOURCE_CLAIMS.plural, namespace, claim.metadata.name))
        owner = controller_of(claim.metadata)
        if (old is None) != (new is None) and owner is not None and owner.kind in (PODS.kind, POD_GROUPS.kind):
            plural = PODS.plural if owner.kind == PODS.kind else POD_GROUPS.plural
            self.queue.add((plural, namespace, owner.name))

    def _template_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        if new is not None:
            for key in self._waiting.pop((new.metadata.namespace, new.metadata.name), ()):
                self.queue.add(key)

    def _add_members(self, namespace: str, group: str) -> None:
        for pod in self._members.get((namespace, group)):
            self.queue.add((PODS.plural, namespace, pod.metadata.name))

    async def reconcile(self, key: Key) -> float | None:
        plural, namespace, name = key
        if plural == PODS.plural:
            pod: PodView | None = self._pods.get(namespace, name)
            if pod is not None and not pod.finished and not pod.going:
                await self._make_claims_of_pod(pod)
        elif plural == POD_GROUPS.plural:
            group: UnstructuredObject | None = self._groups.get(namespace, name)
            if group is not None and group.metadata.deletion_timestamp is None:
                await self._make_claims_of_group(group)
        else:
            claim: UnstructuredObject | None = self._claims.get(namespace, name)
            if claim is not None:
                await self._review(claim)
        return None

    # --- making ------------------------------------------------------------------------------------

    async def _make_claims_of_pod(self, pod: PodView) -> None:
        group = _group_name(pod)
        found: UnstructuredObject | None = self._groups.get(pod.metadata.namespace, group) if group else None
        if group and found is None:
            return  # whether an entry is the group's cannot be known yet
        recorded = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
        names = dict(recorded)
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name is None:
                continue
            name = self._of_group(found, entry) if found is not None else None
            if name is None:
                name = await self._claim(pod.metadata, PODS, entry.name, entry.resource_claim_template_name, names)
            if not name:
                return  # of the group, which has not got it yet; or its template is missing
            names[entry.name] = name
        if names != recorded:
            await self._record(PODS, pod.metadata, names)
        for entry in pod.spec.resource_claims or ():
            if pod.spec.node_name:
                await self._reserve_for_placed(pod, found, entry, names)

    def _of_group(self, group: UnstructuredObject, entry: PodResourceClaim) -> str | None:
        """The group's claim that a member's entry stands for: empty until it is made, None for an entry of its own."""
        listed: list[JSON] = group.spec.get("resourceClaims") or []
        if not self.context.gates.enabled(GROUP_CLAIMS) or not any(same_entry(entry, each) for each in listed):
            return None
        statuses: list[JSON] = group.status.get("resourceClaimStatuses") or []
        made = {str(each.get("name")): str(each.get("resourceClaimName") or "") for each in statuses}
        return made.get(entry.name, "")

    async def _make_claims_of_group(self, group: UnstructuredObject) -> None:
        if not self.context.gates.enabled(GROUP_CLAIMS):
            return
        statuses: list[JSON] = group.status.get("resourceClaimStatuses") or []
        recorded = {str(each.get("name")): each.get("resourceClaimName") for each in statuses}
        names = dict(recorded)
        entries: list[JSON] = group.spec.get("resourceClaims") or []
        for entry in entries:
            template = entry.get("resourceClaimTemplateName")
            if template:
                name = await self._claim(group.metadata, POD_GROUPS, str(entry["name"]), template, names)
                if not name:
                    return
                names[str(entry["name"])] = name
        if names != recorded:
            await self._record(POD_GROUPS, group.metadata, names)
        self._add_members(group.metadata.namespace, group.metadata.name)

    async def _claim(
        self, owner: ObjectMeta, kind: Resource, entry: str, template: str, recorded: dict[str, str | None]
    ) -> str | None:
        """The name of the claim for an entry, made from its template if there is none; None if it cannot be made."""
        name = recorded.get(entry)
        known: UnstructuredObject | None = self._claims.get(owner.namespace, name) if name else None
        if entry in recorded and (name is None or (known is not None and made_for(known, owner, entry))):
            return name
        for claim in self._made_for.get(owner.uid):
            if made_for(claim, owner, entry) and claim.metadata.deletion_timestamp is None:
                return claim.metadata.name
        found: UnstructuredObject | None = self._templates.get(owner.namespace, template)
        if found is None:
            waiting = self._waiting.setdefault((owner.namespace, template), set())
            waiting.add((kind.plural, owner.namespace, owner.name))
            await self._failed(owner, kind, entry, f'resourceclaimtemplate "{template}" not found')
            return None
        if name and await self._exists(owner.namespace, name):
            return name  # newer than what the watch has shown
        try:
            made = await self.client.create(RESOURCE_CLAIMS, claim_from(found, owner, kind, entry), owner.namespace)
        except ApiError as error:
            await self._failed(owner, kind, entry, error.message)
            raise
        return str(made["metadata"]["name"])

    async def _exists(self, namespace: str, name: str) -> bool:
        try:
            await self.client.get(RESOURCE_CLAIMS, name, namespace)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    async def _failed(self, owner: ObjectMeta, kind: Resource, entry: str, why: str) -> None:
        prefix = "PodResourceClaim" if kind is PODS else "PodGroupResourceClaim"
        await self.events.warning(kind, owner, "FailedResourceClaimCreation", f"{prefix} {entry}: {why}")

    async def _record(self, kind: Resource, owner: ObjectMeta, names: dict[str, str | None]) -> None:
        statuses = [
            {"name": entry, **({"resourceClaimName": name} if name else {})} for entry, name in sorted(names.items())
        ]
        patch: JSON = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": owner.name, "namespace": owner.namespace, "uid": owner.uid},
            "status": {"resourceClaimStatuses": statuses},
        }
        await self.client.patch(
            kind,
            owner.name,
            patch,
            owner.namespace,
            type="apply",
            subresource="status",
            field_manager=FIELD_MANAGER,
            force=True,
        )

    async def _reserve_for_placed(
        self, pod: PodView, group: UnstructuredObject | None, entry: PodResourceClaim, names: dict[str, str | None]
    ) -> None:
        """Somebody bound a pod by hand: an allocated claim is reserved for it, never allocated."""
        name = entry.resource_claim_name or names.get(entry.name)
        claim: UnstructuredObject | None = self._claims.get(pod.metadata.namespace, name) if name else None
        if claim is None or not claim.status.get("allocation"):
            return
        of_group = group is not None and self._of_group(group, entry) is not None
        consumer = consumer_of(POD_GROUPS, group.metadata) if of_group and group else consumer_of(PODS, pod.metadata)
        reserved = _consumers(claim)
        if all(each.get("uid") != consumer["uid"] for each in reserved):
            await self._write_status(claim, {**claim.status, "reservedFor": [*reserved, consumer]})

    # --- giving back -------------------------------------------------------------------------------

    async def _review(self, claim: UnstructuredObject) -> None:
        """Forget consumers that are gone; without any, the devices are free again."""
        consumers = _consumers(claim)
        left = [each for each in consumers if await self._counts(claim.metadata.namespace, each)]
        protected = CLAIM_FINALIZER in (claim.metadata.finalizers or ())
        leaving = claim.metadata.deletion_timestamp is not None
        if len(left) < len(consumers) or (leaving and protected and not left and claim.status.get("allocation")):
            status = {**claim.status, "reservedFor": left}
            if not left:
                del status["reservedFor"]
                if protected:
                    status.pop("allocation", None)
                    status.pop("devices", None)
            await self._write_status(claim, status)
            return
        if not left and protected and not claim.status.get("allocation"):
            await remove_finalizer(self.client, RESOURCE_CLAIMS, claim.metadata, CLAIM_FINALIZER)
            return
        if not left and not leaving and await self._owner_is_done(claim):
            await self._delete(claim)

    async def _counts(self, namespace: str, consumer: JSON) -> bool:
        """Whether something that a claim is reserved for still needs it. Kinds that we do not know always do."""
        name, uid = str(consumer.get("name")), consumer.get("uid")
        if is_group(consumer):
            group: UnstructuredObject | None = self._groups.get(namespace, name)
            if group is None:
                return await self._live_uid(POD_GROUPS, namespace, name) == uid
            return group.metadata.uid == uid
        if not is_pod(consumer):
            return True
        pod: PodView | None = self._pods.get(namespace, name)
        if pod is None:
            return await self._live_uid(PODS, namespace, name) == uid
        return pod.metadata.uid == uid and not _is_done(pod)

    async def _live_uid(self, kind: Resource, namespace: str, name: str) -> str:
        """The uid of an object that the watch may not have shown yet; empty if there is none."""
        try:
            found = await self.client.get(kind, name, namespace)
        except ApiError as error:
            if error.code == 404:
                return ""
            raise
        return str(found["metadata"].get("uid"))

    async def _owner_is_done(self, claim: UnstructuredObject) -> bool:
        owner = controller_of(claim.metadata)
        if owner is None or owner.kind != PODS.kind:
            return False
        pod: PodView | None = self._pods.get(claim.metadata.namespace, owner.name)
        if pod is None:
            return await self._live_uid(PODS, claim.metadata.namespace, owner.name) != owner.uid
        return pod.metadata.uid != owner.uid or _is_done(pod)

    async def _delete(self, claim: UnstructuredObject) -> None:
        try:
            await self.client.delete(
                RESOURCE_CLAIMS, claim.metadata.name, claim.metadata.namespace, uid=claim.metadata.uid
            )
        except ApiError as error:
            if error.code != 404:
                raise

    async def _write_status(self, claim: UnstructuredObject, status: JSON) -> None:
        meta = claim.metadata
        current = await self.client.get(RESOURCE_CLAIMS, meta.name, meta.namespace)
        if current["metadata"].get("resourceVersion") != meta.resource_version:
            return  # another version is on its way here
        await self.client.update(RESOURCE_CLAIMS, {**current, "status": status}, subresource="status")


def _consumers(claim: UnstructuredObject) -> list[JSON]:
    return claim.status.get("reservedFor") or []


def _is_done(pod: PodView) -> bool:
    """Ended, or deleted before it was placed; a pod that still runs keeps its devices until it is gone."""
    return pod.finished or (pod.going and not pod.spec.node_name)


def _group_name(pod: PodView) -> str:
    group = pod.spec.scheduling_group
    return (group.pod_group_name or "") if group is not None else ""


def _group_of(pod: PodView) -> tuple[str, str] | None:
    name = _group_name(pod)
    return (pod.metadata.namespace, name) if name and pod.spec.resource_claims else None


def _claim_names(pod: PodView) -> Iterable[str]:
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
    for entry in pod.spec.resource_claims or ():
        name = entry.resource_claim_name or made.get(entry.name)
        if name:
            yield name
