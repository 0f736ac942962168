"""Runs scenario files against an API server, whichever it is, and plays the kubelets.

A scenario says what happens and what must be seen. Four places can run it: `embedded` (Muster's own server), `native`
(a real one with the group API, whose Job controller makes groups), `native-without-jobs` (the same with that switched
off) and `crds` (a real one with Muster's custom resources).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from muster.api import resources as r
from muster.api.errors import ApiError
from muster.api.membership import JOB_SETS, LEADER_WORKER_SETS
from muster.api.resources import Resource
from muster.client.protocol import Client
from tests.build.scenario_objects import API, CRD_API, ShortForms
from tests.scenarios.checks import KINDS, Obj, Seen, failure

FOLDER = Path(__file__).parent
EMBEDDED, NATIVE, CRDS = "embedded", "native", "crds"
NATIVE_WITHOUT_JOBS = "native-without-jobs"
DELETED = {
    "pods": "Pod",
    "groups": "PodGroup",
    "composites": "CompositePodGroup",
    "nodes": "Node",
    "jobs": "Job",
    "jobsets": "JobSet",
    "lws": "LeaderWorkerSet",
}
POLL_SECONDS = 0.05
FINALIZED = ("PodGroup", "CompositePodGroup")


def scenario_files(place: str) -> list[Path]:
    """The scenarios that a place can run, by name."""
    every = sorted(FOLDER.glob("*/*.yaml"))
    return [file for file in every if place in read(file).get("places", (EMBEDDED, NATIVE, CRDS))]


def scenario_id(file: Path) -> str:
    return str(file.relative_to(FOLDER).with_suffix(""))


def read(file: Path) -> Obj:
    scenario: Obj = yaml.safe_load(file.read_text())
    return scenario


class ScenarioFailed(AssertionError):
    """What the scenario expected was not seen."""


@dataclass
class ScenarioRun:
    """One scenario in one namespace of one server."""

    client: Client
    place: str
    namespace: str
    scheduler: str | None = None
    patience: float = 30.0  # seconds that a `wait` may take
    created_pods: list[str] = field(default_factory=list)
    cluster_wide: list[tuple[str, str]] = field(default_factory=list)
    kubelet_runs: bool = True

    def __post_init__(self) -> None:
        self.forms = ShortForms(self.namespace, crds=self.place == CRDS, scheduler=self.scheduler)

    async def run(self, scenario: Obj) -> None:
        """Everything that a scenario says, in order; what was made is removed in the end."""
        await self.client.create(r.NAMESPACES, {"metadata": {"name": self.namespace}})
        kubelet = asyncio.create_task(self._play_kubelet())
        try:
            await self._set_up(scenario.get("cluster") or {})
            for number, step in enumerate(scenario["steps"], 1):
                await self._step(number, dict(step))
        finally:
            kubelet.cancel()
            await asyncio.gather(kubelet, return_exceptions=True)
            await self._clean()

    async def _set_up(self, cluster: Obj) -> None:
        for name, value in (cluster.get("priorityClasses") or {}).items():
            await self._create(
                {"priorityClass": {"name": name, **(value if isinstance(value, dict) else {"value": value})}}
            )
        for item in cluster.get("nodes") or ():
            await self._create({"nodes": item})

    async def _step(self, number: int, step: Obj) -> None:
        places = step.pop("at", self.place)
        note = step.pop("note", "")
        if self.place not in (places if isinstance(places, list) else [places]):
            return
        ((action, what),) = step.items()
        try:
            await getattr(self, f"_do_{action}")(what)
        except ScenarioFailed as error:
            raise ScenarioFailed(f"step {number} ({action}) {note}: {error}") from None

    # --- objects -----------------------------------------------------------------------------------

    def resource(self, kind: str) -> Resource:
        group, version = (CRD_API, "v1alpha3") if self.place == CRDS else (API, "v1beta1")
        groups = {
            "Workload": Resource(group, version, "workloads", "Workload", True),
            "PodGroup": Resource(group, version, "podgroups", "PodGroup", True),
            "CompositePodGroup": Resource(group, "v1alpha3", "compositepodgroups", "CompositePodGroup", True),
        }
        plain = {
            "Pod": r.PODS,
            "Node": r.NODES,
            "Job": r.JOBS,
            "JobSet": JOB_SETS,
            "LeaderWorkerSet": LEADER_WORKER_SETS,
            "PriorityClass": r.PRIORITY_CLASSES,
            "Event": r.EVENTS,
            "ResourceClaim": r.RESOURCE_CLAIMS,
            "ResourceClaimTemplate": r.RESOURCE_CLAIM_TEMPLATES,
            "ResourceSlice": r.RESOURCE_SLICES,
            "DeviceClass": r.DEVICE_CLASSES,
        }
        return (groups | plain)[kind]

    async def _create(self, entry: Obj) -> None:
        for obj in self.forms.build(entry):
            resource = self.resource(obj["kind"])
            status = obj.get("status")
            name = obj["metadata"]["name"]
            await self._admitted(resource, obj)
            if obj["kind"] == "Pod":
                self.created_pods.append(name)
            if not resource.namespaced:
                self.cluster_wide.append((obj["kind"], name))
            if status:
                await self.client.patch(resource, name, {"status": status}, subresource="status")

    async def _admitted(self, resource: Resource, obj: Obj) -> None:
        """Create; a real server learns of a new priority class or namespace a moment later."""
        namespace = self.namespace if resource.namespaced else None
        for _ in range(100):
            try:
                await self.client.create(resource, obj, namespace)
                return
            except ApiError as error:
                if error.code != 403 or "no PriorityClass" not in error.message:
                    raise
            await asyncio.sleep(POLL_SECONDS)
        raise ScenarioFailed(f"{obj['kind']} {obj['metadata']['name']} was not admitted")

    async def seen(self) -> Seen:
        """Everything of the scenario as it is stored now."""
        kinds = ("Pod", "PodGroup", "CompositePodGroup", "Workload", "Event", "Job", "ResourceClaim")
        found = await asyncio.gather(*(self._list(kind) for kind in kinds))
        objects = dict(zip(kinds, found, strict=True))
        objects["Node"] = (await self.client.list(r.NODES)).items
        names = [pod["metadata"]["name"] for pod in objects["Pod"]]
        self.created_pods += [name for name in names if name not in self.created_pods]  # those of Jobs
        return Seen(objects, self.created_pods)

    async def _list(self, kind: str) -> list[Obj]:
        """The objects of a kind; none where a gate keeps it from being served."""
        try:
            return (await self.client.list(self.resource(kind), self.namespace)).items
        except ApiError as error:
            if error.code != 404:
                raise
            return []

    # --- actions -----------------------------------------------------------------------------------

    async def _do_create(self, entries: list[Obj]) -> None:
        for entry in entries:
            try:
                await self._create(entry)
            except ApiError as error:
                raise ScenarioFailed(f"{entry} was refused: {error.message}") from error

    async def _do_patch(self, what: Obj) -> None:
        resource = self.resource(KINDS[what["kind"]])
        try:
            await self.client.patch(resource, what["name"], what["patch"], self.namespace)
        except ApiError as error:
            fields = [cause.get("field") for cause in error.details.get("causes") or ()]
            if error.code != what.get("status") or what.get("field") not in (None, *fields):
                raise ScenarioFailed(f"answered {error.code} at {fields}: {error.message}") from error
        else:
            if "status" in what:
                raise ScenarioFailed(f"accepted, expected {what['status']}")

    async def _do_delete(self, what: Obj) -> None:
        for key, names in what.items():
            found = (
                (await self.seen()).pods(names) if key == "pods" else (names if isinstance(names, list) else [names])
            )
            for name in found:
                await self._delete(DELETED[key], name)

    async def _delete(self, kind: str, name: str) -> None:
        resource = self.resource(kind)
        namespace = self.namespace if resource.namespaced else None
        try:
            policy = "Background" if kind in ("Job", "JobSet", "LeaderWorkerSet") else None
            await self.client.delete(resource, name, namespace, grace_period_seconds=0, propagation_policy=policy)
        except ApiError as error:
            if error.code != 404:
                raise

    async def _do_finish(self, what: Obj) -> None:
        for name in [name for name, pod in (await self.seen()).pods(what["pods"]).items() if pod is not None]:
            status = {"status": {"phase": what.get("phase", "Succeeded")}}
            await self.client.patch(r.PODS, name, status, self.namespace, subresource="status")

    async def _do_ungate(self, what: Obj) -> None:
        for name in (await self.seen()).pods(what["pods"]):
            await self.client.patch(r.PODS, name, {"spec": {"schedulingGates": None}}, self.namespace)

    async def _do_kubelet(self, what: Obj) -> None:
        self.kubelet_runs = what["run"]

    async def _do_wait(self, what: Obj) -> None:
        ends = time.monotonic() + what.get("timeout", self.patience)
        while (reason := failure(await self.seen(), what)) is not None:
            if time.monotonic() > ends:
                raise ScenarioFailed(f"{reason}\n{describe(await self.seen())}")
            await asyncio.sleep(POLL_SECONDS)

    async def _do_hold(self, what: Obj) -> None:
        ends = time.monotonic() + what.get("seconds", 1.0)
        while time.monotonic() < ends:
            reason = failure(await self.seen(), what)
            if reason is not None:
                raise ScenarioFailed(f"{reason}\n{describe(await self.seen())}")
            await asyncio.sleep(POLL_SECONDS)

    async def _do_expect(self, what: Obj) -> None:
        reason = failure(await self.seen(), what)
        if reason is not None:
            raise ScenarioFailed(f"{reason}\n{describe(await self.seen())}")

    # --- kubelets ----------------------------------------------------------------------------------

    async def _play_kubelet(self) -> None:
        """Bound pods run, terminating ones are gone a moment later."""
        while True:
            for pod in (await self.client.list(r.PODS, self.namespace)).items:
                name = pod["metadata"]["name"]
                try:
                    if pod["metadata"].get("deletionTimestamp"):
                        await self._delete("Pod", name)
                    elif self.kubelet_runs and pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                        ready = {"type": "Ready", "status": "True"}
                        status = {"status": {"phase": "Running", "conditions": [ready]}}
                        await self.client.patch(
                            r.PODS, name, status, self.namespace, type="strategic", subresource="status"
                        )
                except ApiError:
                    continue  # it has changed meanwhile and is looked at again
            await asyncio.sleep(POLL_SECONDS)

    # --- the end -----------------------------------------------------------------------------------

    async def _clean(self) -> None:
        kinds = (
            "JobSet",
            "LeaderWorkerSet",
            "Job",
            "Pod",
            "PodGroup",
            "CompositePodGroup",
            "Workload",
            "ResourceClaim",
        )
        for kind in kinds:
            for _ in range(200):
                left = await self._list(kind)
                for obj in left:
                    await self._delete(kind, obj["metadata"]["name"])
                    if kind in FINALIZED and obj["metadata"].get("deletionTimestamp"):
                        await self._unprotect(kind, obj["metadata"]["name"])
                if not left:
                    break
                await asyncio.sleep(POLL_SECONDS)
        for kind, name in self.cluster_wide:
            await self._delete(kind, name)

    async def _unprotect(self, kind: str, name: str) -> None:
        try:
            await self.client.patch(self.resource(kind), name, {"metadata": {"finalizers": None}}, self.namespace)
        except ApiError:
            return  # gone by itself


def describe(seen: Seen) -> str:
    """What pods and groups say, for a failed scenario."""
    lines: list[str] = []
    for kind in ("CompositePodGroup", "PodGroup", "Pod"):
        for name, obj in seen.objects[kind].items():
            conditions = (obj.get("status") or {}).get("conditions") or ()
            said = [f"{c['type']}={c['status']}/{c.get('reason')}: {c.get('message', '')}" for c in conditions]
            lines.append(f"{kind} {name} {obj['spec'].get('nodeName', '') if kind == 'Pod' else ''} {said}")
    return "\n".join(lines)
