"""StatefulSets: pods with names of their own and claims of their own, made and replaced in order.

`OrderedReady` makes one pod at a time, each after all before it are available, and removes them in reverse order.
`Parallel` makes and removes all at once. A new template replaces pods from the highest ordinal down to the partition,
at most `maxUnavailable` of them at a time.
"""

from __future__ import annotations

from collections.abc import Callable

from muster.api.errors import ApiError
from muster.api.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from muster.controllers.objects import PodView, RevisionView, UnstructuredObject, available_in, json_of
from muster.controllers.pod_control import PodWords
from muster.controllers.pod_owner import RevisionedPodOwner
from muster.controllers.revisions import HASH_LABEL, template_of
from muster.controllers.rolling_limits import rolling_limit
from muster.controllers.stateful_pods import (
    claim_names,
    claim_owners,
    claims_for,
    first_ordinal,
    ordinal_of,
    pod_for,
    pod_name,
)
from muster.controllers.status import JSON, write_status

_CLAIM_SECONDS = 1.0  # until it is looked again whether a claim that is being deleted is gone
_WORDS = PodWords(
    created="create Pod {pod} in StatefulSet {owner} successful",
    not_created="create Pod {pod} in StatefulSet {owner} failed error: {error}",
    deleted="delete Pod {pod} in StatefulSet {owner} successful",
)


class StatefulSetController(RevisionedPodOwner):
    name = "statefulset-controller"
    workers = 4
    resource = STATEFUL_SETS
    words = _WORDS

    def setup(self) -> None:
        super().setup()
        self.claims = self.watch(PERSISTENT_VOLUME_CLAIMS)

    def belongs(self, owner: UnstructuredObject) -> Callable[[PodView], bool]:
        """Those of its labels that have one of its names."""
        selected = super().belongs(owner)
        return lambda pod: ordinal_of(owner, pod.metadata.name) is not None and selected(pod)

    async def roll_out(
        self, found: UnstructuredObject, known: list[RevisionView], update: RevisionView
    ) -> float | None:
        named = found.status.get("currentRevision")
        current = next((each for each in known if each.metadata.name == named), update)
        return await _Reconciliation(self, found, current, update).run(known)


