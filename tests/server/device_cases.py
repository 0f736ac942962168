"""Objects of `resource.k8s.io` that an API server refuses or changes, each for one reason.

`CASES` are creations, `UPDATES` pairs of an object and what it is to become, `STATUSES` writes of a claim's status.
Each is sent to Muster's own server and, in `make e2e`, to a real one; both answer the same.
"""

from __future__ import annotations

import copy
from typing import Any

Obj = dict[str, Any]
API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def claim(*requests: Obj, **devices: Any) -> Obj:
    """A claim with these requests."""
    spec = {"devices": {"requests": list(requests), **devices}}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec}


def exactly(name: str = "r", **fields: Any) -> Obj:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **fields}}


def first(name: str, *ways: Obj) -> Obj:
    return {"name": name, "firstAvailable": list(ways)}


def way(name: str, **fields: Any) -> Obj:
    return {"name": name, "deviceClassName": "gpu", **fields}


def cel(*expressions: str) -> list[Obj]:
    return [{"cel": {"expression": expression}} for expression in expressions]


def template(**spec: Any) -> Obj:
    body = {"spec": claim(exactly())["spec"], **spec}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}, "spec": body}


def device_class(**spec: Any) -> Obj:
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


def a_slice(*devices: Obj, **spec: Any) -> Obj:
    where = (
        {} if {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"} & spec.keys() else {"nodeName": "n"}
    )
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    body: Obj = {"driver": DRIVER, "pool": pool, **where, **spec}
    if devices:
        body["devices"] = list(devices)
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": body}


def device(name: str = "d", **fields: Any) -> Obj:
    return {"name": name, **fields}


def shared(policy: Obj | None = None, value: str = "10", **fields: Any) -> Obj:
    capacity: Obj = {"value": value}
    if policy is not None:
        capacity["requestPolicy"] = policy
    return device(allowMultipleAllocations=True, capacity={"memory": capacity}, **fields)


def taint_rule(**taint: Any) -> Obj:
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "bad", "effect": "NoExecute", **taint}}
    return {"apiVersion": API, "kind": "DeviceTaintRule", "metadata": {"name": "rule"}, "spec": spec}


def opaque(**fields: Any) -> Obj:
    return {"opaque": {"driver": DRIVER, "parameters": {"a": 1}, **fields}}


_OTHER_NODE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}

