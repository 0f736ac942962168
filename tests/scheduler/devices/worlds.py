"""Small random worlds of devices and claims, and an allocator that tries everything."""

from __future__ import annotations

from itertools import combinations_with_replacement
from random import Random

import msgspec

from muster.api.devices import ResourceClaim
from tests.build.devices import DRIVER, Obj, a_claim

# --- random worlds ---------------------------------------------------------------------------------


def random_devices(random: Random) -> list[Obj]:
    """Up to six devices with two attributes, counters of one set, capacities and taints, each now and then."""
    devices: list[Obj] = []
    for number in range(random.randint(1, 6)):
        device: Obj = {"name": f"d{number}", "attributes": {"model": {"string": random.choice("ab")}}}
        if random.random() < 0.8:
            device["attributes"]["root"] = {"int": random.randint(0, 2)}
        if random.random() < 0.3:
            counters = {"slices": {"value": str(random.randint(1, 3))}}
            device["consumesCounters"] = [{"counterSet": "set", "counters": counters}]
        if random.random() < 0.4:
            device["capacity"] = {"memory": {"value": str(random.choice((4, 8)))}}
            device["allowMultipleAllocations"] = random.random() < 0.6
        if random.random() < 0.15:
            device["taints"] = [{"key": "bad", "effect": random.choice(("NoSchedule", "None"))}]
        devices.append(device)
    return devices


def random_claim(random: Random) -> ResourceClaim:
    """One to three requests, some with alternatives, for all devices or for capacity, under constraints."""
    requests: list[Obj] = []
    for number in range(random.randint(1, 3)):
        if random.random() < 0.25:
            ways = [{"name": f"s{way}", **_random_exact(random)} for way in range(2)]
            requests.append({"name": f"r{number}", "firstAvailable": ways})
        else:
            exact = _random_exact(random)
            if random.random() < 0.1:
                exact["adminAccess"] = True
            requests.append({"name": f"r{number}", "exactly": exact})
    constraints: list[Obj] = []
    if random.random() < 0.5:
        kind = random.choice(("matchAttribute", "distinctAttribute"))
        constraint: Obj = {kind: f"{DRIVER}/root"}
        if random.random() < 0.5:
            constraint["requests"] = [random.choice(requests)["name"]]
        constraints.append(constraint)
    return a_claim(*requests, constraints=constraints)


def _random_exact(random: Random) -> Obj:
    exact: Obj = {"deviceClassName": random.choice(("gpu", "model-a"))}
    if random.random() < 0.1:
        exact["allocationMode"] = "All"
    else:
        exact["count"] = random.randint(1, 2)
    if random.random() < 0.3:
        exact["capacity"] = {"requests": {"memory": str(random.randint(1, 5))}}
    if random.random() < 0.2:
        exact["tolerations"] = [{"key": "bad", "operator": "Exists"}]
    return exact


# --- trying everything -----------------------------------------------------------------------------


def feasible(claims: list[ResourceClaim], devices: list[Obj], counters: dict[str, int], in_use: set[str]) -> bool:
    """Whether devices for all claims exist, found by trying every choice of every request, on the JSON itself."""
    options: list[list[tuple[int, str, Obj, tuple[Obj, ...]]]] = []
    for number, claim in enumerate(claims):
        raw = msgspec.to_builtins(claim)["spec"]["devices"]
        for request in raw["requests"]:
            ways = request.get("firstAvailable") or [request["exactly"]]
            choices: list[tuple[int, str, Obj, tuple[Obj, ...]]] = []
            for way in ways:
                name = f"{request['name']}/{way['name']}" if "name" in way else request["name"]
                choices += [(number, name, way, picked) for picked in _sets(way, devices)]
            options.append(choices)
    return _extend((), options, claims, counters, in_use)


def _extend(
    chosen: tuple[tuple[int, str, Obj, tuple[Obj, ...]], ...],
    options: list[list[tuple[int, str, Obj, tuple[Obj, ...]]]],
    claims: list[ResourceClaim],
    counters: dict[str, int],
    in_use: set[str],
) -> bool:
    """Every way to go on with a choice. What is wrong with a part of a choice is wrong with all of it."""
    if not _consistent(chosen, claims, counters, in_use):
        return False
    if len(chosen) == len(options):
        return True
    return any(_extend((*chosen, one), options, claims, counters, in_use) for one in options[len(chosen)])


def _matches(way: Obj, device: Obj) -> bool:
    if way["deviceClassName"] == "model-a" and device["attributes"]["model"]["string"] != "a":
        return False
    return way.get("capacity") is None or _consumed(way, device) is not None


def _consumed(way: Obj, device: Obj) -> int | None:
    has = int(device.get("capacity", {}).get("memory", {}).get("value", -1))
    wanted = (way.get("capacity") or {}).get("requests", {}).get("memory")
    if wanted is None:
        return max(has, 0)
    return int(wanted) if int(wanted) <= has else None


def _sets(way: Obj, devices: list[Obj]) -> list[tuple[Obj, ...]]:
    matching = [device for device in devices if _matches(way, device)]
    if way.get("allocationMode") == "All":
        return [tuple(matching)] if matching else []
    count = way.get("count", 1)
    found = combinations_with_replacement(matching, count)
    return [one for one in found if all(d.get("allowMultipleAllocations") for d in one if one.count(d) > 1)]


def _consistent(
    choice: tuple[tuple[int, str, Obj, tuple[Obj, ...]], ...],
    claims: list[ResourceClaim],
    counters: dict[str, int],
    in_use: set[str],
) -> bool:
    uses: dict[str, list[tuple[Obj, Obj]]] = {}
    for number, _, way, picked in choice:
        for device in picked:
            tolerated = bool(way.get("tolerations"))
            if not tolerated and any(taint["effect"] == "NoSchedule" for taint in device.get("taints", ())):
                return False
            if way.get("adminAccess"):
                continue
            if device["name"] in in_use:
                return False
            uses.setdefault(device["name"], []).append((device, way))
        if way.get("adminAccess"):
            mine = [d["name"] for other, _, _, taken in choice if other == number for d in taken]
            if any(mine.count(device["name"]) > 1 for device in picked):
                return False
    spent = 0
    for users in uses.values():
        device = users[0][0]
        if len(users) > 1 and not device.get("allowMultipleAllocations"):
            return False
        if device.get("allowMultipleAllocations"):
            total = sum(_consumed(way, device) or 0 for _, way in users)
            if total > int(device["capacity"]["memory"]["value"]):
                return False
        for consumption in device.get("consumesCounters", ()):
            spent += int(consumption["counters"]["slices"]["value"])
    return spent <= counters.get("slices", 0) and all(
        _constraint_holds(number, constraint, choice)
        for number, claim in enumerate(claims)
        for constraint in msgspec.to_builtins(claim)["spec"]["devices"].get("constraints") or ()
    )


def _constraint_holds(claim: int, constraint: Obj, choice: tuple[tuple[int, str, Obj, tuple[Obj, ...]], ...]) -> bool:
    covered = constraint.get("requests")
    values: list[int] = []
    for number, name, _, picked in choice:
        if number != claim or (covered and name not in covered and name.partition("/")[0] not in covered):
            continue
        for device in picked:
            root = device["attributes"].get("root")
            if root is None:
                return False
            values.append(root["int"])
    if "matchAttribute" in constraint:
        return len(set(values)) <= 1
    return len(set(values)) == len(values)
