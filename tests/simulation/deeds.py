"""What is done to a simulated cluster: by its users, to its nodes, and by fate. A day is a list of deeds.

A deed is a time, a name and a number that decides everything else about it, so that a day can be repeated, and a bad
one made smaller by leaving deeds out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from muster.api.errors import ApiError
from muster.api.resources import COMPOSITE_POD_GROUPS, NODES, POD_GROUPS, PODS, REPLICA_SETS, Resource
from muster.testing import a_composite, a_pod, a_pod_group
from tests.simulation.network import KINDS, SimClient, Trouble

if TYPE_CHECKING:
    from tests.simulation.world import World

FIRST, LAST = 4.0, 120.0  # virtual seconds between which deeds are done
NAMES = tuple(f"g{number}" for number in range(7))
RACK = "topology.muster.dev/rack"
RUN_SECONDS = "muster.dev/run-seconds"


class Deed(NamedTuple):
    at: float
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.at:.1f} {self.name} {self.number}"


def a_day(seed: int, kind: str) -> list[Deed]:
    """The deeds of one day; a calm one has no faults but slow answers."""
    rng = Random(f"{seed} day")
    users = [_deed(rng, rng.choices(list(USERS), [weight for _, weight in USERS.values()])[0]) for _ in range(22)]
    if kind == "calm":
        faults = [_deed(rng, "delay") for _ in range(2)]
    else:
        faults = [
            _deed(rng, rng.choices(list(FAULTS), [weight for _, weight in FAULTS.values()])[0]) for _ in range(14)
        ]
        faults.append(_deed(rng, "server crashes"))
    return sorted(users + faults)


def _deed(rng: Random, name: str) -> Deed:
    return Deed(round(rng.uniform(FIRST, LAST), 1), name, rng.randrange(10**6))


async def do(world: World, deed: Deed) -> None:
    """Carry out a deed."""
    rng = Random(deed.number)
    action = (USERS.get(deed.name) or FAULTS[deed.name])[0]
    await action(world, rng)


# --- users -----------------------------------------------------------------------------------------


async def _try(world: World, call: Callable[[], Awaitable[Any]]) -> Any:
    """A user's request, tried again while there is no answer; None if it is refused."""
    for attempt in range(6):
        try:
            return await call()
        except ApiError as error:
            if error.code < 500 and error.code != 429:
                return None
        except ConnectionError:
            pass
        await world.sleep(1.0 + attempt)
    return None


def _user(world: World) -> SimClient:
    return world.users


async def _create(world: World, resource: Resource, obj: Any) -> Any:
    return await _try(world, lambda: _user(world).create(resource, obj))