CASES: dict[str, Obj] = {
    "a plain claim": claim(exactly()),
    "a claim of nothing": claim(),
    "neither kind of request": claim({"name": "r"}),
    "both kinds of request": claim({**exactly(), "firstAvailable": [way("a")]}),
    "no alternatives": claim(first("r")),
    "too many alternatives": claim(first("r", *(way(f"w{at}") for at in range(9)))),
    "an alternative twice": claim(first("r", way("a"), way("a"))),
    "a request without a class": claim({"name": "r", "exactly": {}}),
    "a class with a bad name": claim(exactly(deviceClassName="Not_A_Name")),
    "a request without a name": claim(exactly("")),
    "a request with a bad name": claim(exactly("Bad/Name")),
    "a request twice": claim(exactly(), exactly()),
    "too many requests": claim(*(exactly(f"r{at}") for at in range(33))),
    "a count of all": claim(exactly(allocationMode="All", count=2)),
    "a count below zero": claim(exactly(count=-1)),
    "an unknown mode": claim(exactly(allocationMode="Some")),
    "an alternative with an unknown mode": claim(first("r", way("a", allocationMode="Some"))),
    "a selector that is none": claim(exactly(selectors=[{}])),
    "an empty expression": claim(exactly(selectors=cel(""))),
    "an expression with a fault": claim(exactly(selectors=cel("device.driver =="))),
    "an expression that is no condition": claim(exactly(selectors=cel("device.driver"))),
    "an expression with an unknown field": claim(exactly(selectors=cel("device.nothing == 1"))),
    "a very long expression": claim(exactly(selectors=cel("'" + "x" * 10300 + "' == ''"))),
    "an expression that costs too much": claim(
        exactly(
            selectors=cel(
                "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, "
                "[1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, "
                "[1,2,3,4,5,6,7,8,9].all(g, a+b+c+d+e+f+g > 0)))))))"
            )
        )
    ),
    "too many selectors": claim(exactly(selectors=cel(*(f"device.driver == '{at}'" for at in range(33))))),
    "administration without the label": claim(exactly(adminAccess=True)),
    "a toleration of all with a value": claim(exactly(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}])),
    "a toleration with an unknown operator": claim(exactly(tolerations=[{"key": "a", "operator": "Like"}])),
    "a toleration with an unknown effect": claim(
        exactly(tolerations=[{"key": "a", "operator": "Exists", "effect": "X"}])
    ),
    "a toleration with a bad key": claim(exactly(tolerations=[{"key": "a b", "operator": "Exists"}])),
    "a toleration without a key": claim(exactly(tolerations=[{"operator": "Equal", "value": "a"}])),
    "too many tolerations": claim(exactly(tolerations=[{"key": f"k{at}", "operator": "Exists"} for at in range(17)])),
    "a capacity request": claim(exactly(capacity={"requests": {"memory": "1Gi"}})),
    "a capacity with a bad name": claim(exactly(capacity={"requests": {"a/b/c": "1"}})),
    "a constraint of nothing": claim(exactly(), constraints=[{}]),
    "a constraint of both kinds": claim(
        exactly(), constraints=[{"matchAttribute": "a.b/c", "distinctAttribute": "a.b/c"}]
    ),
    "a constraint of an unknown request": claim(
        exactly(), constraints=[{"requests": ["x"], "matchAttribute": "a.b/c"}]
    ),
    "a constraint of an alternative": claim(
        first("r", way("a")), constraints=[{"requests": ["r/a"], "matchAttribute": "a.b/c"}]
    ),
    "a constraint of an unknown alternative": claim(
        first("r", way("a")), constraints=[{"requests": ["r/b"], "matchAttribute": "a.b/c"}]
    ),
    "a constraint without a domain": claim(exactly(), constraints=[{"matchAttribute": "model"}]),
    "a constraint with a bad name": claim(exactly(), constraints=[{"matchAttribute": "a.b/9x"}]),
    "a constraint with a request twice": claim(
        exactly(), constraints=[{"requests": ["r", "r"], "matchAttribute": "a.b/c"}]
    ),
    "a configuration without a source": claim(exactly(), config=[{}]),
    "a configuration of an unknown request": claim(exactly(), config=[{"requests": ["x"], **opaque()}]),
    "a configuration without a driver": claim(exactly(), config=[{"opaque": {"parameters": {"a": 1}}}]),
    "a configuration without parameters": claim(exactly(), config=[{"opaque": {"driver": DRIVER}}]),
    "a configuration that is no object": claim(exactly(), config=[opaque(parameters="text")]),
    "a plain template": template(),
    "a template with a fault": template(spec=claim({"name": "r"})["spec"]),
    "a template with bad labels": template(metadata={"labels": {"a b": "c"}}),
    "a plain class": device_class(selectors=cel("device.driver == 'a'")),
    "an empty class": device_class(),
    "a class with a fault": device_class(selectors=cel("device.driver ==")),
    "a class with a bad extended resource": device_class(extendedResourceName="cpu"),
    "a class with an extended resource": device_class(extendedResourceName="example.com/gpu"),
    "a class with a bad configuration": device_class(config=[{"opaque": {"driver": "Not A Driver", "parameters": {}}}]),
    "a plain slice": a_slice(device()),
    "a slice of nothing": a_slice(),
    "a slice without a driver": a_slice(device(), driver=""),
    "a slice with a bad driver": a_slice(device(), driver="Bad_Driver"),
    "a slice without a pool": a_slice(device(), pool={"name": "", "resourceSliceCount": 1}),
    "a pool with a bad name": a_slice(device(), pool={"name": "a//b", "resourceSliceCount": 1}),
    "a pool without slices": a_slice(device(), pool={"name": "p", "resourceSliceCount": 0}),
    "a pool with a generation below zero": a_slice(
        device(), pool={"name": "p", "generation": -1, "resourceSliceCount": 1}
    ),
    "a slice nowhere": a_slice(device(), nodeName=None),
    "a slice in two places": a_slice(device(), nodeName="n", allNodes=True),
    "a slice on no nodes at all": a_slice(device(), allNodes=False),
    "a slice with a selector of two terms": a_slice(
        device(), nodeSelector={"nodeSelectorTerms": _OTHER_NODE["nodeSelectorTerms"] * 2}
    ),
    "a slice with a selector": a_slice(device(), nodeSelector=_OTHER_NODE),
    "a slice with an empty selector": a_slice(device(), nodeSelector={"nodeSelectorTerms": []}),
    "a slice with a bad node name": a_slice(device(), nodeName="Bad_Node"),
    "too many devices": a_slice(*(device(f"d{at}") for at in range(129))),
    "too many devices with taints": a_slice(
        *(device(f"d{at}", taints=[{"key": "a", "effect": "NoSchedule"}]) for at in range(65))
    ),
    "a device twice": a_slice(device(), device()),
    "a device with a bad name": a_slice(device("Bad_Name")),
    "an attribute with a bad name": a_slice(device(attributes={"9a": {"int": 1}})),
    "an attribute with a bad domain": a_slice(device(attributes={"a_b/c": {"int": 1}})),
    "an attribute with a long name": a_slice(device(attributes={"a" * 33: {"int": 1}})),
    "an attribute without a value": a_slice(device(attributes={"a": {}})),
    "an attribute with two values": a_slice(device(attributes={"a": {"int": 1, "bool": True}})),
    "an attribute with a long text": a_slice(device(attributes={"a": {"string": "x" * 65}})),
    "an attribute with a bad version": a_slice(device(attributes={"a": {"version": "1.2"}})),
    "too many attributes": a_slice(device(attributes={f"a{at}": {"int": at} for at in range(33)})),
    "a capacity with a bad name for a device": a_slice(device(capacity={"a-b": {"value": "1"}})),
    "a policy on a device of one": a_slice(
        device(capacity={"memory": {"value": "10", "requestPolicy": {"default": "1"}}})
    ),
    "a policy": a_slice(shared({"default": "2", "validRange": {"min": "2", "max": "8", "step": "2"}})),
    "a policy of both kinds": a_slice(shared({"default": "2", "validValues": ["2"], "validRange": {"min": "2"}})),
    "a policy without a default": a_slice(shared({"validValues": ["2"]})),
    "a range without a default": a_slice(shared({"validRange": {"min": "2"}})),
    "a range without a minimum": a_slice(shared({"default": "2", "validRange": {"max": "4"}})),
    "a range above the capacity": a_slice(shared({"default": "2", "validRange": {"min": "2", "max": "20"}})),
    "a range with a minimum above the capacity": a_slice(shared({"default": "20", "validRange": {"min": "20"}})),
    "a default below the range": a_slice(shared({"default": "1", "validRange": {"min": "2"}})),
    "a default above the range": a_slice(shared({"default": "6", "validRange": {"min": "2", "max": "4"}})),
    "a default off the steps": a_slice(shared({"default": "3", "validRange": {"min": "2", "step": "2"}})),
    "values out of order": a_slice(shared({"default": "2", "validValues": ["4", "2"]})),
    "values twice": a_slice(shared({"default": "2", "validValues": ["2", "2"]})),
    "a value above the capacity": a_slice(shared({"default": "2", "validValues": ["2", "20"]})),
    "a default that is no value": a_slice(shared({"default": "3", "validValues": ["2", "4"]})),
    "a taint without a key": a_slice(device(taints=[{"effect": "NoSchedule"}])),
    "a taint with an unknown effect": a_slice(device(taints=[{"key": "a", "effect": "Never"}])),
    "a taint without an effect": a_slice(device(taints=[{"key": "a"}])),
    "a taint with a bad value": a_slice(device(taints=[{"key": "a", "value": "b c", "effect": "None"}])),
    "too many taints": a_slice(device(taints=[{"key": f"k{at}", "effect": "None"} for at in range(17)])),
    "counters": a_slice(sharedCounters=[{"name": "set", "counters": {"slices": {"value": "7"}}}]),
    "counters and devices": a_slice(device(), sharedCounters=[{"name": "set", "counters": {"slices": {"value": "7"}}}]),
    "a counter set twice": a_slice(
        sharedCounters=[
            {"name": "set", "counters": {"a": {"value": "7"}}},
            {"name": "set", "counters": {"a": {"value": "7"}}},
        ]
    ),
    "a counter set of nothing": a_slice(sharedCounters=[{"name": "set"}]),
    "a counter with a bad name": a_slice(sharedCounters=[{"name": "set", "counters": {"a_b": {"value": "7"}}}]),
    "too many counter sets": a_slice(
        sharedCounters=[{"name": f"set{at}", "counters": {"a": {"value": "7"}}} for at in range(9)]
    ),
    "a consumption": a_slice(device(consumesCounters=[{"counterSet": "set", "counters": {"slices": {"value": "1"}}}])),
    "a consumption of nothing": a_slice(device(consumesCounters=[{"counterSet": "set"}])),
    "a consumption without a set": a_slice(device(consumesCounters=[{"counters": {"slices": {"value": "1"}}}])),
    "a consumption twice": a_slice(
        device(consumesCounters=[{"counterSet": "set", "counters": {"slices": {"value": "1"}}}] * 2)
    ),
    "a device with a node of its own": a_slice(device(nodeName="n")),
    "a device for each node": a_slice(device(nodeName="n"), perDeviceNodeSelection=True),
    "a device for no node": a_slice(device(), perDeviceNodeSelection=True),
    "a device for two": a_slice(device(nodeName="n", allNodes=True), perDeviceNodeSelection=True),
    "conditions without failures": a_slice(device(bindingConditions=["Ready"])),
    "failures without conditions": a_slice(device(bindingFailureConditions=["Failed"])),
    "conditions": a_slice(device(bindingConditions=["Ready"], bindingFailureConditions=["Failed"])),
    "conditions that are failures": a_slice(device(bindingConditions=["Ready"], bindingFailureConditions=["Ready"])),
    "a condition with a bad name": a_slice(device(bindingConditions=["a b"], bindingFailureConditions=["Failed"])),
    "too many conditions": a_slice(
        device(bindingConditions=[f"c{at}" for at in range(5)], bindingFailureConditions=["Failed"])
    ),
    "a taint rule": taint_rule(),
    "a taint rule with an unknown effect": taint_rule(effect="Never"),
    "a taint rule without a key": taint_rule(key=""),
}


