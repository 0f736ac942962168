"""The groups of Jobs: which Jobs get one, of which form, who owns it, and how it follows its Job or its parent."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api import gates
from muster.api.errors import ApiError
from muster.api.job_gangs import GANG_ANNOTATION
from muster.api.resources import CONFIG_MAPS, CORE_EVENTS, JOBS, POD_GROUPS, PODS, PRIORITY_CLASSES, WORKLOADS
from muster.controllers import ControllerManager
from muster.controllers.job_group_objects import PARENT_ANNOTATION, TEMPLATE_ANNOTATION, group_name_of, safe_hash
from tests.controllers.conftest import World

NAME = "job-controller"
INDEXED = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}


async def groups(world: World) -> list[Any]:
    return (await world.client.list(POD_GROUPS, "default")).items


async def workloads(world: World) -> list[Any]:
    return (await world.client.list(WORKLOADS, "default")).items


async def policy(world: World) -> Any:
    (group,) = await groups(world)
    return group["spec"]["schedulingPolicy"]


async def start(world: World, features: str) -> None:
    """The Job controller with other gates."""
    chosen = gates.parse(features)[0]
    world.manager = ControllerManager(world.client, clock=world.clock, which=[NAME], gates=chosen)
    world.follow(world.manager.run())
    await world.manager.ready.wait()


async def reasons(world: World) -> dict[str, str]:
    return {event["reason"]: event["message"] for event in (await world.client.list(CORE_EVENTS, "default")).items}


# --- which Jobs ------------------------------------------------------------------------------------


async def test_every_job_of_its_own_gets_a_workload_and_a_basic_group_owned_by_both(world: World):
    await world.start(NAME)
    job = await world.job(parallelism=2, completions=5)
    await world.settle()

    (workload,), (group,) = await workloads(world), await groups(world)
    uid = job["metadata"]["uid"]
    assert workload["metadata"]["name"] == f"j-{safe_hash(f'(types.UID){uid}')}"
    assert workload["spec"]["podGroupTemplates"][0]["name"] == "j-pgt-0"
    assert group["metadata"]["name"] == group_name_of(workload["metadata"]["name"], "j-pgt-0")
    owners = [
        (each["kind"], each["uid"], each.get("controller", False)) for each in group["metadata"]["ownerReferences"]
    ]
    assert owners == [("Job", uid, True), ("Workload", workload["metadata"]["uid"], False)]
    assert group["spec"]["schedulingPolicy"] == {"basic": {}}
    assert [pod["spec"]["schedulingGroup"]["podGroupName"] for pod in await world.pods()] == [
        group["metadata"]["name"]
    ] * 2


async def test_a_job_with_a_controller_that_does_not_delegate_gets_none(world: World):
    await world.start(NAME)
    await child(world, "j", {})
    await world.settle()

    assert await groups(world) == []
    assert all("schedulingGroup" not in pod["spec"] for pod in await world.pods())
    assert len(await world.pods()) == 1


@pytest.mark.parametrize("before", ["WorkloadWithJob=false", "GenericWorkload=false"])
async def test_a_job_that_had_started_before_the_gate_was_on_stays_without(world: World, before: str):
    await start(world, before)
    await world.job(**INDEXED)
    await world.settle()
    assert (len(await world.pods()), await groups(world)) == (3, [])
    await world.stop()

    await world.start(NAME)
    await world.client.delete(PODS, (await world.pods())[0]["metadata"]["name"], "default")
    await world.settle()

    assert await groups(world) == []
    assert len(await world.pods()) == 3


# --- of which form ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "annotation", "expected"),
    [
        ("", None, {"gang": {"minCount": 3}}),
        ("", "none", {"basic": {}}),
        ("", "2", {"gang": {"minCount": 2}}),
        ("InferJobGang=false", None, {"basic": {}}),
        ("InferJobGang=false", "all", {"gang": {"minCount": 3}}),
    ],
)
async def test_gate_and_annotation_decide_whether_an_indexed_job_is_a_gang(
    world: World, features: str, annotation: str | None, expected: Any
):
    await start(world, features)
    metadata = {"annotations": {GANG_ANNOTATION: annotation}} if annotation else {}
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    await world.create(JOBS, "j", metadata=metadata, spec={**INDEXED, "template": template})
    await world.settle()

    assert await policy(world) == expected


async def test_priority_and_constraints_reach_the_group(world: World):
    await world.start(NAME)
    await world.client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
    rack = {"topology": [{"key": "example.com/rack"}]}
    template = {
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", "priorityClassName": "high"}
    }
    await world.job(template=template, scheduling={"schedulingConstraints": rack}, **INDEXED)
    await world.settle()

    (group,) = await groups(world)
    spec = group["spec"]
    assert spec["schedulingConstraints"] == rack
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("high", 7, "Never")


# --- its life --------------------------------------------------------------------------------------


async def test_an_elastic_gang_follows_its_parallelism(world: World):
    await world.start(NAME)
    await world.job(**INDEXED)
    await world.settle()

    await world.client.patch(JOBS, "j", {"spec": {"parallelism": 5, "completions": 5}}, "default")
    await world.settle()

    assert await policy(world) == {"gang": {"minCount": 5}}
    template = (await workloads(world))[0]["spec"]["podGroupTemplates"][0]
    assert template["schedulingPolicy"] == {"gang": {"minCount": 5}}
    assert len(await world.pods()) == 5

    # No longer all at once: it stays a gang, of those that it runs at once.
    await world.client.patch(JOBS, "j", {"spec": {"parallelism": 2}}, "default")
    await world.settle()
    assert await policy(world) == {"gang": {"minCount": 2}}


async def test_a_pod_that_is_replaced_joins_its_group_also_after_a_restart(world: World):
    await world.start(NAME)
    await world.job(**INDEXED)
    await world.settle()
    (group,) = await groups(world)
    await world.stop()

    await world.start(NAME)
    await world.phase((await world.pods())[0]["metadata"]["name"], "Failed")
    await world.advance(20)

    live = [pod for pod in await world.pods() if pod["status"]["phase"] != "Failed"]
    assert len(live) == 3
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in live} == {group["metadata"]["name"]}
    assert len(await groups(world)) == 1


async def test_a_job_that_is_created_suspended_has_its_group_before_its_pods(world: World):
    await world.start(NAME)
    await world.job(suspend=True, **INDEXED)
    await world.settle()
    assert (len(await groups(world)), await world.pods()) == (1, [])

    await world.client.patch(JOBS, "j", {"spec": {"suspend": False}}, "default")
    await world.settle()
    assert len(await world.pods()) == 3
    assert all(pod["spec"].get("schedulingGroup") for pod in await world.pods())


async def test_suspended_and_resumed_the_pods_name_the_same_group(world: World):
    await world.start(NAME)
    await world.job(**INDEXED)
    await world.settle()
    (before,) = await groups(world)

    for suspend, pods in ((True, 0), (False, 3)):
        await world.client.patch(JOBS, "j", {"spec": {"suspend": suspend}}, "default")
        await world.settle()
        assert len(await world.pods()) == pods

    assert [group["metadata"]["uid"] for group in await groups(world)] == [before["metadata"]["uid"]]
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in await world.pods()} == {
        before["metadata"]["name"]
    }


async def test_what_was_made_for_a_job_goes_with_it(world: World):
    await world.start()
    await world.job(**INDEXED)
    await world.settle()

    await world.client.delete(JOBS, "j", "default", propagation_policy="Background")
    await world.advance(60)

    assert (await world.pods(), await groups(world), await workloads(world)) == ([], [], [])


async def test_a_workload_of_that_name_that_is_somebody_elses_is_not_taken(world: World):
    job = await world.job(**INDEXED)
    name = f"j-{safe_hash('(types.UID)' + job['metadata']['uid'])}"
    template = {"name": "t", "schedulingPolicy": {"basic": {}}}
    await world.create(WORKLOADS, name, spec={"podGroupTemplates": [template]})

    await world.start(NAME)
    assert (await groups(world), await world.pods()) == ([], [])

    await world.client.delete(WORKLOADS, name, "default")
    await world.advance(60)
    assert len(await world.pods()) == 3


# --- delegated -------------------------------------------------------------------------------------


async def child(world: World, name: str, annotations: dict[str, str]) -> Any:
    """A Job that a ConfigMap called `set` controls; any kind may."""
    parent = await world.get(CONFIG_MAPS, "set") or await world.create(CONFIG_MAPS, "set")
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "set",
        "uid": parent["metadata"]["uid"],
        "controller": True,
    }
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    metadata = {"ownerReferences": [owner], "annotations": annotations}
    return await world.create(JOBS, name, metadata=metadata, spec={"template": template})


async def parent_workload(world: World, **spec: Any) -> Any:
    reference = {"apiGroup": "", "kind": "ConfigMap", "name": "set"}
    return await world.create(WORKLOADS, "of-set", spec={"controllerRef": reference, **spec})


WORKERS = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": {"all": {}}}


async def test_a_delegated_job_waits_for_its_parents_workload_and_gets_its_group_from_it(world: World):
    await world.start(NAME)
    job = await child(world, "j", {TEMPLATE_ANNOTATION: "workers"})
    await world.settle()
    assert (await world.pods(), await groups(world)) == ([], [])
    assert "no Workload describes ConfigMap set" in (await reasons(world))["SchedulingBlocked"]

    await parent_workload(world, podGroupTemplates=[WORKERS])
    await world.settle()

    (group,) = await groups(world)
    assert group["metadata"]["name"] == group_name_of("of-set", "workers")
    assert group["spec"]["workloadRef"] == {"workloadName": "of-set", "templateName": "workers"}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    assert group["spec"]["disruptionMode"] == {"all": {}}
    assert [each["uid"] for each in group["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]
    assert [each["metadata"]["name"] for each in await workloads(world)] == ["of-set"]
    (pod,) = await world.pods()
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}


async def test_a_template_that_the_workload_lacks_is_named(world: World):
    await world.start(NAME)
    await parent_workload(world, podGroupTemplates=[WORKERS])
    await child(world, "j", {TEMPLATE_ANNOTATION: "drivers"})
    await world.settle()

    assert await world.pods() == []
    assert (await reasons(world))["SchedulingBlocked"] == "Workload of-set has no podGroupTemplate named drivers"


async def test_a_delegated_group_follows_the_template(world: World):
    await world.start(NAME)
    workload = await parent_workload(world, podGroupTemplates=[WORKERS])
    await child(world, "j", {TEMPLATE_ANNOTATION: "workers"})
    await world.settle()

    workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"] = 6
    await world.client.update(WORKLOADS, workload)
    await world.settle()

    assert await policy(world) == {"gang": {"minCount": 6}}


async def test_two_jobs_of_one_template_get_a_group_each_below_their_composites(world: World):
    await world.start(NAME)
    branch = {
        "name": "top",
        "schedulingPolicy": {"basic": {}},
        "podGroupTemplates": [{**WORKERS, "disruptionMode": {"single": {}}}],
    }
    await parent_workload(world, compositePodGroupTemplates=[branch])
    for i in range(2):
        await child(world, f"j{i}", {TEMPLATE_ANNOTATION: "workers", PARENT_ANNOTATION: f"top-{i}"})
        await world.settle()

    found = await groups(world)
    assert len({group["metadata"]["name"] for group in found}) == 2
    parents = {
        group["metadata"]["ownerReferences"][0]["name"]: group["spec"]["parentCompositePodGroupName"] for group in found
    }
    assert parents == {"j0": "top-0", "j1": "top-1"}


# --- what the server refuses -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "spec", "why"),
    [
        ("lots", {}, "must be none, all or a number of pods"),
        ("4", {}, "must not be greater than parallelism"),
        ("all", {"scheduling": {"schedulingPolicy": {"gang": {}}}}, "may not be set beside spec.scheduling"),
    ],
)
async def test_an_annotation_that_cannot_be_is_refused_by_name(world: World, value: str, spec: Any, why: str):
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    with pytest.raises(ApiError) as refused:
        await world.create(
            JOBS,
            "j",
            metadata={"annotations": {GANG_ANNOTATION: value}},
            spec={**INDEXED, **spec, "template": template},
        )
    assert refused.value.code == 422
    assert f"metadata.annotations[{GANG_ANNOTATION}]" in str(refused.value)
    assert why in str(refused.value)


async def test_whether_a_job_is_a_gang_is_fixed_and_how_large_is_not(world: World):
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    metadata = {"annotations": {GANG_ANNOTATION: "3"}}
    await world.create(JOBS, "j", metadata=metadata, spec={**INDEXED, "template": template})

    def annotated(value: str | None) -> Any:
        return {"metadata": {"annotations": {GANG_ANNOTATION: value}}}

    await world.client.patch(JOBS, "j", annotated("2"), "default")
    for value in ("none", None):
        with pytest.raises(ApiError, match="whether the Job is a gang is fixed"):
            await world.client.patch(JOBS, "j", annotated(value), "default")
    with pytest.raises(ApiError, match="must not be greater than parallelism"):
        await world.client.patch(JOBS, "j", {"spec": {"parallelism": 1}}, "default")
