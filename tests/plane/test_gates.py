"""Every gate off, alone and in every legal combination: the plane works; off and on again on one data directory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.plane.test_plane import until

from muster.api import gates
from muster.api.errors import ApiError
from muster.api.resources import COMPOSITE_POD_GROUPS, JOBS, POD_GROUPS, PODS, PRIORITY_CLASSES, WORKLOADS, Resource
from muster.client.protocol import Client
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.plane.options import NodeOptions, Options
from muster.plane.plane import Plane
from muster.scheduler.runtime.config import default_config
from muster.testing import a_composite, a_gang, a_pod, a_pod_group

SWITCHES = [name for name, gate in gates.KNOWN.items() if gate.has_effect and not gate.locked]
GROUPS = {gates.GENERIC_WORKLOAD, gates.GANG_SCHEDULING}
RACK = "topology.muster.dev/rack"
KINDS = (POD_GROUPS, COMPOSITE_POD_GROUPS, WORKLOADS, JOBS)


def options(*off: str, data: Path | None = None) -> Options:
    chosen = gates.parse(",".join(f"{name}=false" for name in off))[0]
    nodes = NodeOptions(2, nodes_per_rack=1)
    return Options(data=data, https=False, gates=chosen, nodes=nodes, freeze=False, workloads=False)


async def started(plane: Plane) -> Plane:
    async with asyncio.timeout(60):  # far more than it takes: it is about ever
        await plane.start()
    return plane


async def listed(client: Client, resource: Resource) -> dict[str, Any]:
    """The objects by name; empty where the kind is not served."""
    try:
        return {obj["metadata"]["name"]: obj for obj in (await client.list(resource, "default")).items}
    except ApiError as error:
        if error.code != 404:
            raise
        return {}


async def running(client: Client, prefix: str = "") -> set[str]:
    pods = await listed(client, PODS)
    return {name for name, pod in pods.items() if name.startswith(prefix) and pod["status"].get("phase") == "Running"}


async def until_running(client: Client, prefix: str, count: int) -> None:
    async def enough() -> bool:
        return len(await running(client, prefix)) == count

    await until(enough, 30)


async def create(client: Client, *objects: dict[str, Any]) -> None:
    resources = {"PodGroup": POD_GROUPS, "CompositePodGroup": COMPOSITE_POD_GROUPS, "Pod": PODS, "Job": JOBS}
    for obj in objects:
        await client.create(resources[obj["kind"]], obj, "default")


def a_tree(name: str) -> list[dict[str, Any]]:
    """Two gangs of two pods under one composite."""
    top = a_composite(name, min_groups=2)
    ref = {"workloadName": name, "templateName": "t"}
    top["spec"]["workloadRef"] = ref
    objects = [top]
    for leaf in (f"{name}-a", f"{name}-b"):
        objects.append(a_pod_group(leaf, min_count=2, parent=name, workloadRef=ref))
        objects += [a_pod(f"{leaf}-{i}", cpu="1", group=leaf) for i in range(2)]
    return objects


def a_job(name: str) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    spec = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


# --- ready -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", SWITCHES)
async def test_with_a_gate_off_the_plane_gets_ready_and_pods_run(off: str) -> None:
    await ready_and_working(off)


def legal_combinations() -> list[tuple[str, ...]]:
    """Every set of two and more gates that can be off together: a gate is off where one that it needs is."""
    found = {
        tuple(name for name in SWITCHES if not gates.resolve(dict.fromkeys(off, False))[0].enabled(name))
        for size in range(2, len(SWITCHES) + 1)
        for off in combinations(SWITCHES, size)
    }
    return sorted(found, key=lambda off: (len(off), off))


@pytest.mark.slow
@pytest.mark.parametrize("off", legal_combinations(), ids="-".join)
async def test_with_several_gates_off_as_well(off: tuple[str, ...]) -> None:
    await ready_and_working(*off)


async def ready_and_working(*off: str) -> None:
    plane = await started(Plane(options(*off)))
    try:
        client = plane.client
        await create(client, a_pod("single"), a_job("j"))
        if gates.GENERIC_WORKLOAD not in off:
            await create(client, *a_gang("gang", 2))
            await until_running(client, "gang-", 2)
        await until_running(client, "single", 1)
        await until_running(client, "j-", 2)
        assert await plane.client.request("GET", "/version")
    finally:
        await plane.stop()


# --- a scheduler whose gates are off, on a server whose gates are on --------------------------------


@asynccontextmanager
async def scheduler_without(gate: str) -> AsyncIterator[Client]:
    """A server with everything on, and a scheduler of its own without one gate."""
    chosen = gates.parse(f"{gate}=false")[0]
    wanted = replace(options(), scheduler=False)
    async with Plane(wanted) as plane:
        engine = Engine(plane.client, default_config("default-scheduler"), Settings(gates=chosen))
        work = asyncio.create_task(engine.run())
        try:
            yield plane.client
        finally:
            engine.stop()
            await work


async def test_without_composites_a_scheduler_ignores_parents_on_any_server() -> None:
    async with scheduler_without(gates.COMPOSITE) as client:
        await create(client, a_pod_group("g", min_count=2, parent="nowhere"))
        await create(client, *[a_pod(f"g-{i}", group="g") for i in range(2)])
        await until_running(client, "g-", 2)

        assert (await listed(client, POD_GROUPS))["g"]["spec"]["parentCompositePodGroupName"] == "nowhere"
        await create(client, a_pod_group("short", min_count=2, parent="nowhere"), a_pod("short-0", group="short"))
        await create(client, a_pod("single"))
        await until_running(client, "single", 1)
        assert await running(client, "short") == set(), "it is a gang still"


async def test_without_topology_a_scheduler_ignores_constraints_on_any_server() -> None:
    async with scheduler_without(gates.TOPOLOGY) as client:
        rack = {"topology": [{"key": RACK}]}
        await create(client, a_pod_group("g", min_count=2, schedulingConstraints=rack))
        await create(client, *[a_pod(f"g-{i}", cpu="40", group="g") for i in range(2)])
        await until_running(client, "g-", 2)

        assert (await listed(client, POD_GROUPS))["g"]["spec"]["schedulingConstraints"] == rack


async def test_without_preemption_policies_of_groups_members_need_not_agree_with_them() -> None:
    polite = {"metadata": {"name": "polite"}, "value": 0, "preemptionPolicy": "Never"}
    async with scheduler_without(gates.PREEMPTION_POLICY) as client:
        await client.create(PRIORITY_CLASSES, polite)
        await create(client, a_pod_group("g", min_count=1), a_pod("g-0", group="g", priorityClassName="polite"))
        await until_running(client, "g-", 1)

        assert (await listed(client, POD_GROUPS))["g"]["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


# --- off and on again ------------------------------------------------------------------------------

# Groups that wait while everything is on, and the gates without which there is nothing to wait for.
WAITING = {
    "short-": GROUPS,  # one of three members exists
    "orphan-": GROUPS | {gates.COMPOSITE, gates.TOPOLOGY},  # its parent does not exist
    "split-": GROUPS | {gates.TOPOLOGY},  # no rack has room for both
}


async def fill(client: Client) -> None:
    """Everything that gates are about: running and waiting."""
    await create(client, *a_tree("tree"), a_job("job"))
    await create(client, a_pod_group("short", min_count=3), a_pod("short-0", cpu="1", group="short"))
    await create(client, a_pod_group("orphan", min_count=1, parent="nowhere"), a_pod("orphan-0", group="orphan"))
    rack = {"topology": [{"key": RACK}]}
    await create(client, a_pod_group("split", min_count=2, schedulingConstraints=rack, resourceClaims=CLAIMS))
    await create(client, *[a_pod(f"split-{i}", cpu="40", group="split") for i in range(2)])
    await until_running(client, "tree-", 4)
    await until_running(client, "job-", 2)


CLAIMS = [{"name": "c", "resourceClaimName": "claim"}]


async def stored(client: Client) -> dict[tuple[str, str], Any]:
    """What people wrote of every object: its spec."""
    found = {each: await listed(client, each) for each in KINDS}
    return {(each.kind, name): obj["spec"] for each, objects in found.items() for name, obj in objects.items()}


async def seats(client: Client, names: set[str]) -> dict[str, tuple[str, str]]:
    pods = await listed(client, PODS)
    return {name: (pods[name]["metadata"]["uid"], pods[name]["spec"]["nodeName"]) for name in names}


async def no_groups(client: Client) -> None:
    assert await listed(client, POD_GROUPS) == {}
    await create(client, a_pod("new", group="any"))
    assert "schedulingGroup" not in (await listed(client, PODS))["new"]["spec"]


async def members_are_single_pods(client: Client) -> None:
    await create(client, a_pod_group("late", min_count=3), a_pod("late-0", group="late"))
    await until_running(client, "late-", 1)
    assert (await listed(client, PODS))["late-0"]["spec"]["schedulingGroup"] == {"podGroupName": "late"}


async def groups_evict_nobody(client: Client) -> None:
    await create(client, *[a_pod(f"low-{i}", cpu="55") for i in range(2)])
    await until_running(client, "low-", 2)
    await client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    await create(client, a_pod_group("urgent", min_count=2, priorityClassName="high"))
    await create(client, *[a_pod(f"urgent-{i}", cpu="55", group="urgent", priorityClassName="high") for i in range(2)])

    async def refused() -> bool:
        conditions = (await listed(client, POD_GROUPS))["urgent"]["status"].get("conditions") or []
        return "Unschedulable" in [each["reason"] for each in conditions]

    await until(refused, 30)
    assert await running(client, "low-") == {"low-0", "low-1"}
    # A single pod still evicts, as kube-scheduler's does.
    await create(client, a_pod("alone", cpu="55", priorityClassName="high"))
    await until_running(client, "alone", 1)


def new_groups_lack(field: str, value: Any) -> Callable[[Client], Awaitable[None]]:
    async def probe(client: Client) -> None:
        await create(client, a_pod_group("fresh", min_count=1, **{"workloadRef": REF, field: value}))
        assert field not in (await listed(client, POD_GROUPS))["fresh"]["spec"]

    return probe


REF = {"workloadName": "w", "templateName": "t"}


async def no_trees(client: Client) -> None:
    assert await listed(client, COMPOSITE_POD_GROUPS) == {}
    await new_groups_lack("parentCompositePodGroupName", "tree")(client)
    # A member that is lost and replaced has a group, and that group alone to wait for.
    await client.delete(PODS, "tree-a-0", "default")
    await client.delete(PODS, "tree-a-1", "default")
    await until_running(client, "tree-a", 0)
    await create(client, *[a_pod(f"tree-a-{i}", cpu="1", group="tree-a") for i in range(2, 4)])
    await until_running(client, "tree-a", 2)


async def jobs_have_no_groups(client: Client) -> None:
    await create(client, a_job("new"))
    await until_running(client, "new-", 2)
    pods = await listed(client, PODS)
    assert all("schedulingGroup" not in pod["spec"] for name, pod in pods.items() if name.startswith("new-"))


async def jobs_are_no_gangs(client: Client) -> None:
    await create(client, a_job("new"))
    await until_running(client, "new-", 2)
    found = [obj for name, obj in (await listed(client, POD_GROUPS)).items() if name.startswith("new-")]
    assert [obj["spec"]["schedulingPolicy"] for obj in found] == [{"basic": {}}]


PROBES: dict[str, Callable[[Client], Awaitable[None]]] = {
    gates.GENERIC_WORKLOAD: no_groups,
    gates.GANG_SCHEDULING: members_are_single_pods,
    gates.WORKLOAD_AWARE_PREEMPTION: groups_evict_nobody,
    gates.TOPOLOGY: new_groups_lack("schedulingConstraints", {"topology": [{"key": RACK}]}),
    gates.COMPOSITE: no_trees,
    gates.PREEMPTION_POLICY: new_groups_lack("preemptionPolicy", "PreemptLowerPriority"),
    gates.RESOURCE_CLAIMS: new_groups_lack("resourceClaims", CLAIMS),
    gates.WORKLOAD_WITH_JOB: jobs_have_no_groups,
    gates.INFER_JOB_GANG: jobs_are_no_gangs,
}


def test_every_gate_is_walked() -> None:
    assert set(PROBES) == set(SWITCHES)


@pytest.mark.slow
@pytest.mark.parametrize("gate", SWITCHES)
async def test_off_and_on_again_on_one_data_directory(gate: str, tmp_path: Path) -> None:
    plane = await started(Plane(options(data=tmp_path)))
    try:
        await fill(plane.client)
        objects, placed = await stored(plane.client), await seats(plane.client, await running(plane.client))
    finally:
        await plane.stop()

    plane = await started(Plane(options(gate, data=tmp_path)))
    try:
        client = plane.client
        assert await seats(client, set(placed)) == placed, "running gangs are untouched"
        assert await running(client) >= set(placed)
        assert (await stored(client)).items() <= objects.items(), "objects keep their fields"
        for prefix, off in WAITING.items():
            if gate in off:
                await until_running(client, prefix, 2 if prefix == "split-" else 1)
        await PROBES[gate](client)
        waiting = [prefix for prefix, off in WAITING.items() if gate not in off]
        assert [prefix for prefix in waiting if await running(client, prefix)] == []
        kept = {name: seat for name, seat in placed.items() if not name.startswith("tree-a")}
    finally:
        await plane.stop()

    plane = await started(Plane(options(data=tmp_path)))
    try:
        client = plane.client
        assert await seats(client, set(kept)) == kept
        assert objects.items() <= (await stored(client)).items()
        await create(client, *a_tree("again"), a_pod_group("new-short", min_count=3), a_pod("ns-0", group="new-short"))
        await until_running(client, "again-", 4)
        assert await running(client, "ns-") == set()
    finally:
        await plane.stop()
