"""The night after the faults: everything must come to rest, and everybody who fits must run.

First the cluster as the day left it: caches equal the store (I6), no gang is half bound (I1), units that go together
are whole (I11), and a scheduler without a past would decide nothing (the oracle). Then everything that runs is removed,
step by step: every group that fits into the idle cluster must get its turn (I9). At the end nothing is left: no object,
no task, no entry in a cache beyond what there was at the beginning (I14).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from muster.api.resources import (
    COMPOSITE_POD_GROUPS,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    Resource,
)
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from tests.simulation.amounts import cpu_of, cpu_of_pod
from tests.simulation.invariants import CANARY, ENDED, group_of, minimum_of

if TYPE_CHECKING:
    from tests.simulation.world import World

SECRETS = Resource("", "v1", "secrets", "Secret", True)
LONGEST_REST = 300.0  # virtual seconds after which everything must have come to rest
STEP = 10.0
GROUPS = "podgroups.scheduling.k8s.io"
COMPOSITES = "compositepodgroups.scheduling.k8s.io"


async def prepare(world: World) -> None:
    """What the cluster has from the start."""
    user = world.users
    await user.create(PRIORITY_CLASSES, {"metadata": {"name": "important"}, "value": 100})
    quota = {"metadata": {"name": "pods", "namespace": "default"}, "spec": {"hard": {"pods": "60"}}}
    await user.create(RESOURCE_QUOTAS, quota)
    secret = {"metadata": {"name": "token", "namespace": "default"}, "stringData": {"token": CANARY.decode()}}
    await user.create(SECRETS, secret)


async def heal(world: World) -> None:
    """Everything that was broken works again; pods of other schedulers leave."""
    user = world.users
    await until_served(world)
    world.components["foreign"].wanted = False
    world.components["foreign"].kill(0.1)
    for component in world.components.values():
        component.start()
    there = {node["metadata"]["name"] for node in world.history.current("nodes")}
    for number in range(world.node_count):
        name = f"node-{number}"
        if name not in there:
            continue
        meta = {"annotations": {"muster.dev/failed": None}}
        await user.patch(NODES, name, {"metadata": meta, "spec": {"unschedulable": None}})
        await user.patch(NODES, name, {"status": {"allocatable": {"cpu": "4"}}}, subresource="status")
    if len(there) < world.node_count:
        world.components["kubelets"].kill(0.1)
    for pod in world.history.current("pods"):
        if pod["spec"].get("schedulerName") == "foreign":
            await _delete(world, PODS, pod["metadata"]["name"])


async def until_served(world: World) -> None:
    while world.network.server is None:
        world.components["server"].start()
        await world.sleep(0.5)


async def _delete(world: World, resource: Any, name: str) -> None:
    from muster.api.errors import ApiError

    try:
        await world.users.delete(resource, name, "default")
    except ApiError as error:
        if error.code != 404:
            raise


async def check(world: World) -> None:
    await rest(world)
    check_at_rest(world)
    await empty_step_by_step(world)
    await remove_everything(world)
    check_nothing_left(world)
    if world.replays:
        check_replays(world)


async def rest(world: World) -> bool:
    """Wait until nothing happens any more that concerns pods, at most so long."""
    end = world.loop.now + LONGEST_REST
    calm_since, seen = world.loop.now, -1
    await world.sleep(30.0)
    while world.loop.now < end:
        newest = max((world.history.tables.get(name) or [0])[-1] for name in ("pods", GROUPS, COMPOSITES))
        if newest != seen or not _leader(world):
            seen, calm_since = newest, world.loop.now
        if world.loop.now - calm_since >= 20.0 and not find_faults(world):
            return True
        await world.sleep(STEP)
    return False


def find_faults(world: World) -> list[str]:
    return [*stale_caches(world), *half_bound(world), *torn_units(world), *never_started(world), *parked(world)]


def check_at_rest(world: World) -> None:
    for fault in find_faults(world):
        world.complain(fault)


def _leader(world: World) -> Any:
    return next((world.components[name] for name in world.electing if world.components[name].leads), None)


def _engines(world: World) -> list[Any]:
    leader = _leader(world)
    second = world.components.get("c")
    return [each for each in (leader, second) if each is not None and each.engine is not None]


# --- the cluster as it was left --------------------------------------------------------------------


def stale_caches(world: World) -> list[str]:
    """I6: what informers hold is what is stored."""
    if _leader(world) is None:
        return ["I9 nobody leads"]
    caches: list[tuple[str, str, dict[Any, Any]]] = []
    for component in _engines(world):
        for source in component.engine.sources.values():
            resource = source._reflector.resource
            caches.append((component.name, _table(resource), source.known))
    manager = world.components["controllers"].manager
    if manager is not None:
        informers = manager.controllers[0].context.informers
        caches += [("controllers", _table(store.resource), store.objects) for store in informers.all.values()]
    wrong: list[str] = []
    for name, table, known in caches:
        if table.startswith(("leases", "events")):
            continue
        held = {key: obj.metadata.resource_version for key, obj in known.items()}
        stored = {
            (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj["metadata"]["resourceVersion"]
            for obj in world.history.current(table)
        }
        if held != stored:
            differing = sorted(key for key in held.keys() | stored.keys() if held.get(key) != stored.get(key))
            wrong.append(f"I6 the cache of {name} for {table} is wrong about {differing[:3]}")
    return wrong


def _table(resource: Any) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def half_bound(world: World) -> list[str]:
    return [f"I1 gang {name} is bound in part" for name in world.invariants.partial_groups()]


def never_started(world: World) -> list[str]:
    """A bound pod is started by its kubelet, whatever was done to clocks and connections."""
    return [
        f"I9 pod {pod['metadata']['name']} is bound and was never started"
        for pod in world.history.current("pods")
        if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending"
    ]


def torn_units(world: World) -> list[str]:
    """I11: of a group that is evicted as a whole, nobody stays."""
    alive = {pod["metadata"]["uid"]: pod for pod in world.history.current("pods")}
    return [
        f"I11 {alive[uid]['metadata']['name']} stays although its group was evicted as a whole"
        for uid in world.invariants.left_behind()
        if uid in alive and not alive[uid]["metadata"].get("deletionTimestamp")
    ]


def parked(world: World) -> list[str]:
    """The oracle: a scheduler that is told what is stored would bind and evict nothing."""
    wrong: list[str] = []
    for component in _engines(world):
        engine = component.engine
        fresh = Scheduler(engine.config, seed=engine.settings.seed, gates=engine.settings.gates)
        now = component.process.context.run(engine._clock.now)
        for kind, source in engine.sources.items():
            for obj in source.known.values():
                fresh.handle(events.ObjectUpdated(kind, obj), now)
        fresh.handle(events.CacheSynced(), now)
        found: list[Any] = []
        for _ in range(300):
            found += [each for each in fresh.next(now) if isinstance(each, d.Bind | d.Evict)]
            if fresh.is_idle(now):
                break
        if found:
            wrong.append(f"I9 {component.name} does not do what a new scheduler would: {found[0]}")
    return wrong


# --- the idle cluster ------------------------------------------------------------------------------


def waiting_pods(world: World) -> list[dict[str, Any]]:
    return [
        pod
        for pod in world.history.current("pods")
        if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
    ]


async def empty_step_by_step(world: World) -> None:
    """Remove what runs, until nobody waits; who waits although it fits into the idle cluster is a fault."""
    for _ in range(8):
        waiting = {group_of(pod) or pod["metadata"]["name"] for pod in waiting_pods(world)}
        if not waiting:
            return
        removed = await _remove_running(world, waiting)
        await rest(world)
        still = {group_of(pod) or pod["metadata"]["name"] for pod in waiting_pods(world)}
        if not removed and still == waiting:
            break
    for fault in unserved(world):
        world.complain(fault)


async def _remove_running(world: World, waiting: set[str]) -> bool:
    removed = False
    trees = {_root(world, name) for name in waiting}
    for group in world.history.current(GROUPS):
        name = group["metadata"]["name"]
        if name in waiting or _root(world, name) in trees or not _bound_members(world, name):
            continue
        removed = True
        await _remove_gang(world, name)
    for pod in world.history.current("pods"):
        if not group_of(pod) and pod["spec"].get("nodeName"):
            removed = True
            await _delete(world, PODS, pod["metadata"]["name"])
    return removed


async def _remove_gang(world: World, name: str) -> None:
    await _delete(world, REPLICA_SETS, name)
    for pod in world.history.current("pods"):
        if group_of(pod) == name:
            await _delete(world, PODS, pod["metadata"]["name"])
    await _delete(world, POD_GROUPS, name)


def _bound_members(world: World, name: str) -> list[Any]:
    return [pod for pod in world.invariants.members(name) if pod["spec"].get("nodeName")]


def _root(world: World, name: str) -> str:
    for group in world.history.current(GROUPS):
        if group["metadata"]["name"] == name:
            return group["spec"].get("parentCompositePodGroupName") or name
    return name


def unserved(world: World) -> list[str]:
    """I9: groups that wait although they would surely fit beside what still runs."""
    free = {
        node["metadata"]["name"]: cpu_of(node["status"]["allocatable"])
        for node in world.history.current("nodes")
        if not node["spec"].get("unschedulable")
    }
    racks = {
        node["metadata"]["name"]: node["metadata"]["labels"].get("topology.muster.dev/rack")
        for node in world.history.current("nodes")
    }
    for pod in world.history.current("pods"):
        if pod["spec"].get("nodeName") in free and pod["status"].get("phase") not in ENDED:
            free[pod["spec"]["nodeName"]] -= cpu_of_pod(pod)
    waiting = waiting_pods(world)
    wrong = [
        f"I9 pod {pod['metadata']['name']} waits although it fits"
        for pod in waiting
        if not group_of(pod) and any(room >= cpu_of_pod(pod) for room in free.values())
    ]
    groups = {each["metadata"]["name"]: each for each in world.history.current(GROUPS)}
    for name in sorted({group_of(pod) for pod in waiting} & groups.keys()):
        group = groups[name]
        if group["spec"].get("parentCompositePodGroupName") or group["metadata"].get("deletionTimestamp"):
            continue
        members = [pod for pod in waiting if group_of(pod) == name]
        running = [pod for pod in _bound_members(world, name) if pod["status"].get("phase") not in ENDED]
        needed = max(minimum_of(group) - len(running), 1)
        if len(members) < needed or _is_mixed(world, group):
            continue
        size = max(cpu_of_pod(pod) for pod in members)
        topology = (group["spec"].get("schedulingConstraints") or {}).get("topology")
        seats: dict[str, int] = {}
        for node, room in free.items():
            where = racks[node] if topology else "all"
            seats[where] = seats.get(where, 0) + room // size
        if max(seats.values(), default=0) >= needed and not (topology and _bound_members(world, name)):
            wrong.append(f"I9 gang {name} waits although it fits: {needed} pods of {size}m, seats {seats}")
    return wrong


def _is_mixed(world: World, group: dict[str, Any]) -> bool:
    """Whether the members cannot start together because they ask for different schedulers or priorities."""
    members = world.invariants.members(group["metadata"]["name"])
    asked = {(pod["spec"].get("schedulerName"), pod["spec"].get("priority") or 0) for pod in members}
    return len(asked) > 1 or (group["spec"].get("priority") or 0) not in {priority for _, priority in asked}


# --- the end ---------------------------------------------------------------------------------------


async def remove_everything(world: World) -> None:
    for table, resource in (
        ("replicasets.apps", REPLICA_SETS),
        ("pods", PODS),
        (GROUPS, POD_GROUPS),
        (COMPOSITES, COMPOSITE_POD_GROUPS),
    ):
        for obj in world.history.current(table):
            await _delete(world, resource, obj["metadata"]["name"])
    for _ in range(12):
        await world.sleep(STEP)
        if not any(world.history.current(table) for table in ("pods", GROUPS, COMPOSITES)):
            break
        for pod in world.history.current("pods"):
            await _delete(world, PODS, pod["metadata"]["name"])
    await world.sleep(STEP)


def check_nothing_left(world: World) -> None:
    for table in ("pods", GROUPS, COMPOSITES):
        left = [obj["metadata"]["name"] for obj in world.history.current(table)]
        if left:
            world.complain(f"I9 {table} {left[:4]} cannot be deleted")
    quota = world.history.current("resourcequotas")
    used = ((quota[0].get("status") or {}).get("used") or {}).get("pods") if quota else None
    if used not in (None, "0") and not world.history.current("pods"):
        world.complain(f"the quota says {used} pods are in use, and there are none")
    for component in _engines(world):
        state = component.engine.scheduler.state
        left = {
            "entities": len(state.queue.entities),
            "members": len(state.forest.members),
            "nominations": len(list(state.nominations)) if hasattr(state.nominations, "__iter__") else 0,
            "calls": component.engine._parts.queue.pending(),
        }
        if any(left.values()):
            world.complain(f"I14 {component.name} keeps {left} of a cluster without pods")
    for name, component in world.components.items():
        if component.running and len(component.process.running_tasks()) > 160:
            world.complain(f"I14 {name} has {len(component.process.running_tasks())} tasks at rest")


def check_replays(world: World) -> None:
    """I12: the same events give the same decisions."""
    for component in _engines(world):
        scheduler = component.engine.scheduler
        fresh = Scheduler(
            component.engine.config, seed=component.engine.settings.seed, gates=component.engine.settings.gates
        )
        for number, (what, value, now) in enumerate(scheduler.record):
            if what == "event":
                fresh.handle(value, now)
            elif msgspec.json.encode(fresh.next(now)) != msgspec.json.encode(value):
                world.complain(f"I12 a replay decides otherwise at step {number}")
                break
    world.counts["replay"] += 1
