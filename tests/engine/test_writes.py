"""What decisions become on the API: conditions, nominations, evictions, in the order that matters."""

from __future__ import annotations

from typing import Any

from muster.api.errors import ApiError, conflict
from muster.api.groups import DISRUPTION_TARGET
from muster.api.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from muster.scheduler.decisions import Bind, Evict, Nominate, Ref, SelectNode, SetCondition
from muster.scheduler.events import BindFailed, EvictFailed
from muster.testing import a_pod_group
from tests.build.manifests import in_version
from tests.engine.builders import FirstNodeBrain
from tests.engine.conftest import World, eventually
from tests.engine.faulty import failing

POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


def ref(obj: dict[str, Any], kind: str = "Pod") -> Ref:
    meta = obj["metadata"]
    return Ref(kind, meta["namespace"], meta["name"], meta["uid"])


def condition(obj: dict[str, Any], type_: str) -> dict[str, Any]:
    found = [each for each in obj.get("status", {}).get("conditions", []) if each["type"] == type_]
    assert len(found) <= 1
    return found[0] if found else {}


async def quiet(world: World) -> tuple[FirstNodeBrain, Any]:
    """A brain that only says what the test puts into its mouth, and its engine."""
    brain = FirstNodeBrain(node="")
    return brain, await world.start(brain)


async def say(engine: Any, brain: FirstNodeBrain, *lists: list[Any]) -> None:
    brain.say += lists
    engine._bell.set()
    await engine.settled()


def unschedulable(pod: Ref, message: str) -> SetCondition:
    return SetCondition(pod, "PodScheduled", "False", "Unschedulable", message)


# --- statuses ----------------------------------------------------------------------------------------


async def test_a_condition_is_added_beside_those_of_others(world: World):
    pod = await world.pod("p")
    other = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await world.direct.patch(PODS, "p", other, "default", type="strategic", subresource="status")
    brain, engine = await quiet(world)

    await say(engine, brain, [unschedulable(ref(pod), "0/0 nodes are available")])

    now = await world.get("p")
    assert condition(now, "Ready")["status"] == "False"
    assert condition(now, "PodScheduled")["message"] == "0/0 nodes are available"
    assert condition(now, "PodScheduled")["lastTransitionTime"]