def changed(obj: Obj, *path: str | int, value: Any) -> Obj:
    """A copy with another value at a path."""
    found = copy.deepcopy(obj)
    at: Any = found
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return found


UPDATES: dict[str, tuple[Obj, Obj]] = {
    "the spec of a claim": (claim(exactly()), claim(exactly(count=2))),
    "the labels of a claim": (claim(exactly()), changed(claim(exactly()), "metadata", "labels", value={"a": "b"})),
    "the spec of a template": (template(), template(spec=claim(exactly(count=2))["spec"])),
    "the labels inside a template": (template(), template(metadata={"labels": {"a": "b"}})),
    "the driver of a slice": (a_slice(device()), a_slice(device(), driver="other.example.com")),
    "the pool of a slice": (a_slice(device()), changed(a_slice(device()), "spec", "pool", "name", value="q")),
    "the generation of a pool": (a_slice(device()), changed(a_slice(device()), "spec", "pool", "generation", value=2)),
    "the node of a slice": (a_slice(device()), a_slice(device(), nodeName="m")),
    "the devices of a slice": (a_slice(device()), a_slice(device("e"))),
    "the selectors of a class": (
        device_class(selectors=cel("device.driver == 'a'")),
        device_class(selectors=cel("device.driver ==")),
    ),
    "the driver of a taint rule": (
        taint_rule(),
        changed(taint_rule(), "spec", "deviceSelector", "driver", value="other.example.com"),
    ),
    "the effect of a taint rule": (taint_rule(), taint_rule(effect="NoSchedule")),
}

