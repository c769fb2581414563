"""Claims, slices and taint rules as controllers read them: who has which device, and which devices are tainted.

Scheduling reads `devices`.
"""

from situate.core.model.base import EMPTY, Int64, Model
from situate.core.model.devices import DeviceTaint, DeviceTaintSelector, DeviceToleration
from situate.core.model.stored import Condition, Raw, StoredMeta, TemplateMeta


class ClaimConsumer(Model, frozen=True, kw_only=True):
    """An entry of `reservedFor`: a pod, unless it says otherwise."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDevice(Model, frozen=True, kw_only=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    tolerations: tuple[DeviceToleration, ...] = ()


class ManagedDeviceResults(Model, frozen=True, kw_only=True):
    results: tuple[AllocatedDevice, ...] = ()


class ManagedAllocation(Model, frozen=True, kw_only=True):
    devices: ManagedDeviceResults = ManagedDeviceResults()


class ManagedResourceClaimStatus(Model, frozen=True, kw_only=True):
    allocation: ManagedAllocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ManagedResourceClaim(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    status: ManagedResourceClaimStatus = ManagedResourceClaimStatus()


class ManagedResourceClaimTemplateSpec(Model, frozen=True, kw_only=True):
    """The spec of the claims is passed on unchanged."""

    metadata: TemplateMeta = TemplateMeta()
    spec: Raw = EMPTY


class ManagedResourceClaimTemplate(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ManagedResourceClaimTemplateSpec = ManagedResourceClaimTemplateSpec()


# -- what is wrong with devices ----------------------------------------------------------------------------------------


class TimedDeviceTaint(DeviceTaint, frozen=True, kw_only=True):
    time_added: str | None = None


class ManagedDevice(Model, frozen=True, kw_only=True):
    name: str = ""
    taints: tuple[TimedDeviceTaint, ...] = ()


class ManagedPool(Model, frozen=True, kw_only=True):
    name: str = ""
    generation: Int64 = 0


class ManagedResourceSliceSpec(Model, frozen=True, kw_only=True):
    driver: str = ""
    pool: ManagedPool = ManagedPool()
    devices: tuple[ManagedDevice, ...] = ()


class ManagedResourceSlice(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ManagedResourceSliceSpec = ManagedResourceSliceSpec()


class ManagedDeviceTaintRuleSpec(Model, frozen=True, kw_only=True):
    """Without a selector it taints nothing; an empty one selects every device."""

    device_selector: DeviceTaintSelector | None = None
    taint: TimedDeviceTaint = TimedDeviceTaint()


class ManagedDeviceTaintRuleStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class ManagedDeviceTaintRule(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ManagedDeviceTaintRuleSpec = ManagedDeviceTaintRuleSpec()
    status: ManagedDeviceTaintRuleStatus = ManagedDeviceTaintRuleStatus()