async def test_the_transition_time_moves_only_with_the_status(world: World):
    pod = await world.pod("p")
    brain, engine = await quiet(world)
    old = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    await world.direct.patch(
        PODS, "p", {"status": {"conditions": [old]}}, "default", type="strategic", subresource="status"
    )

    async def seen() -> bool:
        return bool(engine.informers["Pod"].known["default", "p"].status.conditions)

    await eventually(seen)
    await say(engine, brain, [unschedulable(ref(pod), "another reason")])
    same = condition(await world.get("p"), "PodScheduled")
    await say(engine, brain, [SetCondition(ref(pod), "PodScheduled", "True", "", "")])
    turned = condition(await world.get("p"), "PodScheduled")

    assert same["message"] == "another reason"
    assert same["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    assert turned["lastTransitionTime"] != "2020-01-01T00:00:00Z"


async def test_statuses_of_one_object_that_wait_become_one_write(world: World):
    pod = await world.pod("p")
    brain, engine = await quiet(world)
    world.client.slow = 0.02

    words = [unschedulable(ref(pod), f"try {number}") for number in range(10)]
    await say(engine, brain, [*words, Nominate(ref(pod), "n1")])

    now = await world.get("p")
    assert condition(now, "PodScheduled")["message"] == "try 9"
    assert now["status"]["nominatedNodeName"] == "n1"
    assert len(world.client.verbs("patch")) <= 2


async def test_an_empty_nomination_takes_the_node_away(world: World):
    pod = await world.pod("p")
    brain, engine = await quiet(world)

    await say(engine, brain, [Nominate(ref(pod), "n1")])
    await say(engine, brain, [Nominate(ref(pod), "")])

    assert "nominatedNodeName" not in (await world.get("p"))["status"]


async def test_a_group_condition_is_written_in_the_served_version(world: World):
    group = await world.direct.create(POD_GROUPS, in_version(a_pod_group("g", min_count=2), "v1beta1"), "default")
    brain, engine = await quiet(world)
    about = ref(group, "PodGroup")

    await say(engine, brain, [SetCondition(about, "PodGroupInitiallyScheduled", "False", "Unschedulable", "no room")])
    await say(engine, brain, [SetCondition(about, "PodGroupInitiallyScheduled", "True", "Scheduled", "")])

    now = await world.direct.get(POD_GROUPS, "g", "default")
    assert condition(now, "PodGroupInitiallyScheduled")["status"] == "True"


async def test_a_status_for_a_pod_of_another_uid_is_dropped(world: World):
    pod = await world.pod("p")
    brain, engine = await quiet(world)
    stranger = Ref("Pod", "default", "p", "00000000-0000-0000-0000-000000000000")

    await say(engine, brain, [unschedulable(stranger, "not you")])

    assert condition(await world.get("p"), "PodScheduled") == {}
    assert pod


async def test_a_status_is_written_again_after_a_conflict_and_an_outage(world: World):
    pod = await world.pod("p")
    brain, engine = await quiet(world)
    faults = [conflict("", "pods", "p", "changed"), ConnectionError("reset")]

    def fail(verb: str, name: str) -> None:
        if verb == "patch" and faults:
            raise faults.pop()

    world.client.before = fail
    await say(engine, brain, [unschedulable(ref(pod), "at last")])

    assert condition(await world.get("p"), "PodScheduled")["message"] == "at last"


async def test_a_bind_overtakes_the_word_that_the_pod_does_not_fit(world: World):
    await world.node()
    pod = await world.pod("p")
    brain, engine = await quiet(world)

    await say(engine, brain, [unschedulable(ref(pod), "no room"), Bind(ref(pod), "n1")])

    now = await world.get("p")
    assert now["spec"]["nodeName"] == "n1"
    assert condition(now, "PodScheduled").get("status") != "False"


# --- evictions ---------------------------------------------------------------------------------------


async def victims_and_preemptor(world: World, count: int = 3) -> tuple[list[Ref], Ref]:
    await world.node()
    victims = []
    for number in range(count):
        pod = await world.pod(f"victim{number}")
        await world.direct.bind("default", f"victim{number}", pod["metadata"]["uid"], "n1")
        victims.append(ref(pod))
    return victims, ref(await world.pod("preemptor"))


def marks(victims: list[Ref]) -> list[Any]:
    text = "muster: preempting to accommodate a higher priority pod"
    return [SetCondition(each, DISRUPTION_TARGET, "True", "PreemptionByScheduler", text) for each in victims]


async def test_marks_and_nominations_are_written_before_the_first_delete(world: World):
    victims, preemptor = await victims_and_preemptor(world)
    brain, engine = await quiet(world)
    world.client.slow = 0.01

    first = [*marks(victims), Nominate(preemptor, "n1")]
    await say(engine, brain, first, [Evict(each, preemptor) for each in victims])

    writes = [verb for verb, _ in world.client.verbs("patch", "delete")]
    assert writes == ["patch"] * 4 + ["delete"] * 3
    for each in victims:
        assert (await world.get(each.name))["metadata"]["deletionTimestamp"]


async def test_a_mark_that_is_slow_to_write_holds_back_every_delete(world: World):
    victims, preemptor = await victims_and_preemptor(world)
    brain, engine = await quiet(world)
    world.client.before = failing(ConnectionError("down"), "patch", times=5, name="victim2")

    await say(engine, brain, marks(victims), [Evict(each, preemptor) for each in victims])

    writes = world.client.verbs("patch", "delete")
    last_mark = max(i for i, call in enumerate(writes) if call[0] == "patch")
    first_delete = min(i for i, call in enumerate(writes) if call[0] == "delete")
    assert last_mark < first_delete


async def test_without_its_mark_no_victim_is_deleted(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    brain, engine = await quiet(world)
    world.client.before = failing(ApiError(403, "Forbidden", "no"), "patch", times=100)

    await say(engine, brain, marks(victims), [Evict(victims[0], preemptor)])

    assert world.client.verbs("delete") == []
    assert [type(event) for event in brain.results()] == [EvictFailed]


async def test_taking_a_mark_back_calls_off_a_delete_that_has_not_started(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    brain, engine = await quiet(world)
    world.client.slow = 0.02
    back = SetCondition(victims[0], DISRUPTION_TARGET, "False", "PreemptionCalledOff", "no longer needed")

    await say(engine, brain, [*marks(victims), Evict(victims[0], preemptor), back])

    assert world.client.verbs("delete") == []
    assert condition(await world.get("victim0"), DISRUPTION_TARGET)["status"] == "False"


async def test_a_victim_that_is_gone_already_is_no_failure(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    brain, engine = await quiet(world)
    await world.direct.delete(PODS, "victim0", "default", grace_period_seconds=0)

    await say(engine, brain, [Evict(victims[0], preemptor)])

    assert brain.results() == []


async def test_another_pod_of_the_victims_name_is_left_alone(world: World):
    _, preemptor = await victims_and_preemptor(world, 1)
    brain, engine = await quiet(world)
    former = Ref("Pod", "default", "victim0", "00000000-0000-0000-0000-000000000000")

    await say(engine, brain, [Evict(former, preemptor)])

    assert "deletionTimestamp" not in (await world.get("victim0"))["metadata"]
    assert brain.results() == []


async def test_a_victim_whose_mark_someone_took_back_stays(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    brain, engine = await quiet(world)
    await say(engine, brain, marks(victims))
    # The watch is silent meanwhile, so the engine does not know that the mark is gone.
    engine.informers["Pod"]._take = lambda event: None
    back = {"status": {"conditions": [{"type": DISRUPTION_TARGET, "status": "False"}]}}
    await world.direct.patch(PODS, "victim0", back, "default", type="strategic", subresource="status")

    await say(engine, brain, [Evict(victims[0], preemptor)])

    assert "deletionTimestamp" not in (await world.get("victim0"))["metadata"]
    assert [type(event) for event in brain.results()] == [EvictFailed]


async def test_a_delete_that_cannot_be_sent_is_reported(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    brain, engine = await quiet(world)
    world.client.before = failing(ConnectionError("down"), "delete", times=1000)

    await say(engine, brain, [Evict(victims[0], preemptor)])

    assert [type(event) for event in brain.results()] == [EvictFailed]


# --- claims ------------------------------------------------------------------------------------------


async def a_claim(world: World, name: str) -> Ref:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = await world.direct.create(
        PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    )
    return ref(made, "PersistentVolumeClaim")


async def bind_claim(world: World, name: str) -> None:
    await world.direct.patch(PERSISTENT_VOLUME_CLAIMS, name, {"spec": {"volumeName": f"pv-{name}"}}, "default")
    status = {"status": {"phase": "Bound"}}
    await world.direct.patch(PERSISTENT_VOLUME_CLAIMS, name, status, "default", subresource="status")


async def test_a_pod_is_bound_when_its_claim_is(world: World):
    await world.node()
    pod, claim = await world.pod("p"), await a_claim(world, "data")
    brain, engine = await quiet(world)

    await say(engine, brain, [SelectNode(claim, "n1"), Bind(ref(pod), "n1")])
    chosen = await world.direct.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    assert chosen["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    assert await world.node_of("p") == ""

    await bind_claim(world, "data")

    async def bound() -> bool:
        return await world.node_of("p") == "n1"

    await eventually(bound)


async def test_a_choice_given_back_by_the_provisioner_fails_the_bind(world: World):
    await world.node()
    pod, claim = await world.pod("p"), await a_claim(world, "data")
    brain, engine = await quiet(world)
    await say(engine, brain, [SelectNode(claim, "n1"), Bind(ref(pod), "n1")])

    async def shown() -> bool:
        known = engine.informers["PersistentVolumeClaim"].known["default", "data"]
        return bool(known.metadata.annotations)

    await eventually(shown)
    back = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
    await world.direct.patch(PERSISTENT_VOLUME_CLAIMS, "data", back, "default")

    async def failed() -> bool:
        return [type(event) for event in brain.results()] == [BindFailed]

    await eventually(failed)
    assert await world.node_of("p") == ""