async def create_gang(world: World, rng: Random, important: bool = False, name: str = "", parent: str = "") -> None:
    """A gang and its pods, in any order; a name that was used before is used again."""
    name = name or rng.choice(NAMES)
    size = rng.choice((2, 2, 3, 3, 4))
    minimum = size if rng.random() < 0.7 else max(1, size - 1)
    fields: dict[str, Any] = {}
    if rng.random() < 0.2:
        fields["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    if rng.random() < 0.25:
        fields["disruptionMode"] = {"all": {}}
    spec: dict[str, Any] = {"schedulerName": world.scheduler_of(parent or name)}
    if important:
        fields["priorityClassName"] = spec["priorityClassName"] = "important"
    group = a_pod_group(name, min_count=minimum, parent=parent, **fields)
    cpu = rng.choice(("1", "1", "2", "3"))
    world.touch(name)
    if rng.random() < 0.35:
        await _create(world, POD_GROUPS, group)
        await _create(world, REPLICA_SETS, _replicated(name, size, cpu, spec))
        return
    if rng.random() < 0.4:
        spec["restartPolicy"] = "Never"
    pods = [a_pod(f"{name}-{index}", group=name, cpu=cpu, **spec) for index in range(size)]
    for pod in pods:
        pod["spec"]["terminationGracePeriodSeconds"] = rng.choice((0, 1, 5))
        if "restartPolicy" in spec:
            pod["metadata"]["annotations"] = {RUN_SECONDS: str(rng.randrange(5, 60))}
    if rng.random() < 0.7:
        await _create(world, POD_GROUPS, group)
        group = None
    for pod in pods:
        await _create(world, PODS, pod)
        if rng.random() < 0.2:
            await world.sleep(rng.random() * 3)
    if group is not None:
        await _create(world, POD_GROUPS, group)


def _replicated(name: str, size: int, cpu: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    template = a_pod("any", group=name, cpu=cpu, terminationGracePeriodSeconds=1, **spec)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": size,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


async def create_important_gang(world: World, rng: Random) -> None:
    await create_gang(world, rng, important=True)


async def create_tree(world: World, rng: Random) -> None:
    """A composite with two gangs that start together."""
    name = rng.choice(("t0", "t1"))
    await _create(world, COMPOSITE_POD_GROUPS, a_composite(name, min_groups=rng.choice((1, 2, 2))))
    for child in range(2):
        await create_gang(world, rng, name=f"{name}-{child}", parent=name)


async def create_pods(world: World, rng: Random) -> None:
    for _ in range(rng.randrange(1, 4)):
        name = f"solo-{rng.randrange(12)}"
        pod = a_pod(name, cpu=rng.choice(("1", "2")), schedulerName=world.scheduler_of(name))
        pod["spec"]["terminationGracePeriodSeconds"] = 1
        if rng.random() < 0.5:
            pod["spec"]["restartPolicy"] = "Never"
            pod["metadata"]["annotations"] = {RUN_SECONDS: str(rng.randrange(2, 40))}
        await _create(world, PODS, pod)


async def create_foreign_pods(world: World, rng: Random) -> None:
    for _ in range(rng.randrange(1, 3)):
        name = f"foreign-{rng.randrange(6)}"
        await _create(world, PODS, a_pod(name, cpu="1", schedulerName="foreign", terminationGracePeriodSeconds=1))


def _some_pod(world: World, rng: Random) -> dict[str, Any] | None:
    found = world.history.current("pods")
    return rng.choice(found) if found else None


async def delete_pod(world: World, rng: Random) -> None:
    pod = _some_pod(world, rng)
    if pod is not None:
        group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
        world.touch(group)
        grace = rng.choice((None, None, 0))
        name = pod["metadata"]["name"]
        await _try(world, lambda: _user(world).delete(PODS, name, "default", grace_period_seconds=grace))


async def delete_group(world: World, rng: Random) -> None:
    """A gang with everything that belongs to it, in any order; or the group alone."""
    groups = world.history.current("podgroups.scheduling.k8s.io")
    if groups:
        name = rng.choice(groups)["metadata"]["name"]
        await remove_gang(world, name, alone=rng.random() < 0.2, group_first=rng.random() < 0.5)


async def remove_gang(world: World, name: str, *, alone: bool = False, group_first: bool = False) -> None:
    user = _user(world)
    world.touch(name)
    if group_first or alone:
        await _try(world, lambda: user.delete(POD_GROUPS, name, "default"))
    if alone:
        return
    await _try(world, lambda: user.delete(REPLICA_SETS, name, "default"))
    for pod in world.history.current("pods"):
        if (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == name:
            await _try(world, lambda n=pod["metadata"]["name"]: user.delete(PODS, n, "default"))
    if not group_first:
        await _try(world, lambda: user.delete(POD_GROUPS, name, "default"))


async def resubmit(world: World, rng: Random) -> None:
    """The same names again, before everything old is gone."""
    name = rng.choice(NAMES)
    await remove_gang(world, name, group_first=rng.random() < 0.5)
    await create_gang(world, rng, name=name)


async def scale(world: World, rng: Random) -> None:
    found = world.history.current("replicasets.apps")
    if found:
        name = rng.choice(found)["metadata"]["name"]
        world.touch(name)
        patch = {"spec": {"replicas": rng.randrange(1, 6)}}
        await _try(world, lambda: _user(world).patch(REPLICA_SETS, name, patch, "default"))


async def change_minimum(world: World, rng: Random) -> None:
    found = world.history.current("podgroups.scheduling.k8s.io")
    if found:
        name = rng.choice(found)["metadata"]["name"]
        world.touch(name)
        patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": rng.randrange(1, 5)}}}}
        await _try(world, lambda: _user(world).patch(POD_GROUPS, name, patch, "default"))


async def label_pod(world: World, rng: Random) -> None:
    """A write that changes nothing that matters, in the middle of whatever is being done to the pod."""
    pod = _some_pod(world, rng)
    if pod is not None:
        patch = {"metadata": {"labels": {"seen": str(rng.randrange(100))}}}
        await _try(world, lambda: _user(world).patch(PODS, pod["metadata"]["name"], patch, "default"))


# --- nodes -----------------------------------------------------------------------------------------


async def _patch_node(world: World, rng: Random, what: str, patch: Any, subresource: str | None = None) -> str:
    name = f"node-{rng.randrange(world.node_count)}"
    world.counts[what] += 1
    world.trouble_for(40.0)
    await _try(world, lambda: _user(world).patch(NODES, name, patch, subresource=subresource))
    return name


async def node_dies(world: World, rng: Random) -> None:
    name = await _patch_node(world, rng, "node dies", {"metadata": {"annotations": {"muster.dev/failed": "true"}}})
    if rng.random() < 0.7:
        await world.sleep(rng.uniform(1.0, 50.0))
        await _try(
            world,
            lambda: _user(world).patch(NODES, name, {"metadata": {"annotations": {"muster.dev/failed": None}}}),
        )


async def node_flaps(world: World, rng: Random) -> None:
    number = rng.randrange(world.node_count)
    world.counts["node flaps"] += 1
    for _ in range(rng.randrange(2, 5)):
        for value in ("true", None):
            patch = {"metadata": {"annotations": {"muster.dev/failed": value}}}
            await _try(world, lambda p=patch: _user(world).patch(NODES, f"node-{number}", p))
            await world.sleep(rng.uniform(0.1, 4.0))


async def cordon(world: World, rng: Random) -> None:
    name = await _patch_node(world, rng, "cordon", {"spec": {"unschedulable": True}})
    if rng.random() < 0.7:
        await world.sleep(rng.uniform(0.5, 30.0))
        await _try(world, lambda: _user(world).patch(NODES, name, {"spec": {"unschedulable": None}}))


async def shrink(world: World, rng: Random) -> None:
    patch = {"status": {"allocatable": {"cpu": str(rng.randrange(1, 4))}}}
    await _patch_node(world, rng, "node shrinks", patch, "status")


async def delete_node(world: World, rng: Random) -> None:
    name = f"node-{rng.randrange(world.node_count)}"
    world.counts["node deleted"] += 1
    world.trouble_for(40.0)
    await _try(world, lambda: _user(world).delete(NODES, name))


# --- fate ------------------------------------------------------------------------------------------


async def trouble(world: World, rng: Random, kind: str = "") -> None:
    """Something is wrong with the network for a while."""
    kind = kind or rng.choice(KINDS)
    client = rng.choice(("", *world.clients, *world.clients)) if kind != "partition" else rng.choice(world.clients)
    seconds = rng.uniform(1.0, 30.0)
    found = Trouble(kind, client, rng.choice((0.1, 0.3, 0.6, 1.0)), rng.choice((0.05, 0.5, 4.0, 20.0)), rng)
    found.until = world.loop.now + seconds
    if kind in ("410", "cut watch", "429", "500", "409", "500 after the write", "lost answer"):
        found.chance = min(found.chance, 0.6)
    world.said(f"network: {kind} for {client or 'all'}, {found.chance:.0%}, {seconds:.1f} s")
    world.network.troubles.append(found)
    world.trouble_for(seconds + (30.0 if kind != "delay" else 5.0))
    if kind == "partition":
        seconds = rng.choice((2.0, 10.0, 30.0, 80.0))
        found.until = world.loop.now + seconds
        world.network.partition_begins(client)
        world.trouble_for(seconds + 60.0)
    if kind == "cut watch":
        world.counts["cut watch"] += world.network.cut_watches(client)
    await world.sleep(seconds)
    world.network.troubles.remove(found)


async def slow_network(world: World, rng: Random) -> None:
    await trouble(world, rng, "delay")


def _somebody(rng: Random, names: list[str]) -> str:
    """One of the components; the second scheduler more often than others, since one day in five has it."""
    return rng.choice(names + ["c"] * 4 if "c" in names else names)


async def crash(world: World, rng: Random, name: str = "") -> None:
    name = name or _somebody(rng, [each for each in world.components if each != "server"])
    world.counts[f"crash of {name}"] += 1
    world.trouble_for(45.0)
    world.components[name].kill(rng.choice((0.1, 1.0, 5.0, 20.0)))


async def server_crashes(world: World, rng: Random) -> None:
    """While something is not synced, if something is written in time."""
    written = asyncio.get_running_loop().create_future()
    world.disk.next_write = written
    try:
        async with asyncio.timeout(10.0):
            await world.sleep(rng.random() * await written)
    except TimeoutError:
        pass
    await crash(world, rng, "server")


async def leader_crashes(world: World, rng: Random) -> None:
    """In the middle of a gang, if one comes in time."""
    for _ in range(200):
        if world.invariants.binds_in_flight() and rng.random() < 0.5:
            break
        await world.sleep(0.02)
    leader = next((name for name in world.electing if world.components[name].leads), "a")
    await crash(world, rng, leader)


async def stop_leader(world: World, rng: Random) -> None:
    """An orderly end, which finishes the binds under way and gives the lease back."""
    for name in world.electing:
        component = world.components[name]
        if component.leads:
            world.counts["orderly stop"] += 1
            world.trouble_for(45.0)
            component.engine.stop()


async def pause(world: World, rng: Random) -> None:
    name = _somebody(rng, list(world.components))
    seconds = rng.choice((0.5, 3.0, 12.0, 20.0, 60.0))
    world.pause(name, seconds)


async def pause_leader(world: World, rng: Random) -> None:
    for name in world.electing:
        if world.components[name].leads:
            world.pause(name, rng.choice((11.0, 16.0, 30.0, 60.0)))


async def disk_full(world: World, rng: Random) -> None:
    world.trouble_for(60.0)
    world.disk.full = True
    await world.sleep(rng.uniform(0.5, 8.0))
    world.disk.full = False


async def sync_fails(world: World, rng: Random) -> None:
    world.trouble_for(60.0)
    world.disk.fails_to_sync = True
    await world.sleep(rng.uniform(0.2, 2.0))
    world.disk.fails_to_sync = False


async def slow_disk(world: World, rng: Random) -> None:
    seconds = rng.uniform(2.0, 20.0)
    world.trouble_for(seconds + 10.0)
    world.disk.slow = rng.choice((0.05, 0.5, 3.0))
    await world.sleep(seconds)
    world.disk.slow = 0.0


async def clock_jumps(world: World, rng: Random) -> None:
    name = rng.choice(("server", "controllers", "kubelets"))
    world.counts["clock jump"] += 1
    world.trouble_for(60.0)
    world.components[name].clock.offset += rng.choice((-3600.0, -60.0, 60.0, 3600.0))


Action = Callable[["World", Random], Awaitable[None]]
USERS: dict[str, tuple[Action, float]] = {
    "create gang": (create_gang, 8),
    "create important gang": (create_important_gang, 3),
    "create tree": (create_tree, 2),
    "create pods": (create_pods, 4),
    "create foreign pods": (create_foreign_pods, 2),
    "delete pod": (delete_pod, 3),
    "delete group": (delete_group, 4),
    "resubmit": (resubmit, 3),
    "scale": (scale, 2),
    "change minimum": (change_minimum, 1.5),
    "label pod": (label_pod, 2),
}
FAULTS: dict[str, tuple[Action, float]] = {
    "trouble": (trouble, 12),
    "delay": (slow_network, 2),
    "crash": (crash, 3),
    "server crashes": (server_crashes, 1),
    "leader crashes": (leader_crashes, 3),
    "stop leader": (stop_leader, 1),
    "pause": (pause, 2),
    "pause leader": (pause_leader, 2),
    "disk full": (disk_full, 1),
    "sync fails": (sync_fails, 1),
    "slow disk": (slow_disk, 1),
    "clock jumps": (clock_jumps, 1.5),
    "node dies": (node_dies, 1.5),
    "node flaps": (node_flaps, 1),
    "cordon": (cordon, 2),
    "shrink": (shrink, 1),
    "delete node": (delete_node, 0.7),
}
