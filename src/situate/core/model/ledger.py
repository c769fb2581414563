"""A node's ledger: the pods on it, the exact sum of their requests, and what is left. Pure, in integers only.

cpu counts in thousandths, everything else in units: bytes, devices, pods. A pod counts with the requests of its spec,
from the transaction that binds it to the one in which it finishes or is gone. What an agent reports of a resize does
not count: no report can overfill a node. Extended resources that devices of a claim serve are not the node's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from situate.core.model.annotations import GPU_DEVICES, GPU_MILLI
from situate.core.model.base import EMPTY
from situate.core.model.gpu import DEVICE_MILLI, devices_of, gpu_need
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodExtendedResourceClaimStatus
from situate.core.model.requests import allocatable as node_resources
from situate.core.model.requests import fit_requests
from situate.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

Amounts: TypeAlias = Mapping[str, int]
"""By resource; what is not listed is 0."""
Port: TypeAlias = str
"""`TCP/80` on every address, `TCP/80/10.0.0.1` on one."""
GpuPart: TypeAlias = str
"""`3/500` is 500 thousandths of device 3."""

EVERY_ADDRESS: Final = "0.0.0.0"


class LedgerError(Exception):
    """What was to be removed is not on the ledger: a bug of ours."""


class LedgerPod(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One pod on a node, in its stored form."""

    namespace: str
    name: str
    uid: str
    binding_version: int
    host_ports: tuple[Port, ...] = ()
    gpus: tuple[GpuPart, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Ledger(msgspec.Struct, frozen=True):
    """All pods on a node, in the order in which they came, and the sum of their requests."""

    pods: tuple[LedgerPod, ...] = ()
    allocated: Amounts = EMPTY


@dataclass(frozen=True, slots=True)
class Short:
    """A resource that a node has too little of."""

    resource: str
    asked: int
    free: int
    allocatable: int

    def __str__(self) -> str:
        asked, free, whole = (quantity(self.resource, one) for one in (self.asked, self.free, self.allocatable))
        return f"{self.resource}: asked {asked}, free {free}, allocatable {whole}"


def amounts_of(pod: Pod) -> dict[str, int]:
    """What a pod takes of its node. No zeros."""
    asked = fit_requests(pod)
    amounts = {PODS: 1}
    if asked.milli_cpu:
        amounts[CPU] = asked.milli_cpu
    if asked.memory:
        amounts[MEMORY] = asked.memory
    if asked.ephemeral_storage:
        amounts[EPHEMERAL_STORAGE] = asked.ephemeral_storage
    if asked.scalar:
        served = served_by_devices(pod.status.extended_resource_claim_status)
        amounts.update((name, amount) for name, amount in asked.scalar.items() if name not in served)
    return amounts


def served_by_devices(status: PodExtendedResourceClaimStatus | None) -> tuple[str, ...]:
    """The extended resources of a pod that the devices of its claim serve."""
    return () if status is None else tuple(one.resource_name for one in status.request_mappings)


def allocatable_of(node: Node) -> dict[str, int]:
    has = node_resources(node)
    return {
        CPU: has.milli_cpu,
        MEMORY: has.memory,
        EPHEMERAL_STORAGE: has.ephemeral_storage,
        PODS: has.pods,
        **has.scalar,
    }


def room(allocatable: Amounts, allocated: Amounts, request: Amounts) -> list[Short]:
    """What is short for this request. A request for nothing fits even an overfull node."""
    short = []
    for resource, asked in request.items():
        has = allocatable.get(resource, 0)
        free = has - allocated.get(resource, 0)
        if asked > free and asked > 0:
            short.append(Short(resource, asked, free, has))
    return short


def add(ledger: Ledger, pod: LedgerPod, amounts: Amounts) -> Ledger:
    allocated = dict(ledger.allocated)
    for resource, amount in amounts.items():
        allocated[resource] = allocated.get(resource, 0) + amount
    return Ledger((*ledger.pods, pod), allocated)


def remove(ledger: Ledger, uid: str, amounts: Amounts) -> Ledger:
    """The ledger without a pod. Raises LedgerError if the pod or its amounts are not on it."""
    left = tuple(one for one in ledger.pods if one.uid != uid)
    if len(left) != len(ledger.pods) - 1:
        raise LedgerError(f"pod {uid} is {len(ledger.pods) - len(left)} times on the ledger")
    allocated = dict(ledger.allocated)
    for resource, amount in amounts.items():
        rest = allocated.get(resource, 0) - amount
        if rest < 0:
            raise LedgerError(f"{-rest} less {resource} on the ledger than pod {uid} takes")
        if rest:
            allocated[resource] = rest
        else:
            allocated.pop(resource, None)
    return Ledger(left, allocated)


def ports_of(pod: Pod) -> tuple[Port, ...]:
    """The host ports of a pod's containers and sidecars, as the scheduler counts them."""
    found: dict[Port, None] = {}
    sidecars = [one for one in pod.spec.init_containers if one.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port > 0:
                every = port.host_ip in ("", EVERY_ADDRESS)
                found[f"{port.protocol or 'TCP'}/{port.host_port}" + ("" if every else f"/{port.host_ip}")] = None
    return tuple(found)


def taken_ports(ledger: Ledger, ports: tuple[Port, ...]) -> list[tuple[Port, LedgerPod]]:
    """Those of these ports that clash with a pod on the ledger: same protocol and number, and a shared address."""
    if not ports:
        return []
    return [(port, pod) for port in ports for pod in ledger.pods if any(_clash(port, held) for held in pod.host_ports)]


def _clash(one: Port, other: Port) -> bool:
    """A port on every address is a prefix of the same port on one."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def gpus_of(pod: Pod) -> tuple[GpuPart, ...]:
    """A pod's parts of single GPUs, if an annotation assigns them."""
    annotations = pod.metadata.annotations
    text = annotations.get(GPU_DEVICES, "") if annotations else ""
    if not text:
        return ()
    need = gpu_need(annotations, fit_requests(pod).scalar)
    return tuple(f"{device}/{need.milli}" for device in devices_of(text, need) or ())


def taken_gpus(ledger: Ledger, gpus: tuple[GpuPart, ...]) -> list[Short]:
    """Those of these parts that do not fit beside the ledger's parts of the same device."""
    short = []
    for device, milli in map(_part, gpus):
        held = sum(part for pod in ledger.pods for at, part in map(_part, pod.gpus) if at == device)
        if held + milli > DEVICE_MILLI:
            short.append(Short(f"{GPU_MILLI} of device {device}", milli, DEVICE_MILLI - held, DEVICE_MILLI))
    return short


def _part(part: GpuPart) -> tuple[str, int]:
    device, _, milli = part.partition("/")
    return device, int(milli)


def quantity(resource: str, amount: int) -> str:
    """An amount in Kubernetes' notation: `1500m` of cpu, plain units of everything else."""
    if resource == CPU and amount % 1000:
        return f"{amount}m"
    return str(amount // 1000 if resource == CPU else amount)


def amount_of(resource: str, text: str) -> int:
    """The amount that `quantity` wrote."""
    if text.endswith("m"):
        return int(text[:-1])
    return int(text) * 1000 if resource == CPU else int(text)
