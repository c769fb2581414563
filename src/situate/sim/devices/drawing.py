"""Classes, pools of devices and claims of a world, drawn from a seed. There are few distinct values, so claims meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_changes
from random import Random
from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from situate.core.model.devices import (
    ALL,
    EXACT_COUNT,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    CELSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceSelectorSource,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from situate.core.model.meta import ObjectMeta
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.sim.workload import ZONE, ZONES

GPU_DRIVER: Final = "gpu.example.com"
NIC_DRIVER: Final = "nic.example.com"
ACCELERATOR: Final = "example.com/accelerator"
"""The extended resource that the class `gpu` serves."""
MEMORY: Final = "memory"
CAPACITY: Final = 16
COUNTERS: Final = "slots"
COUNTER: Final = "slot"
TAINT: Final = DeviceTaint(key="health", value="bad", effect="NoSchedule")
TOLERATION: Final = DeviceToleration(key="health", operator="Exists")
READY, BROKEN = "example.com/ready", "example.com/broken"

Reach: TypeAlias = Literal["node", "zone", "all", "each"]
"""Which nodes can use a pool: one, those of a zone, all, or as each device says."""

CLASSES: Final[Mapping[str, str]] = {
    "gpu": f'device.driver == "{GPU_DRIVER}"',
    "large": f'device.driver == "{GPU_DRIVER}" && device.attributes["{GPU_DRIVER}"].model == "large"',
    "nic": f'device.driver == "{NIC_DRIVER}"',
    "any": "",
}


def make_class(name: str, *, extended: bool) -> DeviceClass:
    expression = CLASSES[name]
    spec = DeviceClassSpec(
        selectors=(_cel(expression),) if expression else (),
        extended_resource_name=ACCELERATOR if extended and name == "gpu" else None,
    )
    return DeviceClass(metadata=ObjectMeta(name=name), spec=spec)


def _cel(expression: str) -> DeviceSelectorSource:
    return DeviceSelectorSource(cel=CELSelector(expression=expression))


# -- pools -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DevicePoolPlan:
    """A pool as its driver publishes it."""

    driver: str
    name: str
    reach: Reach
    where: str
    """A node or a zone."""
    devices: tuple[Device, ...]
    counters: tuple[CounterSet, ...] = ()
    parts: int = 1
    """In how many slices the devices are."""

    def slices(self, generation: int) -> list[ResourceSlice]:
        contents: list[dict[str, Any]] = [{"devices": self.devices[at :: self.parts]} for at in range(self.parts)]
        if self.counters:
            contents.append({"shared_counters": self.counters})
        pool = ResourcePool(name=self.name, generation=generation, resource_slice_count=len(contents))
        base = f"{self.driver.split('.')[0]}-{self.name}"
        return [
            ResourceSlice(
                metadata=ObjectMeta(name=f"{base}-{generation}-{at}"),
                spec=ResourceSliceSpec(driver=self.driver, pool=pool, **self._reached(), **content),
            )
            for at, content in enumerate(contents)
        ]

    def _reached(self) -> dict[str, Any]:
        match self.reach:
            case "node":
                return {"node_name": self.where}
            case "zone":
                return {"node_selector": _zone(self.where)}
            case "all":
                return {"all_nodes": True}
            case "each":
                return {"per_device_node_selection": True}


def _zone(zone: str) -> NodeSelector:
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=ZONE, operator="In", values=(zone,)),))
    return NodeSelector(node_selector_terms=(term,))


def draw_pool(
    rng: Random, driver: str, name: str, reach: Reach, where: str, *, number: int, late: float
) -> DevicePoolPlan:
    """`number` is part of the devices' names: no other device of that name has another nature.

    `late`: the probability of a device that is ready only some time after it was allocated.
    """
    count = rng.randint(1, 5)
    kind = rng.choice(("alone", "alone", "shared", "parts"))
    devices = [_device(rng, driver, f"d{number}-{at}", kind, late=late) for at in range(count)]
    if reach == "each":
        devices = [_changed(one, {"node_selector": _zone(rng.choice(ZONES))}) for one in devices]
    counters: tuple[CounterSet, ...] = ()
    if kind == "parts":
        room = {COUNTER: Counter(value=str(rng.randint(1, count + 1)))}
        counters = (CounterSet(name=COUNTERS, counters=room),)
    parts = rng.randint(1, min(2, count))
    return DevicePoolPlan(driver, name, reach, where, tuple(devices), counters, parts)


def _device(rng: Random, driver: str, name: str, kind: str, *, late: float) -> Device:
    attributes = {"model": DeviceAttribute(string=rng.choice(("large", "small")))}
    if rng.random() < 0.9:  # a selector that reads it fails on the others
        attributes["numa"] = DeviceAttribute(int_=rng.randint(0, 1))
    waits = rng.random() < late
    device = Device(
        name=name,
        attributes=attributes,
        taints=(TAINT,) if rng.random() < 0.1 else (),
        binding_conditions=(READY,) if waits else None,
        binding_failure_conditions=(BROKEN,) if waits else (),
    )
    if kind == "shared":
        policy = None
        if rng.random() < 0.5:
            span = CapacityRequestPolicyRange(min="2", max=str(CAPACITY), step="2")
            policy = CapacityRequestPolicy(default="4", valid_range=span)
        capacity = {MEMORY: DeviceCapacity(value=str(CAPACITY), request_policy=policy)}
        device = _changed(device, {"capacity": capacity, "allow_multiple_allocations": True})
    elif kind == "parts":
        taken = DeviceCounterConsumption(
            counter_set=COUNTERS, counters={COUNTER: Counter(value=str(rng.randint(1, 2)))}
        )
        device = _changed(device, {"consumes_counters": (taken,)})
    return device


def _changed(device: Device, changes: Mapping[str, Any]) -> Device:
    return replace(device, **changes)


def changed_pool(rng: Random, plan: DevicePoolPlan) -> DevicePoolPlan:
    """The pool with another taint, another capacity, a device more or a device less."""
    devices = list(plan.devices)
    at = rng.randrange(len(devices))
    device = devices[at]
    match rng.choice(("taint", "taint", "less", "more", "same")):
        case "taint":
            devices[at] = _changed(device, {"taints": () if device.taints else (TAINT,)})
        case "less" if len(devices) > 1:
            del devices[at]
        case "more" if len(devices) < 6:
            names, base = {one.name for one in devices}, device.name.rpartition("-")[0]
            devices.append(
                _changed(device, {"name": next(f"{base}-{n}" for n in range(7) if f"{base}-{n}" not in names)})
            )
        case _:
            pass
    return with_changes(plan, devices=tuple(devices), parts=min(plan.parts, len(devices)))


# -- claims ------------------------------------------------------------------------------------------------------------


def draw_claim_spec(rng: Random) -> ResourceClaimSpec:
    requests = tuple(_request(rng, f"r{at}") for at in range(rng.choice((1, 1, 1, 2))))
    constraints: tuple[DeviceConstraint, ...] = ()
    if rng.random() < 0.15:
        constraints = (DeviceConstraint(match_attribute=f"{GPU_DRIVER}/model"),)
    elif rng.random() < 0.1:
        constraints = (DeviceConstraint(distinct_attribute=f"{GPU_DRIVER}/numa"),)
    return ResourceClaimSpec(devices=DeviceClaim(requests=requests, constraints=constraints))


def _request(rng: Random, name: str) -> DeviceRequest:
    if rng.random() < 0.2:
        alternatives = tuple(_ask(rng, f"s{at}", alternative=True) for at in range(2))
        return DeviceRequest(name=name, first_available=alternatives)
    return DeviceRequest(name=name, exactly=_ask(rng, ""))


def _ask(rng: Random, name: str, *, alternative: bool = False) -> DeviceSubRequest:
    selectors: tuple[DeviceSelectorSource, ...] = ()
    draw = rng.random()
    if draw < 0.15:
        selectors = (_cel(f'device.attributes["{GPU_DRIVER}"].?numa.orValue(0) == 1'),)
    elif draw < 0.18:
        selectors = (_cel(f'device.attributes["{GPU_DRIVER}"].numa == 1'),)
    everything = rng.random() < 0.06
    capacity = None
    if rng.random() < 0.3:
        capacity = CapacityRequirements(requests={MEMORY: str(rng.choice((1, 3, 8)))})
    return DeviceSubRequest(
        name=name,
        device_class_name=rng.choice(("gpu", "gpu", "gpu", "large", "nic", "any")),
        selectors=selectors,
        allocation_mode=ALL if everything else EXACT_COUNT,
        count=0 if everything else rng.choice((1, 1, 1, 1, 2)),
        admin_access=True if rng.random() < 0.06 and not alternative else None,
        tolerations=(TOLERATION,) if rng.random() < 0.2 else (),
        capacity=capacity,
    )
