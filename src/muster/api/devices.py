"""Projections of the objects of `resource.k8s.io/v1`: what decides which devices a pod can have.

Like those in `muster.api.types` they are decoded from the wire and never written back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.types import Condition, Leaf, NodeSelector, ObjectMeta

Amount = str | int | float  # a quantity as JSON holds it

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
ADMIN_ACCESS_LABEL = "resource.kubernetes.io/admin-access"
IMPLICIT_EXTENDED_RESOURCE = "deviceclass.resource.kubernetes.io/"

EXACT_COUNT, ALL = "ExactCount", "All"
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"

MOST_RESULTS = 32
"""How many devices one claim may get."""


# --- slices ----------------------------------------------------------------------------------------


class AttributeValue(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename={"truth": "bool", "number": "int", "text": "string"},
):
    """A value of one of four types; the fields are not called like Python's types."""

    truth: bool | None = None
    number: int | None = None
    text: str | None = None
    version: str | None = None


class CapacityRange(Leaf, frozen=True):
    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityPolicy(Leaf, frozen=True):
    default: Amount | None = None
    valid_values: tuple[Amount, ...] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(Leaf, frozen=True):
    value: Amount = 0
    request_policy: CapacityPolicy | None = None


class DeviceTaint(Leaf, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Counter(Leaf, frozen=True):
    value: Amount = 0


class CounterSet(Leaf, frozen=True):
    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(Leaf, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class SliceDevice(Leaf, frozen=True):
    name: str = ""
    attributes: dict[str, AttributeValue] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    consumes_counters: tuple[CounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Leaf, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Leaf, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[SliceDevice, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: ResourceSliceSpec = ResourceSliceSpec()


# --- classes and taint rules -----------------------------------------------------------------------


class CELSelector(Leaf, frozen=True):
    expression: str = ""


class DeviceSelector(Leaf, frozen=True):
    cel: CELSelector | None = None


class DeviceConfiguration(Leaf, frozen=True):
    """The configuration of a class or a claim; what a driver reads in it (`opaque`) is passed on as it is."""

    requests: tuple[str, ...] | None = None
    opaque: dict[str, Any] | None = None


class DeviceClassSpec(Leaf, frozen=True):
    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[DeviceConfiguration, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(Leaf, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Leaf, frozen=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# --- claims ----------------------------------------------------------------------------------------


class DeviceToleration(Leaf, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Leaf, frozen=True):
    requests: dict[str, Amount] | None = None


class DeviceSubRequest(Leaf, frozen=True):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Leaf, frozen=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceRequest(Leaf, frozen=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(Leaf, frozen=True):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Leaf, frozen=True):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[DeviceConfiguration, ...] | None = None


class ResourceClaimSpec(Leaf, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Leaf, frozen=True):
    """One device of an allocation."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Amount] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None


class DeviceAllocation(Leaf, frozen=True):
    results: tuple[AllocatedDevice, ...] | None = None


class Allocation(Leaf, frozen=True):
    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(Leaf, frozen=True):
    """A pod or a group that an allocated claim is reserved for."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceStatus(Leaf, frozen=True):
    """What the driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] | None = None


class ResourceClaimStatus(Leaf, frozen=True):
    allocation: Allocation | None = None
    reserved_for: tuple[ConsumerReference, ...] | None = None
    devices: tuple[DeviceStatus, ...] | None = None


class ResourceClaim(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
