"""Devices and who has them: DeviceClass, ResourceSlice, ResourceClaim and DeviceTaintRule of resource.k8s.io."""

from collections.abc import Mapping
from typing import Any

from msgspec import field

from situate.core.model.base import EMPTY, Int64, Model
from situate.core.model.meta import ObjectMeta
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.quantity import RawQuantity

EXACT_COUNT, ALL = "ExactCount", "All"


class CELSelector(Model, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelectorSource(Model, frozen=True, kw_only=True):
    """Kubernetes calls it DeviceSelector."""

    cel: CELSelector | None = None


class OpaqueDeviceConfiguration(Model, frozen=True, kw_only=True):
    """`parameters` is passed on as it is."""

    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(Model, frozen=True, kw_only=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Model, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelectorSource, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


# -- what drivers offer ------------------------------------------------------------------------------------------------


class DeviceAttribute(Model, frozen=True, kw_only=True):
    """One of these is set; the plural ones belong to a feature gate that is off."""

    int_: Int64 | None = field(default=None, name="int")
    bool_: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[Int64, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Model, frozen=True, kw_only=True):
    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityRequestPolicy(Model, frozen=True, kw_only=True):
    default: RawQuantity | None = None
    valid_values: tuple[RawQuantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Model, frozen=True, kw_only=True):
    value: RawQuantity = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(Model, frozen=True, kw_only=True):
    value: RawQuantity = 0


class CounterSet(Model, frozen=True, kw_only=True):
    name: str = ""
    counters: Mapping[str, Counter] = EMPTY


class DeviceCounterConsumption(Model, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: Mapping[str, Counter] = EMPTY


class DeviceTaint(Model, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class DeviceToleration(Model, frozen=True, kw_only=True):
    """No operator means `Equal`; no key, and no effect, means any."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class Device(Model, frozen=True, kw_only=True):
    """`binding_conditions` None and an empty list differ: a pool with a list, even an empty one, is tried last."""

    name: str = ""
    attributes: Mapping[str, DeviceAttribute] = EMPTY
    capacity: Mapping[str, DeviceCapacity] = EMPTY
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Model, frozen=True, kw_only=True):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Model, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Model, frozen=True, kw_only=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


def selects_device(selector: DeviceTaintSelector | None, driver: str, pool: str, device: str) -> bool:
    """Whether a DeviceTaintRule with this selector taints the device."""
    return (
        selector is not None
        and selector.driver in (None, driver)
        and selector.pool in (None, pool)
        and selector.device in (None, device)
    )


class DeviceTaintRuleSpec(Model, frozen=True, kw_only=True):
    """Without a selector it taints nothing; an empty one selects every device."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# -- what pods claim ---------------------------------------------------------------------------------------------------


class CapacityRequirements(Model, frozen=True, kw_only=True):
    requests: Mapping[str, RawQuantity] = EMPTY


class DeviceSubRequest(Model, frozen=True, kw_only=True):
    """What one request asks for. ExactCount means `count` devices, and 0 means 1."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelectorSource, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Model, frozen=True, kw_only=True):
    name: str = ""
    exactly: DeviceSubRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Model, frozen=True, kw_only=True):
    """For the named requests, or for all; `r/s` names one alternative of a request."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Model, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Model, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Model, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Model, frozen=True, kw_only=True):
    """One device that was given to a request. A device that several share has a share id."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: Mapping[str, RawQuantity] = EMPTY


class DeviceAllocationConfiguration(Model, frozen=True, kw_only=True):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Model, frozen=True, kw_only=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Model, frozen=True, kw_only=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Model, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Model, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Model, frozen=True, kw_only=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(Model, frozen=True, kw_only=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
