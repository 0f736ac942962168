"""Claims are written before the binds that need them: all of a gang, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.api.devices import CLAIM_FINALIZER
from muster.api.errors import conflict
from muster.api.resources import RESOURCE_CLAIMS
from muster.scheduler.interface.decisions import AllocateClaim, Bind, DeallocateClaim
from muster.scheduler.interface.events import LOST_RACE, BindFailed, BindSucceeded
from muster.scheduler.interface.keys import ObjectRef
from tests.engine.builders import ref
from tests.engine.conftest import World, eventually, quiet, say


def devices(name: str = "x") -> dict[str, Any]:
    return {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": name}]}}


async def a_claim(world: World, name: str) -> ObjectRef:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    body = {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec,
    }
    made = await world.direct.create(RESOURCE_CLAIMS, body, "default")
    return ObjectRef("ResourceClaim", "default", name, made["metadata"]["uid"])


async def claim(world: World, name: str) -> dict[str, Any]:
    return await world.direct.get(RESOURCE_CLAIMS, name, "default")


async def a_gang(world: World, *names: str) -> list[dict[str, Any]]:
    await world.node()
    return [await world.pod(name, schedulingGroup={"podGroupName": "g"}) for name in names]


def answers(scheduler: Any) -> list[Any]:
    return [each for each in scheduler.heard if isinstance(each, BindSucceeded | BindFailed)]


def once(wanted: str, error: Exception) -> Callable[[str, str], None]:
    """Fail the first call of this verb."""
    left = [error]

    def fail(verb: str, name: str) -> None:
        if verb == wanted and left:
            raise left.pop()

    return fail


async def test_a_claim_gets_finalizer_devices_and_consumer_before_its_pod_is_bound(world: World):
    (pod,) = await a_gang(world, "p")
    wanted = await a_claim(world, "c")
    scheduler, engine = await quiet(world)
    await say(engine, scheduler, [AllocateClaim(wanted, ref(pod), devices()), Bind(ref(pod), "n1")])

    await eventually(lambda: _bound(world, "p"))
    found = await claim(world, "c")
    assert found["metadata"]["finalizers"] == [CLAIM_FINALIZER]
    assert found["status"]["allocation"]["devices"] == devices()["devices"]
    assert found["status"]["allocation"]["allocationTimestamp"]
    assert found["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}]
    written = [call for call in world.client.calls if call[0] in ("update", "bind")]
    assert [call[0] for call in written] == ["update", "update", "bind"]


async def _bound(world: World, pod: str) -> bool:
    return bool(await world.node_of(pod))


async def test_consumers_of_one_claim_are_written_together(world: World):
    pods = await a_gang(world, "a", "b", "c")
    wanted = await a_claim(world, "shared")
    scheduler, engine = await quiet(world)
    asked = [AllocateClaim(wanted, ref(pod), devices() if number == 0 else None) for number, pod in enumerate(pods)]
    await say(engine, scheduler, [*asked, *(Bind(ref(pod), "n1") for pod in pods)])
    await eventually(lambda: _bound(world, "c"))
    found = await claim(world, "shared")
    assert [each["name"] for each in found["status"]["reservedFor"]] == ["a", "b", "c"]


async def test_one_claim_that_is_taken_fails_all_binds_and_gives_the_others_back(world: World):
    pods = await a_gang(world, "a", "b")
    mine, taken = await a_claim(world, "mine"), await a_claim(world, "taken")
    other = await claim(world, "taken")
    other["status"] = {"allocation": devices("other")}
    await world.direct.update(RESOURCE_CLAIMS, other, subresource="status")
    scheduler, engine = await quiet(world)
    asked = [AllocateClaim(mine, ref(pods[0]), devices()), AllocateClaim(taken, ref(pods[1]), devices("y"))]
    await say(engine, scheduler, [*asked, *(Bind(ref(pod), "n1") for pod in pods)])

    async def given_back() -> bool:
        return len(answers(scheduler)) == 2 and not (await claim(world, "mine")).get("status")

    await eventually(given_back)
    text = "claim default/taken got allocated elsewhere in the meantime"
    assert {(each.reason, each.cause) for each in answers(scheduler)} == {(text, LOST_RACE)}
    assert not await world.node_of("a")
    assert "finalizers" not in (await claim(world, "mine"))["metadata"]
    assert (await claim(world, "taken"))["status"] == {"allocation": devices("other")}


async def test_an_answer_that_was_lost_is_no_allocation_by_somebody_else(world: World):
    (pod,) = await a_gang(world, "p")
    wanted = await a_claim(world, "c")
    scheduler, engine = await quiet(world)
    world.client.after = once("update", ConnectionError("cut"))
    await say(engine, scheduler, [AllocateClaim(wanted, ref(pod), devices()), Bind(ref(pod), "n1")])
    await eventually(lambda: _bound(world, "p"))


async def test_a_conflict_is_tried_again_with_what_is_there(world: World):
    (pod,) = await a_gang(world, "p")
    wanted = await a_claim(world, "c")
    scheduler, engine = await quiet(world)
    world.client.before = once("update", conflict("", "resourceclaims", "c", "changed"))
    await say(engine, scheduler, [AllocateClaim(wanted, ref(pod), devices()), Bind(ref(pod), "n1")])
    await eventually(lambda: _bound(world, "p"))


async def test_a_claim_that_is_gone_fails_the_bind(world: World):
    (pod,) = await a_gang(world, "p")
    wanted = await a_claim(world, "c")
    await world.direct.delete(RESOURCE_CLAIMS, "c", "default")
    scheduler, engine = await quiet(world)
    await say(engine, scheduler, [AllocateClaim(wanted, ref(pod), devices()), Bind(ref(pod), "n1")])

    async def failed() -> bool:
        return bool(answers(scheduler))

    await eventually(failed)
    assert [each.reason for each in answers(scheduler)] == ["the claim c is gone"]
    assert not await world.node_of("p")


async def test_pods_that_have_nothing_to_do_with_each_other_do_not_fail_together(world: World):
    await world.node()
    good, bad = await world.pod("good"), await world.pod("bad")
    fine, gone = await a_claim(world, "fine"), await a_claim(world, "gone")
    await world.direct.delete(RESOURCE_CLAIMS, "gone", "default")
    scheduler, engine = await quiet(world)
    asked = [AllocateClaim(fine, ref(good), devices()), AllocateClaim(gone, ref(bad), devices("y"))]
    await say(engine, scheduler, [*asked, Bind(ref(good), "n1"), Bind(ref(bad), "n1")])
    await eventually(lambda: _bound(world, "good"))
    assert not await world.node_of("bad")


async def test_a_claim_is_taken_back_from_those_it_was_reserved_for(world: World):
    (pod,) = await a_gang(world, "p")
    wanted = await a_claim(world, "c")
    held = await claim(world, "c")
    held["metadata"]["finalizers"] = [CLAIM_FINALIZER]
    held = await world.direct.update(RESOURCE_CLAIMS, held)
    uid = pod["metadata"]["uid"]
    held["status"] = {"allocation": devices(), "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}]}
    await world.direct.update(RESOURCE_CLAIMS, held, subresource="status")
    scheduler, engine = await quiet(world)

    await say(engine, scheduler, [DeallocateClaim(wanted, ("another",))])
    assert (await claim(world, "c"))["status"]["allocation"]
    await say(engine, scheduler, [DeallocateClaim(wanted, (uid,))])

    async def free() -> bool:
        found = await claim(world, "c")
        return not found.get("status") and "finalizers" not in found["metadata"]

    await eventually(free)
