"""`status.allocation` of a claim, from the devices that were picked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muster.api import quantity
from muster.api.devices import DeviceClaim, DeviceClass, DeviceConfiguration, DeviceToleration
from muster.api.types import NodeSelectorRequirement
from muster.scheduler.devices.allocator import Pick

Obj = dict[str, Any]


def allocation_of(
    picks: Sequence[Pick],
    claim: DeviceClaim,
    classes: Mapping[str, DeviceClass],
    node: str,
    new_share_id: Callable[[], str],
) -> Obj:
    """The allocation as the API stores it, for use on `node` and wherever else all of its devices can be reached."""
    allocation: Obj = {}
    devices: Obj = {}
    if picks:
        devices["results"] = [_result(pick, new_share_id) for pick in picks]
    if config := _configuration(picks, claim, classes):
        devices["config"] = config
    if devices:
        allocation["devices"] = devices
    if (selector := _node_selector(picks, node)) is not None:
        allocation["nodeSelector"] = selector
    return allocation


def _result(pick: Pick, new_share_id: Callable[[], str]) -> Obj:
    driver, pool, name = pick.device.id
    result: Obj = {"request": pick.request, "driver": driver, "pool": pool, "device": name}
    if pick.alternative.admin_access:
        result["adminAccess"] = True
    if pick.alternative.tolerations:
        result["tolerations"] = [_toleration(found) for found in pick.alternative.tolerations]
    if pick.device.binding_conditions:
        result["bindingConditions"] = list(pick.device.binding_conditions)
        result["bindingFailureConditions"] = list(pick.device.binding_failure_conditions)
    if pick.consumed is not None:
        result["shareID"] = new_share_id()
        result["consumedCapacity"] = {
            name: quantity.render(quantity.Quantity(amount, quantity.Form.BINARY))
            for name, amount in sorted(pick.consumed.items())
        }
    return result


def _toleration(toleration: DeviceToleration) -> Obj:
    found: Obj = {"key": toleration.key, "operator": toleration.operator}
    found |= {"value": toleration.value, "effect": toleration.effect}
    if toleration.toleration_seconds is not None:
        found["tolerationSeconds"] = toleration.toleration_seconds
    return {name: value for name, value in found.items() if value != ""}


def _configuration(picks: Sequence[Pick], claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> list[Obj]:
    """Configurations of the classes, each class once, then those of the claim that concern what was chosen."""
    chosen = list(dict.fromkeys((pick.request, pick.alternative.device_class) for pick in picks))
    everything = {request.name for request in claim.requests or ()}
    configuration: list[Obj] = []
    for device_class in dict.fromkeys(name for _, name in chosen):
        used_by = [request for request, name in chosen if name == device_class]
        found = classes.get(device_class)
        configs = (found.spec.config if found is not None else None) or ()
        configuration += [_entry("FromClass", used_by, everything, config) for config in configs]
    names = {request for request, _ in chosen} | {request.partition("/")[0] for request, _ in chosen}
    for config in claim.config or ():
        used_by = [name for name in config.requests or () if name in names]
        if used_by or not config.requests:
            configuration.append(_entry("FromClaim", used_by, everything, config))
    return configuration


def _entry(source: str, requests: Sequence[str], everything: set[str], config: DeviceConfiguration) -> Obj:
    entry: Obj = {"source": source}
    if requests and not everything <= {name.partition("/")[0] for name in requests}:
        entry["requests"] = list(requests)
    if config.opaque is not None:
        entry["opaque"] = config.opaque
    return entry


def _node_selector(picks: Sequence[Pick], node: str) -> Obj | None:
    """The nodes that can use all devices; None for all nodes."""
    if any(pick.device.reach.node_name or pick.device.binds_to_node for pick in picks):
        only = {"key": "metadata.name", "operator": "In", "values": [node]}
        return {"nodeSelectorTerms": [{"matchFields": [only]}]}
    expressions: list[Obj] = []
    fields: list[Obj] = []
    for pick in picks:
        selector = pick.device.reach.selector
        for term in (selector.node_selector_terms if selector is not None else None) or ():
            _merge(expressions, term.match_expressions or ())
            _merge(fields, term.match_fields or ())
    if not expressions and not fields:
        return None
    term = {"matchExpressions": expressions} if expressions else {}
    return {"nodeSelectorTerms": [term | ({"matchFields": fields} if fields else {})]}


def _merge(merged: list[Obj], requirements: Sequence[NodeSelectorRequirement]) -> None:
    for requirement in requirements:
        entry: Obj = {"key": requirement.key, "operator": requirement.operator}
        if requirement.values:
            entry["values"] = list(requirement.values)
        if entry not in merged:
            merged.append(entry)