class _Reconciliation:
    """One reconciliation of one StatefulSet."""

    def __init__(
        self, controller: StatefulSetController, found: UnstructuredObject, current: RevisionView, update: RevisionView
    ) -> None:
        self.controller = controller
        self.control = controller.control
        self.set = found
        self.current, self.update = current, update
        self.now = controller.clock.now()
        self.start = first_ordinal(found)
        self.wanted = int(found.spec.get("replicas", 1))
        self.settle = float(found.spec.get("minReadySeconds") or 0)
        self.ordered = found.spec.get("podManagementPolicy") != "Parallel"
        self.strategy: JSON = found.spec.get("updateStrategy") or {}
        self.rolling: JSON = self.strategy.get("rollingUpdate") or {}
        self._sort_pods()

    def _sort_pods(self) -> None:
        """The pods by ordinal: those in the wanted range, and those that have to go, highest first."""
        numbered: dict[int, PodView] = {}
        for pod in self.control.pods_of(self.set.metadata.uid):
            ordinal = ordinal_of(self.set, pod.metadata.name)
            if ordinal is not None:
                numbered[ordinal] = pod
        inside = range(self.start, self.start + self.wanted)
        self.replicas = {ordinal: numbered[ordinal] for ordinal in inside if ordinal in numbered}
        self.condemned = {each: numbered[each] for each in sorted(numbered, reverse=True) if each not in inside}

    async def run(self, known: list[RevisionView]) -> float | None:
        if await self._fill() and await self._shrink() and self.strategy.get("type") != "OnDelete":
            await self._roll()
        self._sort_pods()
        status = self._status()
        await write_status(self.controller.client, STATEFUL_SETS, self.set, status)
        pods = (*self.replicas.values(), *self.condemned.values())
        live = {status["currentRevision"], status["updateRevision"], *map(_revision_of, pods)}
        await self.controller.revisions.prune(self.set, known, live)
        waits = (self._available_in(pod) for pod in pods)
        return min((each for each in waits if each), default=None)

    # Which pods there are

    async def _fill(self) -> bool:
        """Make what is missing and replace what has ended; whether the next step may be taken."""
        missing: list[int] = []
        for ordinal in range(self.start, self.start + self.wanted):
            pod = self.replicas.get(ordinal)
            if pod is None:
                missing.append(ordinal)
            elif pod.finished:
                await self.control.delete([pod], self.set.metadata)
            else:
                await self._ensure_claims(ordinal, pod)
            if self.ordered and (pod is None or not self._healthy(pod)):
                break
        if missing:
            await self._create(missing)
        return not self.ordered or self._all_healthy()

    def _all_healthy(self) -> bool:
        return len(self.replicas) == self.wanted and all(map(self._healthy, self.replicas.values()))

    async def _create(self, ordinals: list[int]) -> None:
        """Create pods with their claims; a claim that is being deleted has to be gone first."""
        ready: list[JSON] = []
        for ordinal in ordinals:
            if await self._ensure_claims(ordinal, None):
                revision = self._revision_for(ordinal)
                ready.append(pod_for(self.set, ordinal, template_of(revision), revision.metadata.name))
        await self.control.create(self.set.metadata, ready)
        if len(ready) < len(ordinals):
            self.controller.queue.add_after((self.set.metadata.namespace, self.set.metadata.name), _CLAIM_SECONDS)

    def _revision_for(self, ordinal: int) -> RevisionView:
        """Which revision a new pod is of: below the partition the one the set had before."""
        partition = int(self.rolling.get("partition") or 0)
        if self.strategy.get("type") == "RollingUpdate" and ordinal < self.start + partition:
            return self.current
        return self.update

    async def _shrink(self) -> bool:
        """Remove pods beyond the wanted number, the highest first; whether none is left."""
        for ordinal, pod in self.condemned.items():
            await self._ensure_claim_owners(ordinal, pod, condemned=True)
        lowest_unhealthy = next((each for each in reversed(self.condemned.values()) if not self._healthy(each)), None)
        for pod in self.condemned.values():
            if self.control.going(pod):
                if self.ordered:
                    return False
                continue
            if self.ordered and not self._healthy(pod) and pod is not lowest_unhealthy:
                return False
            await self.control.delete([pod], self.set.metadata)
            if self.ordered:
                return False
        return not self.condemned

    async def _roll(self) -> None:
        """Delete pods of older revisions, the highest ordinal first; they come back with the new one."""
        room = rolling_limit(self.rolling.get("maxUnavailable", 1), self.wanted, round_up=False, least=1)
        lowest = self.start + int(self.rolling.get("partition") or 0)
        for ordinal in range(self.start + self.wanted - 1, lowest - 1, -1):
            pod = self.replicas.get(ordinal)
            old = pod is not None and _revision_of(pod) != self.update.metadata.name and not self.control.going(pod)
            if pod is None or old or not self._healthy(pod):
                room -= 1
            if pod is not None and old:
                await self.control.delete([pod], self.set.metadata)
            if room <= 0:
                return

    # Claims

    async def _ensure_claims(self, ordinal: int, pod: PodView | None) -> bool:
        """Create claims that are missing; False while one of them is being deleted."""
        for claim in claims_for(self.set, ordinal):
            name: str = claim["metadata"]["name"]
            known: UnstructuredObject | None = self.controller.claims.get(self.set.metadata.namespace, name)
            if known is not None and known.metadata.deletion_timestamp is not None and pod is None:
                return False
            if known is None:
                await self._create_claim(name, claim, ordinal)
        if pod is not None:
            await self._ensure_claim_owners(ordinal, pod, condemned=False)
        return True

    async def _create_claim(self, name: str, claim: JSON, ordinal: int) -> None:
        meta, pod = self.set.metadata, pod_name(self.set, ordinal)
        said = f"create Claim {name} Pod {pod} in StatefulSet {meta.name}"
        try:
            await self.controller.client.create(PERSISTENT_VOLUME_CLAIMS, claim, meta.namespace)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return
            text = f"{said} failed error: {error}"
            await self.controller.events.warning(STATEFUL_SETS, meta, "FailedCreate", text)
            raise
        await self.controller.events.normal(STATEFUL_SETS, meta, "SuccessfulCreate", f"{said} success")

    async def _ensure_claim_owners(self, ordinal: int, pod: PodView, *, condemned: bool) -> None:
        for name in claim_names(self.set, ordinal).values():
            claim: UnstructuredObject | None = self.controller.claims.get(self.set.metadata.namespace, name)
            if claim is None or claim.metadata.deletion_timestamp is not None:
                continue
            owners = claim_owners(self.set, claim, ordinal, pod, condemned=condemned)
            if owners != [json_of(each) for each in claim.metadata.owner_references or ()]:
                version = claim.metadata.resource_version
                patch = {"metadata": {"resourceVersion": version, "ownerReferences": owners or None}}
                await self.controller.client.patch(PERSISTENT_VOLUME_CLAIMS, name, patch, self.set.metadata.namespace)

    # What is said

    def _available_in(self, pod: PodView) -> float | None:
        """Seconds until a pod counts as available; None where waiting alone does not help."""
        if pod.status.phase != "Running" or self.control.going(pod):
            return None
        return available_in(pod, self.settle, self.now)

    def _healthy(self, pod: PodView) -> bool:
        return self._available_in(pod) == 0

    def _status(self) -> JSON:
        pods = [*self.replicas.values(), *self.condemned.values()]
        present = [_revision_of(pod) for pod in pods if not self.control.going(pod)]
        ready = [pod for pod in pods if pod.status.phase == "Running" and pod.ready]
        numbers = {
            "readyReplicas": len(ready),
            "currentReplicas": present.count(self.current.metadata.name),
            "updatedReplicas": present.count(self.update.metadata.name),
        }
        current = self.current.metadata.name
        if self.strategy.get("type") == "RollingUpdate" and numbers["updatedReplicas"] == len(pods) == len(ready):
            numbers["currentReplicas"], current = numbers["updatedReplicas"], self.update.metadata.name
        status: JSON = {
            "observedGeneration": self.set.metadata.generation,
            "replicas": len(pods),
            "availableReplicas": sum(1 for pod in ready if available_in(pod, self.settle, self.now) == 0),
            "currentRevision": current,
            "updateRevision": self.update.metadata.name,
            "collisionCount": int(self.set.status.get("collisionCount") or 0),
        }
        if self.set.status.get("conditions"):
            status["conditions"] = self.set.status["conditions"]
        return status | {key: number for key, number in numbers.items() if number}


def _revision_of(pod: PodView) -> str:
    return (pod.metadata.labels or {}).get(HASH_LABEL, "")
