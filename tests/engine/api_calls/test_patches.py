"""Patches of conditions and nominations: what is written, and what is left alone."""

from __future__ import annotations

from muster.api.errors import conflict
from muster.api.resources import PODS, Resource
from muster.scheduler.interface.decisions import Bind, Nominate, SetCondition
from muster.scheduler.interface.keys import ObjectRef
from muster.testing import a_pod_group
from tests.build.manifests import in_version
from tests.engine.builders import condition, ref, unschedulable
from tests.engine.conftest import World, eventually, quiet, say

POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


async def test_a_condition_is_added_beside_those_of_others(world: World):
    pod = await world.pod("p")
    other = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await world.direct.patch(PODS, "p", other, "default", type="strategic", subresource="status")
    scheduler, engine = await quiet(world)

    await say(engine, scheduler, [unschedulable(ref(pod), "0/0 nodes are available")])

    now = await world.get("p")
    assert condition(now, "Ready")["status"] == "False"
    assert condition(now, "PodScheduled")["message"] == "0/0 nodes are available"
    assert condition(now, "PodScheduled")["lastTransitionTime"]


async def test_the_transition_time_moves_only_with_the_status(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)
    old = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    await world.direct.patch(
        PODS, "p", {"status": {"conditions": [old]}}, "default", type="strategic", subresource="status"
    )

    async def seen() -> bool:
        return bool(engine.sources["Pod"].known["default", "p"].status.conditions)

    await eventually(seen)
    await say(engine, scheduler, [unschedulable(ref(pod), "another reason")])
    same = condition(await world.get("p"), "PodScheduled")
    await say(engine, scheduler, [SetCondition(ref(pod), "PodScheduled", "True", "", "")])
    turned = condition(await world.get("p"), "PodScheduled")

    assert same["message"] == "another reason"
    assert same["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    assert turned["lastTransitionTime"] != "2020-01-01T00:00:00Z"


async def test_statuses_of_one_object_that_wait_become_one_write(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)
    world.client.slow = 0.02

    words = [unschedulable(ref(pod), f"try {number}") for number in range(10)]
    await say(engine, scheduler, [*words, Nominate(ref(pod), "n1")])

    now = await world.get("p")
    assert condition(now, "PodScheduled")["message"] == "try 9"
    assert now["status"]["nominatedNodeName"] == "n1"
    assert len(world.client.verbs("patch")) <= 2


async def test_an_empty_nomination_takes_the_node_away(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)

    await say(engine, scheduler, [Nominate(ref(pod), "n1")])
    await say(engine, scheduler, [Nominate(ref(pod), "")])

    assert "nominatedNodeName" not in (await world.get("p"))["status"]


async def test_a_group_condition_is_written_in_the_served_version(world: World):
    group = await world.direct.create(POD_GROUPS, in_version(a_pod_group("g", min_count=2), "v1beta1"), "default")
    scheduler, engine = await quiet(world)
    about = ref(group, "PodGroup")

    await say(
        engine, scheduler, [SetCondition(about, "PodGroupInitiallyScheduled", "False", "Unschedulable", "no room")]
    )
    await say(engine, scheduler, [SetCondition(about, "PodGroupInitiallyScheduled", "True", "Scheduled", "")])

    now = await world.direct.get(POD_GROUPS, "g", "default")
    assert condition(now, "PodGroupInitiallyScheduled")["status"] == "True"


async def test_a_status_for_a_pod_of_another_uid_is_dropped(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)
    stranger = ObjectRef("Pod", "default", "p", "00000000-0000-0000-0000-000000000000")

    await say(engine, scheduler, [unschedulable(stranger, "not you")])

    assert condition(await world.get("p"), "PodScheduled") == {}
    assert pod


async def test_a_status_is_written_again_after_a_conflict_and_an_outage(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)
    faults = [conflict("", "pods", "p", "changed"), ConnectionError("reset")]

    def fail(verb: str, name: str) -> None:
        if verb == "patch" and faults:
            raise faults.pop()

    world.client.before = fail
    await say(engine, scheduler, [unschedulable(ref(pod), "at last")])

    assert condition(await world.get("p"), "PodScheduled")["message"] == "at last"


async def test_a_bind_overtakes_the_word_that_the_pod_does_not_fit(world: World):
    await world.node()
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)

    await say(engine, scheduler, [unschedulable(ref(pod), "no room"), Bind(ref(pod), "n1")])

    now = await world.get("p")
    assert now["spec"]["nodeName"] == "n1"
    assert condition(now, "PodScheduled").get("status") != "False"