_RESULT = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d"}
_HERE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}
ALLOCATION = {"devices": {"results": [_RESULT]}, "nodeSelector": _HERE}
_POD = {"resource": "pods", "name": "p", "uid": "u"}
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def status(allocation: Obj | None = None, **fields: Any) -> Obj:
    return {**({"allocation": allocation} if allocation is not None else {}), **fields}


def allocation(result: Obj | None = None, **fields: Any) -> Obj:
    return {**ALLOCATION, "devices": {"results": [{**_RESULT, **(result or {})}]}, **fields}


def device_status(**fields: Any) -> Obj:
    return {"driver": DRIVER, "pool": "p", "device": "d", **fields}


STATUSES: dict[str, list[Obj]] = {
    "an allocation": [status(ALLOCATION)],
    "an allocation with a consumer": [status(ALLOCATION, reservedFor=[_POD])],
    "a consumer without an allocation": [status(reservedFor=[_POD])],
    "an allocation that changes": [status(ALLOCATION), status(allocation({"device": "e"}))],
    "an allocation that gets a time": [
        status(ALLOCATION),
        status(allocation(allocationTimestamp="2026-01-01T00:00:00Z")),
    ],
    "an allocation that goes": [status(ALLOCATION, reservedFor=[_POD]), status()],
    "an allocation of an unknown request": [status(allocation({"request": "x"}))],
    "an allocation without a driver": [status(allocation({"driver": ""}))],
    "an allocation with a bad pool": [status(allocation({"pool": "a//b"}))],
    "an allocation without a device": [status(allocation({"device": ""}))],
    "an allocation with a bad selector": [status(allocation(nodeSelector={"nodeSelectorTerms": []}))],
    "an allocation to administer": [status(allocation({"adminAccess": True}))],
    "an allocation with a configuration": [
        status({**ALLOCATION, "devices": {"results": [_RESULT], "config": [{"source": "FromClass", **opaque()}]}})
    ],
    "an allocation with a bad source": [
        status({**ALLOCATION, "devices": {"results": [_RESULT], "config": [{"source": "FromNowhere", **opaque()}]}})
    ],
    "an allocation with a configuration of an unknown request": [
        status(
            {
                **ALLOCATION,
                "devices": {"results": [_RESULT], "config": [{"source": "FromClass", "requests": ["x"], **opaque()}]},
            }
        )
    ],
    "a consumer twice": [status(ALLOCATION, reservedFor=[_POD, _POD])],
    "a consumer without a resource": [status(ALLOCATION, reservedFor=[{"name": "p", "uid": "u"}])],
    "a consumer without a uid": [status(ALLOCATION, reservedFor=[{"resource": "pods", "name": "p"}])],
    "too many consumers": [status(ALLOCATION, reservedFor=[{**_POD, "uid": f"u{at}"} for at in range(257)])],
    "a device that is not allocated": [status(ALLOCATION, devices=[device_status(device="e")])],
    "what a driver says": [status(ALLOCATION, devices=[device_status(conditions=[_READY])])],
    "a device said twice": [status(ALLOCATION, devices=[device_status(), device_status()])],
    "what a driver said of a device that is given back": [
        status(ALLOCATION, devices=[device_status(conditions=[_READY])]),
        status(devices=[device_status(conditions=[_READY])]),
    ],
    "data that is no object": [status(ALLOCATION, devices=[device_status(data="text")])],
    "a network without an address": [
        status(ALLOCATION, devices=[device_status(networkData={"ips": ["10.0.0.1"]})]),
    ],
    "a network": [
        status(ALLOCATION, devices=[device_status(networkData={"ips": ["10.0.0.1/24"], "interfaceName": "e0"})])
    ],
}
